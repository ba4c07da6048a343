import pytest
import torch
from torch.testing import assert_close

from regardant.attention import View, masks
from regardant.attention.segment import SegmentConfig


def build(segment, memory):
    return SegmentConfig(segment=segment, memory=memory).build(num_heads=2, head_size=8)


def blocks(length, segment, memory):
    met = torch.zeros(length, length).bool()
    for i in range(length):
        mine = i // segment
        for of in range(max(0, mine - memory), mine + 1):
            met[i, of * segment : (of + 1) * segment] = True
    return met


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("segment", [300, 1000])
def test_one_segment_is_exact_attention(draw, exact, segment, causal):
    tensors = draw(300)
    assert_close(build(segment, 0)(*tensors, View(causal=causal)), exact(*tensors, View(causal=causal)))


def test_memory_of_all_segments_is_causal_attention_where_the_future_is_hidden(draw, exact):
    tensors = draw(300)
    assert_close(build(16, 18)(*tensors, View(causal=True)), exact(*tensors, View(causal=True)))


@pytest.mark.parametrize(("segment", "memory"), [(1, 0), (1, 3), (30, 0), (50, 1), (128, 1), (200, 2)])
def test_a_query_sees_its_segment_and_those_it_remembers(draw, exact, segment, memory):
    tensors, met = draw(410), blocks(410, segment, memory)
    attention = build(segment, memory)
    assert torch.equal(attention.pattern(torch.arange(410), torch.arange(410)), met)
    assert_close(attention(*tensors), exact(*tensors, masks.pairs(met[None, None])))
