"""A linear forecast from the trend and the remainder of a series: the baseline of sequence models.

Zeng et al. 2023, "Are Transformers Effective for Time Series Forecasting?" (DLinear),
https://arxiv.org/abs/2205.13504, section 4.

Shape legend: B series, L steps of history.
"""

from typing import Literal

import torch
from jaxtyping import Float
from pydantic import Field, field_validator
from torch import Tensor
from torch.nn.functional import avg_pool1d

from regardant.layers.dropout import share_key
from regardant.models.base import EncoderConfig
from regardant.models.encoder_only import EncoderOnly, NoMixing
from regardant.models.heads import HeadBuilder
from regardant.models.representations import InputShape, Representation, RepresentationBuilder
from regardant.models.representations.series import SeriesPatches, SeriesShape
from regardant.models.vectors import Vectors
from regardant.positions.none import NoPositions

COMPONENTS = 2
"""Number of vectors of a series: its trend and its remainder."""


class DLinearConfig(EncoderConfig):
    """Sum of a linear map of a series' trend and one of its remainder. It needs `input.kind: series` and the head
    `forecast` with `pooling: flatten`, whose matrix holds both maps side by side."""

    kind: Literal["dlinear"] = "dlinear"

    kernel_size: int = Field(25, gt=0)
    """Steps of the moving average that is the trend; odd."""

    @field_validator("kernel_size")
    @classmethod
    def kernel_has_a_middle(cls, size: int) -> int:
        """Refuse an even number of steps."""
        if size % 2 == 0:
            raise ValueError(f"given {size}; allowed: odd numbers, so that the mean is around a step")
        return size

    def num_vectors(self, elements: int) -> int:
        return COMPONENTS

    def build(self, representation: RepresentationBuilder, head: HeadBuilder) -> EncoderOnly:
        patches = representation(InputShape(1, NoPositions()))
        if not isinstance(patches, SeriesPatches):
            raise ValueError(f"dlinear reads series, not {patches.unit}s: set input.kind=series, or another model.kind")
        answers = head(patches.series.history)
        if not answers.reads_order:
            raise ValueError("dlinear forecasts from the whole history: set head={kind: forecast, pooling: flatten}")
        model = EncoderOnly(self, SeriesComponents(patches.series, self.kernel_size), NoMixing(), answers)
        model.dropout_key = share_key(model)
        return model


class SeriesComponents(Representation):
    """Trend and remainder of a series, as two vectors with one number for each step."""

    unit = "component"

    def __init__(self, series: SeriesShape, kernel_size: int) -> None:
        super().__init__(InputShape(series.history, NoPositions()))
        self.series, self.kernel_size = series, kernel_size

    def embed(self, inputs: Float[Tensor, "B L"]) -> Vectors:
        """Return trend and remainder [B, 2, L]. The series is padded with its first and last value."""
        normalised, moments = self.series.normalise(inputs)
        beyond = self.kernel_size // 2
        first, last = (normalised[:, step].expand(beyond, -1).T for step in (0, -1))
        padded: Tensor = torch.cat([first, normalised, last], 1)
        trend = avg_pool1d(padded, self.kernel_size, stride=1)
        return Vectors(torch.stack([trend, normalised - trend], 1), moments=moments)
