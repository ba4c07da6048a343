"""Series as patches and as trend with remainder: against explicit loops, with their normalisation."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from regardant.models.dlinear import DLinearConfig
from regardant.models.encoder_only import BagOfVectorsConfig, EncoderOnlyConfig
from regardant.models.heads import ForecastConfig, SequenceClassConfig
from regardant.models.recurrent import RecurrentEncoderConfig
from regardant.models.representations import InputShape, SeriesShape, series_patches, tokens
from regardant.models.vectors import Vectors
from regardant.positions.none import NoPositions

SHAPE = SeriesShape(history=20, patch_length=6, stride=4)
SERIES = torch.randn(3, 20, generator=torch.Generator().manual_seed(3)).cumsum(1)
HORIZON = 5
ATTENTION = EncoderOnlyConfig(d_model=8, num_heads=2, d_ff=16, num_layers=1, dropout=0.0, max_length=8)
MODELS = {
    "encoder only": ATTENTION,
    "recurrent": RecurrentEncoderConfig(embedding_size=8, hidden_size=8, dropout=0.0),
    "bag": BagOfVectorsConfig(d_model=8, dropout=0.0),
    "dlinear": DLinearConfig(kernel_size=5),
}


def build(name, shape=SHAPE, **head):
    config = MODELS[name]
    given = {"horizon": HORIZON, "pooling": "flatten", "elements": config.num_vectors(shape.patches)} | head
    torch.manual_seed(0)
    return config.build(series_patches(shape), lambda d_model: ForecastConfig(**given).build(d_model, 1)).eval()


@settings(deadline=None)  # the first call loads what torch needs
@given(st.integers(1, 12), st.data())
def test_patches_cover_the_history_up_to_its_last_step(patch_length, data):
    stride = data.draw(st.integers(1, patch_length))
    shape = SeriesShape(data.draw(st.integers(patch_length, 40)), patch_length, stride)
    steps = torch.arange(1.0, shape.history + 1)[None]
    patches = shape.cut(steps)[0]
    assert patches.shape == (shape.patches, patch_length)
    whole = [patches[0], *(patch[patch_length - stride :] for patch in patches[1:])]
    expected = torch.cat([torch.ones(shape.padding), steps[0]])
    assert_close(torch.cat(whole), expected)
    assert shape.padding < stride


def test_the_history_of_patchtst_42_makes_41_patches_without_padding():
    shape = SeriesShape(history=336, patch_length=16, stride=8)
    assert (shape.patches, shape.padding) == (41, 0)


def test_a_patch_is_projected_alone():
    representation = series_patches(SHAPE)(InputShape(4, NoPositions()))
    found = representation(SERIES)
    mean, deviation = SERIES.mean(1, keepdim=True), (SERIES.var(1, keepdim=True, correction=0) + 1e-5).sqrt()
    normalised = (SERIES - mean) / deviation
    assert_close(found.moments, torch.cat([mean, deviation], 1))
    for number in range(SHAPE.patches):
        end = 20 - (SHAPE.patches - 1 - number) * 4
        steps = normalised[:, [max(0, step) for step in range(end - 6, end)]]
        assert_close(found.values[:, number], representation.projection(steps))


def test_trend_and_remainder_add_up_and_the_trend_is_a_mean():
    components = build("dlinear", SeriesShape(20, 6, 4, instance_norm=False)).input(SERIES)
    assert components.moments is None
    trend, remainder = components.values.unbind(1)
    assert_close(trend + remainder, SERIES)
    at = np.clip(np.arange(20)[:, None] + np.arange(-2, 3), 0, 19)
    assert_close(trend, SERIES[:, torch.from_numpy(at)].mean(-1))


def test_dlinear_is_the_sum_of_two_linear_maps():
    model = build("dlinear", SeriesShape(20, 6, 4, instance_norm=False))
    trend, remainder = model.input(SERIES).values.unbind(1)
    of_trend, of_remainder = model.head.output.weight.split(20, 1)
    expected = trend @ of_trend.T + remainder @ of_remainder.T + model.head.output.bias
    assert_close(model.scores(input=SERIES)[..., 0], expected)


@pytest.mark.parametrize("quantiles", [(), (0.1, 0.5, 0.9)])
@pytest.mark.parametrize("name", MODELS)
def test_a_forecast_moves_and_grows_with_its_series(name, quantiles):
    model = build(name, quantiles=quantiles)
    with torch.no_grad():
        found, moved = (model.scores(input=series) for series in (SERIES, 30 + 10 * SERIES))
    assert_close(moved, 30 + 10 * found, rtol=1e-4, atol=1e-3)
    assert not torch.allclose(found[0], found[1])


@pytest.mark.parametrize("name", MODELS)
def test_a_series_that_is_constant_has_a_finite_forecast(name):
    assert build(name).scores(input=torch.full((1, 20), 7.0)).isfinite().all()


@pytest.mark.parametrize("name", MODELS)
def test_every_parameter_learns(name):
    model = build(name).train()
    model(input=SERIES, targets=torch.zeros(3, HORIZON, 1)).total.backward()
    assert not {key for key, one in model.named_parameters() if one.grad is None or not one.grad.any()}


def test_a_bag_whose_head_reads_places_reads_an_order():
    assert build("bag").reads_order
    assert not build("bag", pooling="mean").reads_order


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: build("encoder only", elements=None), "pooling flatten needs the number of vectors"),
        (lambda: build("dlinear", pooling="mean"), "dlinear forecasts from the whole history: set head="),
        (
            lambda: DLinearConfig().build(tokens(9), lambda d_model: SequenceClassConfig().build(d_model, 2)),
            "dlinear reads series, not tokens: set input.kind=series",
        ),
        (lambda: DLinearConfig(kernel_size=4), "given 4; allowed: odd numbers"),
        (lambda: ForecastConfig(pooling="flatten"), "pooling flatten reads all elements for one horizon: set horizon"),
    ],
)
def test_what_does_not_go_together_is_refused_by_name(make, told):
    with pytest.raises(ValueError, match=told):
        make()


@pytest.mark.parametrize("real", [None, torch.ones(2, 3, dtype=torch.bool)])
def test_a_head_that_reads_all_vectors_needs_their_number(real):
    head = ForecastConfig(horizon=2, pooling="flatten", elements=3 if real is not None else 4).build(5, 1)
    with pytest.raises(ValueError, match="give items of one length, or choose another pooling"):
        head.scores(Vectors(torch.zeros(2, 3, 5), real))
