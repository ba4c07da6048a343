"""The next values of a series: their means by squared error, or quantiles of them by the pinball loss.

Pinball loss: Koenker and Bassett 1978, "Regression quantiles"; summed over quantiles as in Lim et al. 2021, "Temporal
fusion Transformers", https://arxiv.org/abs/1912.09363, eq. 24 and 25.

Shape legend: B batch, T elements, M d_model, H steps of the horizon, C channels of the series, Q quantiles.
"""

from typing import Literal

import torch
from pydantic import Field, field_validator
from torch import Tensor, nn

from regardant.models.heads.base import Head, HeadConfig, Loss
from regardant.models.heads.pooling import Pooling, pool
from regardant.models.vectors import Vectors


class ForecastConfig(HeadConfig):
    """Values of a series, in as many channels as it has."""

    kind: Literal["forecast"] = "forecast"

    horizon: int | None = Field(None, gt=0)
    """Steps to forecast from the whole sequence. Empty: one step from each element, such as the next one in a causal
    model."""

    pooling: Pooling = "last"
    """The vector that a horizon is forecast from: that of the `last` element, the `mean` or `max` of all, or that of a
    `class_token`."""

    quantiles: tuple[float, ...] = ()
    """Quantiles to forecast, in ascending order, such as [0.1, 0.5, 0.9]. Empty: the mean, by squared error."""

    @field_validator("quantiles")
    @classmethod
    def quantiles_ascend(cls, quantiles: tuple[float, ...]) -> tuple[float, ...]:
        """Refuse quantiles outside of (0, 1), or in another order."""
        if list(quantiles) != sorted({one for one in quantiles if 0 < one < 1}):
            raise ValueError(f"given {list(quantiles)}; allowed: numbers between 0 and 1 in ascending order")
        return quantiles

    def build(self, d_model: int, num_outputs: int) -> "Forecast":
        return Forecast(self, d_model, num_outputs)


class Forecast(Head):
    """Forecasts the mean or the quantiles of every value."""

    quantiles: Tensor
    """[Q]"""

    def __init__(self, config: ForecastConfig, d_model: int, num_channels: int) -> None:
        super().__init__()
        self.pooling = None if config.horizon is None else config.pooling
        self.register_buffer("quantiles", torch.tensor(config.quantiles), persistent=False)
        steps = () if config.horizon is None else (config.horizon,)
        self.shape = (*steps, num_channels, len(config.quantiles)) if config.quantiles else (*steps, num_channels)
        self.output = nn.Linear(d_model, torch.Size(self.shape).numel())

    def scores(self, vectors: Vectors) -> Tensor:
        """Return the forecast values [B, T or H, C]; with quantiles [B, T or H, C, Q]."""
        values = vectors.values if self.pooling is None else pool(vectors, self.pooling)
        forecast: Tensor = self.output(values)
        return forecast.unflatten(-1, self.shape)

    def loss(self, vectors: Vectors, targets: Tensor) -> Loss:
        """Return the squared errors or pinball losses of the values [B, T or H, C].

        A value that is missing (NaN) counts nothing, nor does one of an element that is padding.
        """
        known = ~targets.isnan()
        if self.pooling is None and vectors.real is not None:
            known = known & vectors.real[..., None]
        forecast = self.scores(vectors).float()
        errors = torch.where(known, targets.float(), 0)
        if len(self.quantiles):
            errors = errors[..., None] - forecast
            losses = torch.maximum(self.quantiles * errors, (self.quantiles - 1) * errors).sum(-1)
        else:
            losses = (errors - forecast).square()
        total = torch.where(known, losses, 0).sum()
        return Loss(total, total.detach(), known.sum())
