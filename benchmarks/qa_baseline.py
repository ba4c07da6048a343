"""The words next to those of the question: the baseline of the recipe `qa-demo`, on the same stories.

    .venv/bin/python -m benchmarks.qa_baseline

The sentence that shares most words with the question is chosen, and in it the words that the question lacks: its first
run of them for who, its last one for what, where and when. A question has no answer if the share of its words in that
sentence is not above a threshold, which is chosen on the training stories. Prints the scores on the test stories. Like
the sliding window of Rajpurkar et al. 2016, https://arxiv.org/abs/1606.05250, section 5, it counts words alone.
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


def measure(train: Sequence[ContextQuestion], test: Sequence[ContextQuestion]) -> QuestionScores:
    """Return the scores of the baseline on `test`, with the threshold chosen on `train`."""
    shares, answers = zip(*map(nearest_words, train), strict=True)
    threshold = no_answer_threshold(shares, answers, [one.answers for one in train])
    given = [answer if share > threshold else "" for share, answer in map(nearest_words, test)]
    return score_answers(given, [one.answers for one in test])


if __name__ == "__main__":
    sets = StoriesConfig().read(1)
    found = measure(sets["train"], sets["test"])
    print(
        f"words next to those of the question: exact match {found.exact_match:.4f}, F1 {found.f1:.4f}, F1 of no answer "
        f"{found.no_answer_f1:.4f} of {found.items:,} questions"
    )
