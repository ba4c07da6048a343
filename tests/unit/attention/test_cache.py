import pytest
import torch

from regardant.attention.cache import AppendedKeys


def test_appended_keys_come_back_in_order():
    k, v = torch.randn(2, 4, 5, 8), torch.randn(2, 4, 5, 6)
    state = AppendedKeys(capacity=7)
    for at in (slice(0, 2), slice(2, 3), slice(3, 5)):
        state = state.append(k[:, :, at], v[:, :, at])
    assert state.length == 5 and state.keys.shape[2] == 7
    assert torch.equal(state.keys[:, :, :5], k) and torch.equal(state.values[:, :, :5], v)


@pytest.mark.parametrize("rows", [[1, 0, 1], [2], [0, 0, 1, 1, 2, 2]])
def test_appended_keys_are_reordered_by_row(rows):
    k = torch.randn(3, 4, 5, 8)
    state = AppendedKeys(capacity=6).append(k, -k).reorder(torch.tensor(rows))
    assert torch.equal(state.keys[:, :, :5], k[rows]) and torch.equal(state.values[:, :, :5], -k[rows])
    later = state.append(torch.ones(len(rows), 4, 1, 8), torch.ones(len(rows), 4, 1, 8))
    assert later.length == 6 and later.keys[:, :, 5].eq(1).all()
