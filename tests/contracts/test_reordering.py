"""Rows of every decoding state are copied by `index_select`, which takes a quarter of the time of an index."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from regardant.attention.cache import AppendedKeys
from regardant.attention.kernelised import Sums
from regardant.attention.linear import LinearAttentionConfig
from regardant.attention.rolling import RollingKeys
from regardant.layers.cache import PrecedingTokens
from regardant.layers.dense import DenseCache
from regardant.layers.memory_attention import ProjectedStates
from regardant.models.one_to_one import OneToOneState
from regardant.models.recurrent.decoders import DecoderMemory

MORE, FEWER = torch.tensor([2, 0, 0, 1]), torch.tensor([2, 1])


class NoIndex(TorchDispatchMode):
    """Fails where rows of a tensor of several dimensions are taken by an index."""

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        assert function is not torch.ops.aten.index.Tensor or arguments[0].dim() == 1, "an index of rows"
        return function(*arguments, **(options or {}))


def numbers(*shape):
    return torch.randn(3, *shape, generator=torch.Generator().manual_seed(0))


def appended(rows):
    x = numbers(2, 4, 5)
    state = AppendedKeys(6).append(x, -x).reorder(rows)
    return [(state.keys[:, :, :4], x), (state.values[:, :, :4], -x)]


def rolling(rows):
    x = numbers(2, 4, 5)
    state = RollingKeys(9).append(x, -x).reorder(rows)
    return [(state.keys, x), (state.values, -x)]


def sums(rows):
    values, features = numbers(2, 4, 5), numbers(2, 4)
    state = LinearAttentionConfig().build(num_heads=2, head_size=4).reorder(Sums(values, features), rows)
    return [(state.values, values), (state.features, features)]


def preceding(rows):
    x = numbers(2, 5)
    cache = PrecedingTokens(2, x)
    cache.reorder(rows)
    return [(cache.tokens, x)]


def dense(rows):
    x = numbers(4, 5)
    cache = DenseCache(6)
    cache.append(x.clone())
    cache.reorder(rows)
    newest = torch.ones(len(rows), 1, 5)
    return [(cache.append(newest)[:, :4], x)]


def projected(rows):
    x, real = numbers(1, 4, 5), numbers(4) > 0
    state = ProjectedStates(x, -x, real).keep(rows)
    return [(state.keys, x), (state.values, -x), (state.real, real)]


def recurrent(rows):
    x = numbers(5)
    state = DecoderMemory((x[None], -x[None]), attentional=2 * x, context=3 * x).take(rows)
    return [(state.state[0][0], x), (state.state[1][0], -x), (state.attentional, 2 * x), (state.context, 3 * x)]


def one_to_one(rows):
    source, x = numbers(4).abs().long(), numbers(5)
    state = OneToOneState(source, (x[None],))
    state.keep(rows)
    return [(state.source, source), (state.state[0][0], x)]


@pytest.mark.parametrize("rows", [MORE, FEWER], ids=["more", "fewer"])
@pytest.mark.parametrize(
    "reordered", [appended, rolling, sums, preceding, dense, projected, recurrent, one_to_one], ids=lambda f: f.__name__
)
def test_rows_are_copied_by_index_select(reordered, rows):
    with NoIndex():
        found = reordered(rows)
    assert all(torch.equal(mine, before[rows]) for mine, before in found)


def test_a_dense_cache_moves_what_is_written_and_no_more():
    cache = DenseCache(1000)
    cache.append(numbers(4, 5))
    before = cache.values.data_ptr()
    cache.reorder(FEWER)
    assert cache.values.data_ptr() == before and cache.values.shape == (2, 1000, 5)
