"""The next values of a series: their means by squared error, or quantiles of them by the pinball loss.

Vectors of all elements side by side: Nie et al. 2023, "A Time Series is Worth 64 Words",
https://arxiv.org/abs/2211.14730, section 3.1. Pinball loss: Koenker and Bassett 1978, "Regression quantiles"; summed
over quantiles as in Lim et al. 2021, "Temporal fusion Transformers", https://arxiv.org/abs/1912.09363, eq. 24 and 25.

Shape legend: B batch, T elements, M d_model, H steps of the horizon, C channels of the series, Q quantiles.
"""

from typing import Annotated, Literal

import torch
from pydantic import Field, field_validator, model_validator
from torch import Tensor, nn

from regardant.models.heads.base import Head, HeadConfig, Loss
from regardant.models.heads.pooling import Pooling, pool
from regardant.models.vectors import Vectors


class ForecastConfig(HeadConfig):
    """Next values of a series, in all of its channels."""

    kind: Literal["forecast"] = "forecast"

    horizon: Annotated[int, Field(gt=0)] | Literal["auto"] | None = None
    """Steps to forecast from the whole sequence. Empty: one step from each element, such as the next one in a causal
    model. auto: chosen by the task forecasting from the number of rows."""

    pooling: Pooling | Literal["flatten"] = "last"
    """The vector that a horizon is forecast from: that of the `last` element, the `mean` or `max` of all, that of a
    `class_token` or of the `first` element, or the vectors of all elements side by side (`flatten`)."""

    elements: int | None = Field(None, gt=0)
    """Number of vectors that `flatten` reads. The task forecasting sets it."""

    quantiles: tuple[float, ...] = ()
    """Quantiles to forecast, in ascending order, such as [0.1, 0.5, 0.9]. Empty: the mean, by squared error."""

    @field_validator("quantiles")
    @classmethod
    def quantiles_ascend(cls, quantiles: tuple[float, ...]) -> tuple[float, ...]:
        """Refuse quantiles outside of (0, 1), or in another order."""
        if list(quantiles) != sorted({one for one in quantiles if 0 < one < 1}):
            raise ValueError(f"given {list(quantiles)}; allowed: numbers between 0 and 1 in ascending order")
        return quantiles

    @model_validator(mode="after")
    def flatten_has_a_horizon(self) -> "ForecastConfig":
        """Refuse pooling flatten without a horizon."""
        if self.pooling == "flatten" and self.horizon is None:
            raise ValueError("pooling flatten reads all elements for one horizon: set horizon")
        return self

    @property
    def num_steps(self) -> int | None:
        """The horizon in steps. None: one step from each element. Raises ValueError for a horizon still `auto`."""
        if self.horizon == "auto":
            raise ValueError("horizon auto is chosen by the task forecasting alone: set a number of steps")
        return self.horizon

    def build(self, d_model: int, num_outputs: int) -> "Forecast":
        return Forecast(self, d_model, num_outputs)


class Forecast(Head):
    """Head that forecasts the mean or the quantiles of every value."""

    quantiles: Tensor
    """[Q]"""

    def __init__(self, config: ForecastConfig, d_model: int, num_channels: int) -> None:
        super().__init__()
        self.horizon = config.num_steps
        self.elements: int | None = None
        if config.pooling == "flatten":
            if config.elements is None:
                raise ValueError("pooling flatten needs the number of vectors that are read: set elements")
            self.elements, self.reads_order = config.elements, True
        elif self.horizon is not None:
            self.pooling = config.pooling
        self.register_buffer("quantiles", torch.tensor(config.quantiles), persistent=False)
        steps = () if self.horizon is None else (self.horizon,)
        self.shape = (*steps, num_channels, len(config.quantiles)) if config.quantiles else (*steps, num_channels)
        self.output = nn.Linear(d_model * (self.elements or 1), torch.Size(self.shape).numel())

    def scores(self, vectors: Vectors) -> Tensor:
        """Return the forecast values [B, T or H, C]; with quantiles [B, T or H, C, Q]."""
        forecast: Tensor = self.output(self._read(vectors)).unflatten(-1, self.shape)
        if vectors.moments is None:
            return forecast
        mean, deviation = vectors.moments.view(-1, 2, *[1] * (forecast.dim() - 1)).unbind(1)
        return mean + deviation * forecast

    def loss(self, vectors: Vectors, targets: Tensor) -> Loss:
        """Return the squared errors or pinball losses of the values [B, T or H, C].

        Missing values (NaN) and values of padding are left out.
        """
        known = ~targets.isnan()
        if self.horizon is None and vectors.real is not None:
            known = known & vectors.real[..., None]
        values = torch.where(known, targets.float(), 0)
        losses = forecast_losses(self.scores(vectors).float(), values, self.quantiles)
        total = torch.where(known, losses, 0).sum()
        return Loss(total, total.detach(), known.sum())

    def _read(self, vectors: Vectors) -> Tensor:
        """Return the vectors to forecast from: [B, M] for a horizon, [B, T, M] for one step from each element."""
        if self.elements is not None:
            if vectors.real is not None or vectors.values.shape[1] != self.elements:
                raise ValueError(
                    f"pooling flatten reads {self.elements} vectors of every item and was given "
                    f"{vectors.values.shape[1]}, or padding: give items of one length, or choose another pooling"
                )
            return vectors.values.flatten(1)
        return vectors.values if self.pooling is None else pool(vectors, self.pooling)


def forecast_losses(forecast: Tensor, values: Tensor, quantiles: Tensor) -> Tensor:
    """Return the squared error of each value [...] of a forecast [...]; with quantiles, the sum of the pinball losses
    of a forecast [..., Q]."""
    if not len(quantiles):
        return (values - forecast).square()
    errors = values[..., None] - forecast
    return torch.maximum(quantiles * errors, (quantiles - 1) * errors).sum(-1)
