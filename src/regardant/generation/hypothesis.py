"""What a search returns, and how it is ranked."""

import math
from dataclasses import dataclass
from typing import Self, TypeVar

from torch import Tensor

from regardant.data.vocabulary import EOS
from regardant.errors import RunError

Score = TypeVar("Score", float, Tensor)


def penalised(log_probability: Score, length: Score | int, length_penalty: float) -> Score:
    """log-probability / length ** length_penalty, with EOS counted in the length."""
    score: Score = log_probability / length**length_penalty
    return score


@dataclass(frozen=True)
class Hypothesis:
    """One target a search proposes."""

    tokens: list[int]
    """Without SOS and EOS."""
    score: float
    """The log-probability after the length penalty: hypotheses are ranked by it."""
    log_probability: float
    """Sum over the tokens, EOS included, in nats."""
    finished: bool
    """True when it ended by EOS, False when the length limit cut it."""

    @classmethod
    def of(cls, written: list[int], log_probability: float, length_penalty: float) -> Self:
        """From the tokens after SOS, EOS included where it was written. Raises RunError unless finite."""
        if not math.isfinite(log_probability):
            raise impossible()
        finished = written[-1] == EOS
        return cls(
            tokens=written[:-1] if finished else written,
            score=penalised(log_probability, len(written), length_penalty),
            log_probability=log_probability,
            finished=finished,
        )


def impossible() -> RunError:
    return RunError(
        "the model gave NaN or probability zero to every allowed target; "
        "use a checkpoint whose weights are finite, or another forced prefix"
    )
