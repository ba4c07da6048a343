"""The learning rate of each update.

A schedule is a pure function of two numbers, so resuming needs no state: `update`, counted from 1, and `progress`, the
share of the budget that is spent: after this update, of a budget of updates or epochs, and before it, of one in
minutes. Of N updates the last one has progress 1, and so the rate at the end. Warm-up depends on `update`, decay to an
end on `progress`, so that a run with a time limit ends its decay on time, on any machine. Decay begins at update 1, not
after warm-up.

noam            Vaswani et al. 2017, "Attention Is All You Need", https://arxiv.org/abs/1706.03762, eq. 3
inverse_sqrt    the same curve, given by its peak
constant        the same rate after warm-up
cosine          Loshchilov and Hutter 2017, "SGDR", https://arxiv.org/abs/1608.03983, eq. 5, one cycle
linear          linear decay
"""

import math
from typing import Annotated, Literal

from pydantic import Field

from regardant.config import Config

LOWER_RATE = "a lower learning rate (training.schedule.learning_rate, or training.schedule.factor of noam)"
"""Advice in messages about trainings that diverge."""


class NoamConfig(Config):
    """factor * d_model^-0.5 * min(update^-0.5, update * warmup_steps^-1.5), highest at warmup_steps."""

    kind: Literal["noam"] = "noam"

    d_model: int = Field(gt=0)
    """The model's d_model: wider models get a lower rate."""

    factor: float = Field(1.0, gt=0)
    """Factor of the whole curve. 1 in the paper."""

    warmup_steps: int = Field(4000, gt=0)
    """Updates until the peak, which is factor / sqrt(d_model * warmup_steps)."""

    def rate(self, update: int, progress: float) -> float:
        _refuse_update_zero(update)
        rising = update * math.pow(self.warmup_steps, -1.5)
        return self.factor * math.pow(self.d_model, -0.5) * min(math.pow(update, -0.5), rising)


class InverseSqrtConfig(Config):
    """Linear rise to learning_rate, then learning_rate * sqrt(warmup_steps / update)."""

    kind: Literal["inverse_sqrt"] = "inverse_sqrt"

    learning_rate: float = Field(5e-4, gt=0)
    """Learning rate at the peak."""

    warmup_steps: int = Field(4000, gt=0)
    """Updates until the peak. After four times as many the rate is half of it."""

    def rate(self, update: int, progress: float) -> float:
        _refuse_update_zero(update)
        return self.learning_rate * min(update / self.warmup_steps, math.sqrt(self.warmup_steps / update))


class _WarmedUpConfig(Config):
    learning_rate: float = Field(5e-4, gt=0)
    """Learning rate at the end of warm-up, times the decay of `cosine` and `linear`, which begins at update 1. So their
    peak is lower: 0.75 of this rate for a linear decay to 0 with a warm-up of a quarter of the run."""

    warmup_steps: int = Field(1000, ge=0)
    """Updates of linear warm-up. 0: none."""

    def rate(self, update: int, progress: float) -> float:
        _refuse_update_zero(update)
        warmup = min(1.0, update / max(1, self.warmup_steps))
        # With a time limit the last update ends a little past the budget.
        return self.learning_rate * warmup * self._decay(min(progress, 1.0))

    def _decay(self, progress: float) -> float:
        return 1.0


class _DecayingConfig(_WarmedUpConfig):
    final_ratio: float = Field(0.0, ge=0, le=1)
    """Learning rate at the end of the budget, as a share of learning_rate."""


class ConstantConfig(_WarmedUpConfig):
    """Linear warm-up to learning_rate, which then stays the same."""

    kind: Literal["constant"] = "constant"


class CosineConfig(_DecayingConfig):
    """Half a cosine from learning_rate at the start to final_ratio of it at the end, times a linear warm-up."""

    kind: Literal["cosine"] = "cosine"

    def _decay(self, progress: float) -> float:
        return self.final_ratio + (1 - self.final_ratio) * (1 + math.cos(math.pi * progress)) / 2


class LinearConfig(_DecayingConfig):
    """Linear decay from learning_rate at the start to final_ratio of it at the end, times a linear warm-up."""

    kind: Literal["linear"] = "linear"

    def _decay(self, progress: float) -> float:
        return self.final_ratio + (1 - self.final_ratio) * (1 - progress)


ScheduleConfig = Annotated[
    NoamConfig | InverseSqrtConfig | ConstantConfig | CosineConfig | LinearConfig, Field(discriminator="kind")
]
"""Union of the schedules by `kind`. Each has `rate(update, progress)`, the learning rate of an update."""


def _refuse_update_zero(update: int) -> None:
    if update < 1:
        raise ValueError(f"updates count from 1, so update {update} has no learning rate")
