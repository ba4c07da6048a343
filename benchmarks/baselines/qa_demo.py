"""The words next to those of the question: the baseline of the recipe `qa-demo`, on the same stories.

    .venv/bin/python -m benchmarks.baselines.qa_demo

The sentence that shares most words with the question is chosen, and in it the words that the question lacks: its first
run of them for who, its last one for what, where and when. A question has no answer if the share of its words in that
sentence is not above a threshold, which is chosen on the training stories. Like the sliding window of Rajpurkar et al.
2016, https://arxiv.org/abs/1606.05250, section 5, the baseline only counts words.
"""

import re
from collections.abc import Sequence

from regardant.data.questions import ContextQuestion
from regardant.data.stories import StoriesConfig
from regardant.evaluation.question_answering import (
    QuestionScores,
    no_answer_threshold,
    score_answers,
)

SENTENCE = re.compile(r"[^.]+\.")
WORD = re.compile(r"\w+")


def nearest_words(one: ContextQuestion) -> tuple[float, str]:
    """Return the share of the question's words in the sentence that has most of them, and the answer found in it."""
    asked, *others = [word.lower() for word in WORD.findall(one.question)]
    known = set(others)
    sentences = SENTENCE.findall(one.context)
    shares = [len(known & {word.lower() for word in WORD.findall(text)}) / len(known) for text in sentences]
    best = max(range(len(sentences)), key=shares.__getitem__)
    runs: list[list[re.Match[str]]] = [[]]
    for word in WORD.finditer(sentences[best]):
        if word[0].lower() in known:
            runs.append([])
        else:
            runs[-1].append(word)
    found = [run for run in runs if run]
    if not found:
        return shares[best], ""
    run = found[0 if asked == "who" else -1]
    return shares[best], sentences[best][run[0].start() : run[-1].end()]


def scores(train: Sequence[ContextQuestion], test: Sequence[ContextQuestion]) -> QuestionScores:
    """Return the scores of the baseline on `test`, with the threshold chosen on `train`."""
    shares, answers = zip(*map(nearest_words, train), strict=True)
    threshold = no_answer_threshold(shares, answers, [one.answers for one in train])
    given = [answer if share > threshold else "" for share, answer in map(nearest_words, test)]
    return score_answers(given, [one.answers for one in test])


def measure() -> dict[str, dict[str, float]]:
    """Return exact match, F1 and F1 of no answer on the test stories."""
    sets = StoriesConfig().read(1)
    found = scores(sets["train"], sets["test"])
    names = ("exact_match", "f1", "no_answer_f1")
    return {"words next to those of the question": {name: round(getattr(found, name), 4) for name in names}}


if __name__ == "__main__":
    print(measure())
