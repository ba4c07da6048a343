"""The most frequent tag of each word on UD English EWT: the baseline of the recipe `ud-tagging`, on the same files.

    .venv/bin/python -m benchmarks.baselines.ud_tagging

A word that is not in train.conllu.gz gets the most frequent tag of the words that occur there once.
"""

import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from regardant.data.tagged import TaggedConfig, TaggedText


def folder() -> Path:
    """Return the folder of the data."""
    if "REGARDANT_DATA" not in os.environ:
        sys.exit("this benchmark reads UD English EWT: set REGARDANT_DATA to the folder that holds ud_english_ewt")
    return Path(os.environ["REGARDANT_DATA"]) / "ud_english_ewt"


def accuracy(train: Iterable[TaggedText], test: Iterable[TaggedText]) -> float:
    """Return the share of words in `test` whose label is their most frequent one in `train`."""
    labels: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for text in train:
        for word, label in zip(text.words, text.labels, strict=True):
            labels[word][label] += 1
    best = {word: counts.most_common(1)[0][0] for word, counts in labels.items()}
    rare = Counter(best[word] for word, counts in labels.items() if counts.total() == 1)
    unknown = rare.most_common(1)[0][0] if rare else ""
    right = [
        best.get(word, unknown) == label for text in test for word, label in zip(text.words, text.labels, strict=True)
    ]
    return sum(right) / len(right)


def measure() -> dict[str, dict[str, float]]:
    """Return the accuracy on dev.conllu.gz."""
    data = TaggedConfig(source="train.conllu.gz", root=str(folder()))
    found = accuracy(data.items("train.conllu.gz"), data.items("dev.conllu.gz"))
    return {"most frequent tag of each word": {"accuracy": round(found, 4)}}


if __name__ == "__main__":
    print(measure())
