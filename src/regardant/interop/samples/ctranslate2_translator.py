"""Translate the lines of standard input with CTranslate2 and the tokenizers of this folder.

pip install ctranslate2 numpy tokenizers
echo "a dog sleeps ." | python sample.py
"""

import json
import re
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
from tokenizers import Tokenizer


class Model:
    """A translator, a tokenizer for each side and the settings of the search."""

    def __init__(self, folder: Path, threads: int = 0) -> None:
        self.settings = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
        self.source = Tokenizer.from_file(str(folder / "source_tokenizer.json"))
        own = folder / "target_tokenizer.json"
        self.target = Tokenizer.from_file(str(own)) if own.is_file() else self.source
        self.known = self.target.get_vocab()
        self.engine = ctranslate2.Translator(str(folder), inter_threads=max(1, threads), intra_threads=1)

    def answers(self, texts: Sequence[str]) -> list[str]:
        """Return the translation of each text."""
        found = [""] * len(texts)
        rows = sorted((row for row, text in enumerate(texts) if text.strip()), key=lambda row: self.limit(texts[row]))
        for limit, alike in groupby(rows, key=lambda row: self.limit(texts[row])):  # the engine takes one for all
            chosen = list(alike)
            for row, translation in zip(chosen, self.translate([texts[row] for row in chosen], limit), strict=True):
                found[row] = translation
        return found

    def translate(self, texts: Sequence[str], limit: int) -> list[str]:
        """Return the translation of each text, of at most `limit` tokens."""
        beams, sources = self.settings["beam_size"], [self.pieces(text) for text in texts]
        results = self.engine.translate_batch(
            sources,
            beam_size=beams,
            # Twice as many hypotheses end as there are beams: a better one may end later.
            patience=2 if beams > 1 else 1,
            num_hypotheses=2 * beams if beams > 1 else 1,
            return_scores=True,
            length_penalty=self.settings["length_penalty"],
            max_decoding_length=limit,
            min_decoding_length=0,
            max_input_length=0,
            suppress_sequences=[[token] for token in self.settings["never"]],
            max_batch_size=1024,
            batch_type="tokens",
        )
        chosen = [self.chosen(source, result) for source, result in zip(sources, results, strict=True)]
        return [self.target.decode([self.known[piece] for piece in pieces]) for pieces in chosen]

    def chosen(self, source: list[str], result: Any) -> list[str]:
        """Return the hypothesis that the run's own search would return.

        That search stops when as many hypotheses have ended as there are beams, and no unfinished one has a better
        score than the best of them. The engine searches longer, so `result` may hold later hypotheses.
        """
        ended = [
            (len(pieces) + 1, score, pieces) for pieces, score in zip(result.hypotheses, result.scores, strict=True)
        ]
        stop = sorted(length for length, *_ in ended)[: self.settings["beam_size"]][-1]
        later = [one for one in ended if one[0] > stop]
        if any(score > self._best(ended, stop)[1] for _, score, _ in later):
            scored = self.engine.score_batch([source] * len(later), [one[2] for one in later], max_input_length=0)
            written = [result.log_probs for result in scored]
            while any(self._score(one[:stop]) > self._best(ended, stop)[1] for one in written if len(one) > stop):
                stop += 1
        return self._best(ended, stop)[2]

    def _best(self, ended: list[tuple[int, float, list[str]]], stop: int) -> tuple[int, float, list[str]]:
        """Return the best of the hypotheses (length with EOS, score, pieces) of at most `stop` tokens."""
        return max((one for one in ended if one[0] <= stop), key=lambda one: one[1])

    def _score(self, log_probabilities: list[float]) -> float:
        """Return the length-penalised log-probability, by which hypotheses are ranked."""
        return float(sum(log_probabilities) / len(log_probabilities) ** self.settings["length_penalty"])

    def scores(self, texts: Sequence[str], references: Sequence[str]) -> list[Any]:
        """Return the log-probabilities [T] of the tokens of each reference, EOS included."""
        targets = [spelt(self.target, reference) for reference in references]
        results = self.engine.score_batch([self.pieces(text) for text in texts], targets, max_input_length=0)
        return [np.array(result.log_probs) for result in results]

    def pieces(self, text: str) -> list[str]:
        """Return the tokens of a source, cut to the model's length, without EOS, which the engine adds."""
        return spelt(self.source, text)[: self.settings["max_length"] - 1]

    def limit(self, text: str) -> int:
        """Return the maximum number of tokens of a translation."""
        length = len(self.pieces(text)) + 1
        limit = int(length * self.settings["max_length_ratio"]) + self.settings["max_length_extra"]
        return int(min(limit, self.settings["max_length"] - 1))


def spelt(tokenizer: Tokenizer, text: str) -> list[str]:
    """Return the tokens of a text without EOS, spelt as in the vocabulary.

    `Encoding.tokens` spells some as the text does: the name of a language with the space after it.
    """
    return [str(tokenizer.id_to_token(number)) for number in tokenizer.encode(text).ids[:-1]]


if __name__ == "__main__":
    given = [line.decode().rstrip("\r\n") for line in sys.stdin.buffer]  # only a line feed ends a line
    for answer in Model(Path(__file__).parent).answers(given):
        print(re.sub(r"[\r\n]+", " ", answer))
