"""Scores of forecasts against their definitions."""

import pytest
import torch

from regardant.evaluation.forecasting import repeat_last, score_forecasts

FORECAST = torch.randn(5, 3, 1, generator=torch.Generator().manual_seed(1))
VALUES = torch.randn(5, 3, 1, generator=torch.Generator().manual_seed(2))


def test_errors_are_means_over_all_values_of_unequal_batches():
    scores = score_forecasts([(FORECAST[:4], VALUES[:4]), (FORECAST[4:], VALUES[4:])], ())
    errors = (FORECAST - VALUES).double()
    assert scores.loss == pytest.approx(scores.mse)
    assert scores.mse == pytest.approx(float(errors.square().mean()))
    assert scores.mae == pytest.approx(float(errors.abs().mean()))
    assert scores.items == 5


def test_with_quantiles_the_one_nearest_to_the_median_is_scored():
    quantiles = (0.1, 0.6, 0.9)
    forecast = torch.cat([FORECAST - 1, FORECAST, FORECAST + 1], -1)[:, :, None]
    scores = score_forecasts([(forecast, VALUES)], quantiles)
    assert scores.mse == pytest.approx(float((FORECAST - VALUES).square().mean()))
    losses = [
        max(share * error, (share - 1) * error)
        for share, at in zip(quantiles, range(3), strict=True)
        for error in (VALUES - forecast[..., at]).flatten().tolist()
    ]
    assert scores.loss == pytest.approx(sum(losses) / VALUES.numel(), rel=1e-5)


@pytest.mark.parametrize(
    ("count", "expected"), [(1, [5, 5, 5, 5]), (2, [4, 5, 4, 5]), (3, [3, 4, 5, 3]), (5, [1, 2, 3, 4])]
)
def test_the_last_values_are_repeated(count, expected):
    forecast = repeat_last(torch.arange(1.0, 6).expand(2, -1), count, 4)
    assert forecast[..., 0].tolist() == [expected, expected] and forecast.shape == (2, 4, 1)
