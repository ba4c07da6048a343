import math
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regardant.layers.dropout import CHUNK, Dropout, DropoutKey, keep_mask, share_key

MANY = 1_000_000
UNRELATED = 5 / math.sqrt(MANY)
"""Correlations of independent masks scatter around 0 with 1 / sqrt(n); five times that is met once in two million."""

keyed_or_not = pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "from torch's generator"])


def mask(rate=0.5, place=0, shape=(MANY,), **key):
    return kept(shape, rate, DropoutKey(**key).at(place))


def kept(shape, rate, key):
    """1 where an element is kept, 0 where it is dropped."""
    return -keep_mask(torch.Size(shape), rate, key).float()


def correlation(a, b):
    return torch.corrcoef(torch.stack([a, b]))[0, 1].abs().item()


@pytest.mark.parametrize("rate", [1e-6, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.9, 1 - 1e-6])
def test_the_share_dropped_is_the_rate(rate):
    assert 1 - mask(rate).mean().item() == pytest.approx(rate, abs=1e-3)


@pytest.mark.parametrize("rate", [0.1, 0.5])
@pytest.mark.parametrize("apart", [1, 2, 3, 4, 16, 64, 128, 512, 1000, 1024, 65536, 2 * CHUNK])
def test_neighbours_fall_independently(rate, apart):
    kept = mask(rate)
    assert correlation(kept[:-apart], kept[apart:]) < UNRELATED


def test_every_pattern_of_eight_neighbours_is_as_frequent_as_chance_has_it():
    patterns = sum(mask()[i::8].long() << i for i in range(8))
    counts, expected = torch.bincount(patterns, minlength=256), MANY / 8 / 256
    chi_square = ((counts - expected) ** 2 / expected).sum().item()
    assert abs(chi_square - 255) < 5 * math.sqrt(2 * 255)


@pytest.mark.parametrize("rate", [0.1, 0.5])
@pytest.mark.parametrize("part", ["seed", "rank", "update", "micro_batch", "place"])
def test_masks_of_other_keys_and_places_are_unrelated(part, rate):
    first = mask(rate)
    for other in (1, 2, 3, 7, 1000):
        assert correlation(first, mask(rate, **{part: other})) < UNRELATED


def test_keys_that_count_over_the_same_range_share_no_mask():
    first, second = (DropoutKey(seed=seed).at(0) for seed in (1, 2))
    counter = (1 << 32) - 1
    second = second & ~counter | first & counter
    shared = (kept([MANY], 0.5, key) for key in (first, second))
    assert (
        correlation(*shared) < 0.02
    )  # 1 without the salt; where ranges meet, in one pair of 2,000, so much is allowed


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_masks_of_other_calls_under_one_key_are_unrelated(rate):
    first, *others = (kept([MANY], rate, DropoutKey().at(3, call)) for call in (0, 1, 2, 3, 1000))
    assert all(correlation(first, other) < UNRELATED for other in others)


@pytest.mark.parametrize("part", ["seed", "rank", "update", "micro_batch"])
def test_every_part_of_the_key_changes_the_hash(part):
    key = DropoutKey()
    hashes = {replace(key, **{part: value}).at(place) for value in range(50) for place in range(20)}
    assert len(hashes) == 50 * 20
    assert all(0 <= mixed < 1 << 63 for mixed in hashes)


def test_the_same_key_and_place_drop_the_same_elements_whatever_was_drawn_between():
    x = torch.randn(33, 17)
    dropout = Dropout(0.3)
    key = share_key(dropout)
    key.update = 4
    before = dropout(x)
    torch.manual_seed(9)
    key.update = 5
    assert not torch.equal(dropout(x), before)
    key.update = 4
    assert torch.equal(dropout(x), before)


def test_calls_that_say_which_they_are_draw_anew_and_the_same_again():
    x, dropout = torch.ones(1000), Dropout(0.5)
    share_key(dropout)
    calls = [dropout(x, call) for call in (0, 1, 2)]
    assert len({tuple(call.tolist()) for call in calls}) == 3
    assert torch.equal(dropout(x, 1), calls[1]) and torch.equal(dropout(x), calls[0])


def test_a_dropout_without_a_key_draws_anew_each_time():
    x = torch.ones(1000)
    dropout = Dropout(0.3)
    assert not torch.equal(dropout(x), dropout(x))


def build(rate, keyed):
    """A dropout that draws from a key, or from torch's generator."""
    dropout = Dropout(rate)
    if keyed:
        share_key(dropout)
    return dropout


@keyed_or_not
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_mean_is_kept(dtype, keyed):
    x = torch.ones(MANY, dtype=dtype)
    for rate in (0.1, 0.5, 0.9):
        standard_error = math.sqrt(rate / (1 - rate) / MANY)
        rounding = torch.finfo(dtype).eps / 2 if dtype == torch.bfloat16 else 0
        assert build(rate, keyed)(x).float().mean().item() == pytest.approx(1, abs=4 * standard_error + rounding)


@keyed_or_not
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5, 7), (0, 4)])
def test_elements_are_zeroed_or_scaled_and_the_gradient_is_too(shape, dtype, keyed):
    x = torch.ones(shape, dtype=dtype, requires_grad=True)
    dropped = build(0.25, keyed)(x)
    assert dropped.shape == x.shape and dropped.dtype == dtype
    scale = torch.tensor(1 / 0.75, dtype=dtype)
    assert ((dropped == 0) | (dropped == scale)).all()
    (gradient,) = torch.autograd.grad(dropped.sum(), x)
    assert torch.equal(gradient, dropped)


def test_an_odd_count_drops_what_an_even_one_does():
    even, odd = (kept([n], 0.5, 1234567) for n in (100, 99))
    assert torch.equal(odd, even[:99])


def test_the_gradient_equals_finite_differences():
    dropout = Dropout(0.4)
    share_key(dropout)
    x = torch.randn(5, 7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(dropout, x)


def test_activation_checkpointing_recomputes_the_same_mask():
    x = torch.randn(64, 8, requires_grad=True)
    block = nn.Sequential(nn.Linear(8, 8), Dropout(0.5), nn.Linear(8, 8), Dropout(0.5))
    share_key(block)
    plain = torch.autograd.grad(block(x).square().sum(), x)
    again = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False, preserve_rng_state=False)
    assert_close(torch.autograd.grad(again.square().sum(), x), plain)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("shape", [(), (7,), (3, 5, 7), (0, 4)])
def test_relu_and_dropout_in_one_are_one_after_the_other(shape, dtype, monkeypatch):
    monkeypatch.setattr("regardant.layers.dropout.CHUNK", 4)
    dropout = build(0.25, keyed=True)
    x = torch.randn(shape, dtype=dtype, requires_grad=True)
    weigh = torch.randn(shape, dtype=dtype)
    together, apart = dropout.relu_and_drop(x), dropout(x.relu())
    assert torch.equal(together, apart)
    to_x = [torch.autograd.grad(output, x, weigh)[0] for output in (together, apart)]
    assert torch.equal(*to_x)


@keyed_or_not
def test_relu_and_dropout_in_one_obey_rate_and_mode(keyed):
    x = torch.randn(1000)
    assert torch.equal(build(0.0, keyed).relu_and_drop(x), x.relu())
    assert torch.equal(build(0.5, keyed).eval().relu_and_drop(x), x.relu())
    dropped, whole = build(0.5, keyed).relu_and_drop(x)[x > 0], x[x > 0]
    assert_close(dropped[dropped > 0], 2 * whole[dropped > 0])
    assert 0.4 < (dropped == 0).float().mean() < 0.6


@pytest.mark.parametrize(("rate", "training"), [(0.5, False), (0.0, True)])
def test_nothing_is_dropped_outside_training_or_at_rate_zero(rate, training):
    x = torch.randn(10)
    assert Dropout(rate).train(training)(x) is x


def test_sharing_a_key_numbers_the_places_and_moves_them_all():
    model = nn.Sequential(Dropout(0.5), nn.Sequential(Dropout(0.5), nn.ReLU()), Dropout(0.5))
    key = share_key(model)
    x = torch.ones(1000)
    places = [module for module in model.modules() if isinstance(module, Dropout)]
    before = [place(x) for place in places]
    key.update += 1
    masks = [*before, *(place(x) for place in places)]
    assert len({tuple(mask.tolist()) for mask in masks}) == 6


def test_the_rate_is_told():
    assert repr(Dropout(0.3)) == "Dropout(rate=0.3)"
