"""Scores of answers that are spans of a text, and the score threshold below which a question has no answer.

Exact match and F1 of tokens: Rajpurkar et al. 2016, "SQuAD: 100,000+ questions for machine comprehension of text",
https://arxiv.org/abs/1606.05250, section 6.1. An answer is compared with the most similar right answer, after the same
normalisation. Questions without an answer, whose right answer is the empty text: Rajpurkar et al. 2018,
https://arxiv.org/abs/1806.03822, section 5. The threshold: Devlin et al. 2019, "BERT",
https://arxiv.org/abs/1810.04805, section 4.3.
"""

import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

ARTICLE = re.compile(r"\b(?:a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)

MARGIN = 1.0
"""Distance of a threshold from the nearest score, if all scores lie on one side of it."""


@dataclass(frozen=True)
class QuestionScores:
    """Scores over questions."""

    f1: float
    """Mean F1 of the tokens of an answer."""
    exact_match: float
    """Share of questions whose answer equals a right one."""
    no_answer_f1: float
    """F1 of finding the questions without an answer. 1 if there are none and all were answered."""
    no_answers: int
    """Number of questions without an answer."""
    items: int
    """Number of questions."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for --json."""
        return asdict(self)


def score_answers(given: Sequence[str], right: Sequence[Sequence[str]]) -> QuestionScores:
    """Score the answer to each question, empty for none, against its right answers, of which there may be none."""
    missing = [not accepted(answers) for answers in right]
    refused = [not normalised_answer(answer) for answer in given]
    both = sum(one and other for one, other in zip(missing, refused, strict=True))
    either = sum(missing) + sum(refused)
    return QuestionScores(
        f1=sum(map(token_f1, given, right)) / len(given),
        exact_match=sum(map(exact_match, given, right)) / len(given),
        no_answer_f1=2 * both / either if either else 1.0,
        no_answers=sum(missing),
        items=len(given),
    )


def normalised_answer(answer: str) -> str:
    """Return an answer in lower case without punctuation, English articles and white space around words."""
    return " ".join(ARTICLE.sub(" ", answer.lower().translate(PUNCTUATION)).split())


def accepted(right: Sequence[str]) -> list[str]:
    """Return the normalised right answers, without empty ones."""
    return [one for answer in right if (one := normalised_answer(answer))]


def exact_match(given: str, right: Sequence[str]) -> bool:
    """Return whether an answer equals a right one. The right answer to a question without any is the empty text."""
    return normalised_answer(given) in (accepted(right) or [""])


def token_f1(given: str, right: Sequence[str]) -> float:
    """Return the F1 of the tokens of an answer and the most similar right answer: 1 or 0 if either is empty."""
    return max(_f1(normalised_answer(given).split(), one.split()) for one in accepted(right) or [""])


def no_answer_threshold(scores: Sequence[float], best: Sequence[str], right: Sequence[Sequence[str]]) -> float:
    """Return the score above which to give the best answer to a question, so that the mean F1 is highest.

    Thresholds lie halfway between two scores, or MARGIN outside all of them. Of equals, the nearest to 0 is returned.
    """
    answered = [token_f1(answer, answers) for answer, answers in zip(best, right, strict=True)]
    unanswered = [token_f1("", answers) for answers in right]
    order = sorted(range(len(scores)), key=lambda number: -scores[number])
    places = sorted({*scores}, reverse=True)
    thresholds = [places[0] + MARGIN, *((one + two) / 2 for one, two in pairwise(places)), places[-1] - MARGIN]
    total, above, found = sum(unanswered), 0, []
    for threshold in thresholds:
        while above < len(order) and scores[order[above]] > threshold:
            total += answered[order[above]] - unanswered[order[above]]
            above += 1
        found.append((round(total, 6), -abs(threshold), threshold))
    return max(found)[2]


def _f1(given: list[str], right: list[str]) -> float:
    if not given or not right:
        return float(given == right)
    both = (Counter(given) & Counter(right)).total()
    return 2 * both / (len(given) + len(right))
