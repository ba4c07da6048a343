import pytest
import torch
from torch.testing import assert_close

from regardant.attention import View, masks
from regardant.attention.sparse import SparseConfig


def build(**settings):
    return SparseConfig(**settings).build(num_heads=2, head_size=8)


def union(length, window, stride, num_strides, num_global):
    met = torch.zeros(length, length).bool()
    for i in range(length):
        met[i, max(0, i - window) : i + window + 1] = True
        for step in range(-num_strides, num_strides + 1):
            if 0 <= i + step * stride < length:
                met[i, i + step * stride] = True
    met[:num_global] = True
    met[:, :num_global] = True
    return met


COVERING = {
    "window": {"window": 200, "stride": 3, "num_strides": 2, "num_global": 1},
    "strides": {"window": 1, "stride": 1, "num_strides": 200, "num_global": 0},
    "global": {"window": 1, "stride": 3, "num_strides": 2, "num_global": 200},
    "more global tokens than tokens": {"window": 0, "stride": 3, "num_strides": 0, "num_global": 999},
}

PATTERNS = [
    {"window": 5, "stride": 7, "num_strides": 3, "num_global": 2},
    {"window": 80, "stride": 16, "num_strides": 8, "num_global": 1},
    {"window": 0, "stride": 4, "num_strides": 2, "num_global": 0},
    {"window": 3, "stride": 4, "num_strides": 0, "num_global": 130},
]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("settings", COVERING.values(), ids=COVERING)
def test_patterns_that_cover_everything_are_exact_attention(draw, exact, settings, causal):
    tensors = draw(200)
    assert_close(build(**settings)(*tensors, View(causal=causal)), exact(*tensors, View(causal=causal)))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("settings", PATTERNS, ids=str)
def test_a_pair_in_several_patterns_is_counted_once(draw, exact, settings, causal):
    tensors, met = draw(300), union(300, **settings)
    attention = build(**settings)
    assert torch.equal(attention.pattern(torch.arange(300), torch.arange(300)), met)
    wanted = exact(*tensors, masks.combine(masks.pairs(met[None, None]), View(causal=causal)))
    assert_close(attention(*tensors, View(causal=causal)), wanted)


def test_a_decoder_keeps_the_global_keys_for_good(draw):
    attention = build(window=2, stride=3, num_strides=0, num_global=2)
    state = attention.start(40)
    for q, k, v in zip(*(x.split(1, 2) for x in draw(40)), strict=True):
        _, state = attention.step(q, k, v, state, View(causal=True))
    assert state.positions.tolist() == [0, 1, 38, 39]
