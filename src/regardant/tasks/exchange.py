"""Test texts of a run with its answers, with which an export of the run is compared.

A task returns an `Exchange` from `Trained.exchange`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regardant.interop.parity import TestTexts

MOST_TEXTS = 1000
"""Maximum number of test texts on which an export is compared with its run."""


@dataclass(frozen=True)
class Exchange:
    """Test texts, and a run that answers them: implements `interop.parity.Answering`."""

    test: TestTexts
    answer: Callable[[Sequence[str]], list[str]]
    score: Callable[[Sequence[str], Sequence[str]], list[Any]]

    def answers(self, texts: Sequence[str]) -> list[str]:
        """Return the answer to each text."""
        return self.answer(texts)

    def scores(self, texts: Sequence[str], references: Sequence[str]) -> list[Any]:
        """Return the scores of each text."""
        return self.score(texts, references)


def percent_equal(expected: Sequence[str], *, by_words: bool = False) -> Callable[[Sequence[str], Any], float]:
    """Return a function that scores answers by the percentage that is as expected: of answers, or of words."""

    def score(answers: Sequence[str], scores: Any) -> float:
        pairs = list(zip(expected, answers, strict=True))
        if by_words:
            pairs = [words for pair in pairs for words in zip(*map(str.split, pair), strict=False)]
        return 100 * sum(one == another for one, another in pairs) / max(1, len(pairs))

    return score


def perplexity(answers: Sequence[str], scores: Sequence[Any]) -> float:
    """Return the perplexity of texts, from the log-probabilities of their tokens."""
    return float(np.exp(-np.concatenate(list(scores)).mean()))
