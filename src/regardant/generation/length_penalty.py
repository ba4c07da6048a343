"""Hypotheses, and the length penalty that they are ranked by."""

import math
from dataclasses import dataclass
from typing import Self, TypeVar

from torch import Tensor

from regardant.data.vocabulary import EOS
from regardant.errors import RunError

FloatOrTensor = TypeVar("FloatOrTensor", float, Tensor)


def length_penalised(
    log_probability: FloatOrTensor, length: FloatOrTensor | int, length_penalty: float
) -> FloatOrTensor:
    """Return log-probability / length ** length_penalty, with EOS counted in the length."""
    score: FloatOrTensor = log_probability / divisor(length, length_penalty)
    return score


def divisor(length: FloatOrTensor | int, length_penalty: float) -> FloatOrTensor:
    """Return the divisor of the log-probability of a target of `length` tokens."""
    divided_by: FloatOrTensor = length**length_penalty
    return divided_by


@dataclass(frozen=True)
class Hypothesis:
    """Target that a search proposes."""

    tokens: list[int]
    """Tokens of the hypothesis, without SOS and EOS."""
    score: float
    """Log-probability after the length penalty, by which hypotheses are ranked."""
    log_probability: float
    """Log-probability of all tokens, EOS included, in nats."""
    finished: bool
    """True if the hypothesis ends with EOS, False if the length limit cut it."""

    @classmethod
    def of(cls, written: list[int], log_probability: float, length_penalty: float) -> Self:
        """Return the hypothesis of the tokens after SOS, EOS included where it was written.

        Raises RunError unless the log-probability is finite.
        """
        if not math.isfinite(log_probability):
            raise impossible()
        finished = written[-1] == EOS
        return cls(
            tokens=written[:-1] if finished else written,
            score=length_penalised(log_probability, len(written), length_penalty),
            log_probability=log_probability,
            finished=finished,
        )


def impossible() -> RunError:
    """Return the error of a search that finds no possible target."""
    return RunError(
        "the model gave NaN or probability zero to every allowed target; "
        "use a checkpoint whose weights are finite, or another forced prefix"
    )
