import pytest
import torch
from torch.testing import assert_close

from regardant.attention import EVERYTHING, ScaledDotProductConfig
from regardant.attention.additive import AdditiveConfig
from regardant.attention.performer import PerformerConfig
from regardant.inspection.interventions import ScaleHead, intervene
from regardant.inspection.pruning import prune_heads
from regardant.layers.multi_head import HeadShape, SelfAttention
from regardant.positions.none import NoPositions

X = torch.randn(2, 5, 12, generator=torch.Generator().manual_seed(0))


def layer(config=None, projections="separate"):
    torch.manual_seed(0)
    shape = HeadShape(12, 3, 3, 4, 5 if projections == "separate" else 4)
    return SelfAttention(shape, config or ScaledDotProductConfig(), NoPositions(), projections, causal=False).eval()


def test_a_layer_without_heads_answers_as_one_with_them_switched_off():
    whole = layer()
    small = prune_heads(whole, [0, 2])
    with intervene(torch.nn.ModuleDict({"a": whole}), ScaleHead("a", head=0), ScaleHead("a", head=2)):
        expected = whole(X, EVERYTHING)
    assert_close(small(X, EVERYTHING), expected)
    count = [sum(one.numel() for one in module.parameters()) for module in (small, whole)]
    assert count[0] - 12 == (count[1] - 12) // 3  # the bias of the output stays


def test_a_pruned_layer_has_the_types_of_the_whole_one_and_draws_nothing():
    whole = layer().bfloat16().requires_grad_(False)
    whole.output.bias.requires_grad_(True)
    state = torch.get_rng_state()
    small = prune_heads(whole, [1])
    assert torch.equal(torch.get_rng_state(), state)
    assert {one.dtype for one in small.parameters()} == {torch.bfloat16}
    assert [name for name, one in small.named_parameters() if one.requires_grad] == ["output.bias"]
    assert (small.query_key_value.out_features, small.output.in_features) == (2 * (4 + 4 + 5), 2 * 5)
    assert torch.equal(small.output.weight, torch.cat([whole.output.weight[:, :5], whole.output.weight[:, 10:]], 1))
    assert torch.equal(small.query_key_value.bias[:4], whole.query_key_value.bias[:4])


@pytest.mark.parametrize("heads", [[0, 1, 2], [3], [-1]])
def test_all_heads_or_heads_that_are_not_there_are_refused(heads):
    with pytest.raises(ValueError, match="cannot be pruned from 3"):
        prune_heads(layer(), heads)


def test_heads_with_weights_elsewhere_are_refused():
    with pytest.raises(ValueError, match="projections=separate"):
        prune_heads(layer(projections="all"), [0])
    with pytest.raises(ValueError, match="switch heads off by ScaleHead"):
        prune_heads(layer(AdditiveConfig()), [0])
    with pytest.raises(ValueError, match="switch heads off by ScaleHead"):
        prune_heads(layer(PerformerConfig()), [0])
