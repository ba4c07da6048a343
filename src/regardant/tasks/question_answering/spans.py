"""The best span of each question, over all windows of its context.

Devlin et al. 2019, "BERT", https://arxiv.org/abs/1810.04805, sections 4.2 and 4.3: the score of a span is the score of
its start plus that of its end, and no answer has the score of the class token as both. A span counts by the difference,
the logarithm of how much likelier it is than no answer in the same window, so that windows can be compared.

Shape legend: B windows, T tokens of a window, L most tokens of an answer.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from regardant.data.questions import ContextQuestion
from regardant.modalities.questions import ENDS, STARTS, of_context
from regardant.tasks.items.data import Planned
from regardant.tasks.question_answering.windows import EncodedQuestions


@dataclass(frozen=True)
class BestSpan:
    """The best span of a question."""

    score: float
    """Score of the span less that of no answer, in nats."""
    window: int
    """Number of its window in the split."""
    start: int
    """First character in the context."""
    end: int
    """End of the span in the context, excluded, in characters."""


def best_spans(scores: Tensor, allowed: Tensor, longest: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the score of the best span of each window less that of no answer, its first and its last token [B].

    `scores` [B, T + 1, 2] have those of the class token first. Spans are of tokens that are `allowed` [B, T], and of
    `longest` tokens at most.
    """
    starts, ends = scores[:, 1:].masked_fill(~allowed[..., None], -torch.inf).unbind(-1)
    totals = starts[..., None] + F.pad(ends, (0, longest - 1), value=-torch.inf).unfold(1, longest, 1)  # [B, T, L]
    best, at = totals.flatten(1).max(1)
    first = at // longest
    return best - scores[:, 0].sum(-1), first, first + at % longest


def find_answers(
    split: EncodedQuestions, plan: Sequence[Planned], answers: Iterable[tuple[Tensor, Tensor]], longest: int
) -> list[BestSpan]:
    """Return the best span of each question, given the scores of all windows in the order of their batches."""
    found: dict[int, BestSpan] = {}
    for planned, (scores, _) in zip(plan, answers, strict=True):
        places = scores.shape[1] - 1  # without the class token, for which a model may have cut a window
        windows = [split.items[index][:places] for index in planned.indices.tolist()]
        allowed = torch.zeros(len(windows), places, dtype=torch.bool)
        for row, window in enumerate(windows):
            allowed[row, : len(window)] = torch.from_numpy(np.ascontiguousarray(of_context(window)))
        best = (one.tolist() for one in best_spans(scores, allowed, longest))
        rows = zip(planned.indices.tolist(), windows, *best, strict=True)
        for index, window, score, first, last in rows:
            number = int(split.numbers[index])
            if number not in found or score > found[number].score:
                found[number] = BestSpan(score, index, int(window[first, STARTS]), int(window[last, ENDS]))
    return [found[number] for number in range(len(split.questions))]


def texts_of(
    found: Sequence[BestSpan], questions: Sequence[ContextQuestion], threshold: float = -math.inf
) -> list[str]:
    """Return the text of each question's best span, empty if its score is not above the threshold."""
    return [
        one.context[at.start : at.end] if at.score > threshold else "" for one, at in zip(questions, found, strict=True)
    ]
