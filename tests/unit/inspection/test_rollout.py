from itertools import combinations

import pytest
import torch
from torch.testing import assert_close

from regardant.inspection import flow, rollout
from regardant.inspection.rollout import with_residual


def attention(num_layers, num_heads, size, *, causal=False):
    torch.manual_seed(size)
    scores = 2 * torch.randn(num_layers, num_heads, size, size)
    if causal:
        scores = scores.masked_fill(torch.ones(size, size).triu(1).bool(), -torch.inf)
    return scores.softmax(-1)


def test_rollout_is_the_sum_over_all_paths():
    weights = attention(3, 2, 4)
    layers = 0.5 * weights.double().mean(1) + 0.5 * torch.eye(4, dtype=torch.float64)
    found = rollout(weights)
    for top in range(4):
        for bottom in range(4):
            paths = sum(layers[2, top, a] * layers[1, a, b] * layers[0, b, bottom] for a in range(4) for b in range(4))
            assert float(found[2, top, bottom]) == pytest.approx(float(paths))
    assert_close(found[0], layers[0])


@pytest.mark.parametrize("causal", [False, True])
def test_rows_of_rollout_sum_to_one_and_the_future_gives_nothing(causal):
    found = rollout(attention(4, 2, 6, causal=causal))
    assert_close(found.sum(-1), torch.ones(4, 6, dtype=torch.float64))
    assert bool(found.triu(1).any()) != causal


def test_a_row_without_weight_passes_its_token_on():
    weights = attention(1, 1, 3)
    weights[0, 0, 1] = 0
    assert rollout(weights)[0, 1].tolist() == [0, 1, 0]


def smallest_cut(layers, top, bottom):
    """Of all ways to cut the nodes in two with the source in one part and the sink in the other, the cheapest."""
    depth, size = len(layers), layers.shape[-1]
    nodes = [(level, i) for level in range(depth + 1) for i in range(size)]
    source, sink = (depth, top), (0, bottom)
    others = [node for node in nodes if node not in (source, sink)]
    best = torch.inf
    for count in range(len(others) + 1):
        for chosen in combinations(others, count):
            part = {source, *chosen}
            cut = sum(
                float(layers[level - 1, i, j])
                for level, i in part
                if level
                for j in range(size)
                if (level - 1, j) not in part
            )
            best = min(best, cut)
    return best


@pytest.mark.parametrize(("num_layers", "size"), [(2, 2), (2, 3), (3, 2)])
def test_flow_is_the_smallest_cut(num_layers, size):
    weights = attention(num_layers, 2, size)
    layers, found = with_residual(weights), flow(weights)
    for top in range(size):
        for bottom in range(size):
            assert float(found[top, bottom]) == pytest.approx(smallest_cut(layers, top, bottom), abs=1e-6)


def test_flow_through_one_layer_is_the_layer():
    weights = attention(1, 2, 5)
    assert_close(flow(weights), with_residual(weights)[0], rtol=0, atol=1e-7)
