import pytest
import torch

from regardant.attention import View
from regardant.attention.rolling import RollingKeys
from regardant.attention.segment import SegmentConfig
from regardant.attention.sparse import SparseConfig
from regardant.attention.strided import StridedConfig
from regardant.attention.window import WindowConfig

BOUNDED = {
    "window": (WindowConfig(window=4), 4),
    "window of nothing": (WindowConfig(window=0), 0),
    "strided": (StridedConfig(stride=3, num_strides=2), 6),
    "sparse": (SparseConfig(window=2, stride=3, num_strides=2, num_global=2), 6 + 2),
    "segment": (SegmentConfig(segment=3, memory=1), 6),
}


def numbered(start, end):
    """Keys [1, 1, T, 1] that are their positions."""
    return torch.arange(start, end).float()[None, None, :, None]


@pytest.mark.parametrize("portion", [1, 7])
@pytest.mark.parametrize(("config", "most"), BOUNDED.values(), ids=BOUNDED)
def test_the_cache_never_grows_past_what_can_be_seen(draw, config, most, portion):
    attention = config.build(num_heads=2, head_size=8)
    state, sizes = attention.start(42), []
    for q, k, v in zip(*(x.split(portion, 2) for x in draw(42)), strict=True):
        _, state = attention.step(q, k, v, state, View(causal=True))
        assert state.keys.shape[2] == state.values.shape[2] == len(state.positions)
        sizes.append(len(state.positions))
    assert max(sizes) == sizes[-1] == most
    assert state.keys.untyped_storage().nbytes() == state.keys.numel() * 8


def test_the_newest_keys_are_kept_and_the_very_first():
    state = RollingKeys(reach=3, first=2)
    for start, end in ((0, 1), (1, 3), (3, 8), (8, 9)):
        state = state.append(numbered(start, end), -numbered(start, end)).forget()
    assert state.positions.tolist() == state.keys.flatten().tolist() == [0, 1, 6, 7, 8]
    assert state.values.flatten().tolist() == [0, -1, -6, -7, -8]
    assert state.length == 9


def test_nothing_is_forgotten_while_there_is_room():
    state = RollingKeys(reach=3).append(numbered(0, 3), numbered(0, 3)).forget()
    assert state.positions.tolist() == [0, 1, 2]


def test_the_newest_queries_stand_last():
    state = RollingKeys(reach=2).append(numbered(0, 5), numbered(0, 5)).forget().append(numbered(5, 7), numbered(5, 7))
    view = state.view(View(causal=True), 2)
    assert view.causal
    assert view.query_positions.tolist() == [5, 6]
    assert view.key_positions.tolist() == [3, 4, 5, 6]


def test_rows_are_reordered_together():
    keys = torch.randn(3, 2, 4, 5)
    state = RollingKeys(reach=9).append(keys, -keys).reorder(torch.tensor([2, 0, 0, 1]))
    assert torch.equal(state.keys, keys[[2, 0, 0, 1]]) and torch.equal(state.values, -keys[[2, 0, 0, 1]])
    assert state.length == 4
