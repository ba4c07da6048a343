import pytest
import torch
from torch.testing import assert_close

from regardant.attention import View, masks
from regardant.attention.strided import StridedConfig, strided_tiles


def build(stride, num_strides):
    return StridedConfig(stride=stride, num_strides=num_strides).build(num_heads=2, head_size=8)


def comb(length, stride, num_strides):
    """Pair by pair, from what the settings say."""
    met = torch.zeros(length, length).bool()
    for i in range(length):
        for step in range(-num_strides, num_strides + 1):
            if 0 <= i + step * stride < length:
                met[i, i + step * stride] = True
    return met


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("num_strides", [199, "all"])
def test_a_stride_of_one_over_everything_is_exact_attention(draw, exact, num_strides, causal):
    tensors = draw(200)
    assert_close(build(1, num_strides)(*tensors, View(causal=causal)), exact(*tensors, View(causal=causal)))


@pytest.mark.parametrize(("stride", "num_strides"), [(1, 3), (2, 1), (3, 40), (7, 0), (64, 2), (300, 5)])
def test_a_query_sees_the_teeth_of_its_comb(draw, exact, stride, num_strides):
    tensors, met = draw(210), comb(210, stride, num_strides)
    attention = build(stride, num_strides)
    assert torch.equal(attention.pattern(torch.arange(210), torch.arange(210)), met)
    assert_close(attention(*tensors), exact(*tensors, masks.pairs(met[None, None])))


def test_all_strides_reach_to_the_ends(draw, exact):
    tensors = draw(150)
    met = comb(150, 4, 150)
    assert_close(build(4, "all")(*tensors), exact(*tensors, masks.pairs(met[None, None])))


@pytest.mark.parametrize(("length", "stride"), [(1, 3), (5, 8), (100, 7), (400, 2)])
def test_tiles_ask_each_query_once(length, stride):
    asked = torch.zeros(length)
    for rows, _ in strided_tiles(length, stride, reach=10 * stride, causal=False):
        asked[rows] += 1
    assert (asked == 1).all()
