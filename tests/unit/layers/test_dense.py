import pytest
import torch
from torch.testing import assert_close

from regardant.attention import View
from regardant.layers.dense import DenseMixer

D_MODEL, LENGTH, MAX_LENGTH = 4, 6, 9


def build(causal):
    torch.manual_seed(0)
    layer = DenseMixer(D_MODEL, MAX_LENGTH, causal=causal)
    torch.nn.init.normal_(layer.bias)
    return layer


@pytest.mark.parametrize("causal", [False, True])
def test_it_is_a_weight_for_each_pair_of_positions(causal):
    """out_i = sum_j w_ij value_j + b_i, pair by pair."""
    layer, x = build(causal), torch.randn(1, LENGTH, D_MODEL)
    values = layer.value(x[0])
    mixed = [
        sum(layer.weight[i, j] * values[j] for j in range(i + 1 if causal else LENGTH)) + layer.bias[i]
        for i in range(LENGTH)
    ]
    assert_close(layer(x, View())[0], layer.output(torch.stack(mixed)))


@pytest.mark.parametrize("portions", [[1] * LENGTH, [2, 3, 1]], ids=str)
def test_tokens_of_a_step_do_not_see_each_other_s_future(portions):
    layer, x = build(causal=True), torch.randn(2, LENGTH, D_MODEL)
    cache, said = layer.start(LENGTH), []
    with torch.no_grad():
        for newest in x.split(portions, 1):
            said.append(layer(newest, View(causal=True), cache))
        assert_close(torch.cat(said, 1), layer(x, View(causal=True)))


def test_more_tokens_than_weights_are_refused():
    with pytest.raises(ValueError, match=r"^dense weights end at 9 tokens and 10 were given: raise max_length$"):
        build(causal=True)(torch.randn(1, 10, D_MODEL), View())
