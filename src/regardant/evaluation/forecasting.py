"""Scores of forecasts, in standard deviations of the training rows: mean squared error, mean absolute error, loss.

Shape legend: B forecasts, L steps of history, H steps, C channels, Q quantiles.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from regardant.models.heads.forecast import forecast_losses

MEDIAN = 0.5


@dataclass(frozen=True)
class ForecastScores:
    """Errors of point forecasts, which with quantiles are those of the quantile nearest to the median."""

    mse: float
    """Mean squared error."""
    mae: float
    """Mean absolute error."""
    loss: float
    """Mean of what training minimises: squared errors, or pinball losses summed over the quantiles."""
    items: int
    """Number of forecasts."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for --json."""
        return asdict(self)


def score_forecasts(answers: Iterable[tuple[Tensor, Tensor]], quantiles: Sequence[float]) -> ForecastScores:
    """Return the scores of forecasts [B, H, C], with quantiles [B, H, C, Q], and values [B, H, C], batch by batch."""
    squared, absolute, losses, count, items = 0.0, 0.0, 0.0, 0, 0
    for forecast, values in answers:
        errors = (point(forecast, quantiles) - values).double()
        squared, absolute = squared + float(errors.square().sum()), absolute + float(errors.abs().sum())
        losses += float(forecast_losses(forecast, values, torch.tensor(quantiles)).double().sum())
        count, items = count + values.numel(), items + len(values)
    return ForecastScores(squared / count, absolute / count, losses / count, items)


def point(forecast: Tensor, quantiles: Sequence[float]) -> Tensor:
    """Return the point forecast: the mean, or the quantile nearest to the median."""
    if not quantiles:
        return forecast
    return forecast[..., min(range(len(quantiles)), key=lambda number: abs(quantiles[number] - MEDIAN))]


def repeat_last(history: Tensor, count: int, horizon: int) -> Tensor:
    """Return the last `count` values of histories [B, L], repeated over the horizon as [B, H, 1].

    One value makes the naive forecast, the values of a season the seasonal naive forecast (Hyndman and Athanasopoulos
    2021, "Forecasting: Principles and Practice", section 5.2).
    """
    return history[:, -count:].repeat(1, -(-horizon // count))[:, :horizon, None]
