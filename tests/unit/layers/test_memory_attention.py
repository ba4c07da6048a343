import pytest
import torch
from torch.testing import assert_close

from regardant.attention import ScaledDotProductConfig
from regardant.attention.additive import AdditiveConfig
from regardant.attention.general import GeneralConfig
from regardant.attention.lsh import LSHConfig
from regardant.layers.memory_attention import MemoryAttention

NUM_QUERIES, LENGTH = 3, 5
REAL = torch.tensor([[True] * LENGTH, [True, True, False, False, False]])


def build(config, query_size=6, key_size=6, size=None):
    torch.manual_seed(0)
    return MemoryAttention(query_size, key_size, config, size=size)


def asked(layer, query_size=6, key_size=6):
    """States, a memory, and the context of each state."""
    generator = torch.Generator().manual_seed(1)
    states = torch.randn(2, NUM_QUERIES, query_size, generator=generator)
    memory = torch.randn(2, LENGTH, key_size, generator=generator)
    return states, memory, layer(states, layer.project(memory, REAL), torch.arange(NUM_QUERIES))


def contexts(score, states, memory):
    """Pair by pair: softmax over the real tokens of `score`, times the memory."""
    found = torch.zeros(*states.shape[:2], memory.shape[2])
    for b, t in torch.cartesian_prod(*(torch.arange(n) for n in states.shape[:2])).tolist():
        real = memory[b, REAL[b]]
        scores = torch.stack([score(states[b, t], key) for key in real])
        found[b, t] = torch.softmax(scores, 0) @ real
    return found


def test_additive_attention_takes_queries_and_keys_of_unequal_sizes():
    """Bahdanau et al. 2015, appendix A.1.2: v . tanh(W s + U h)."""
    layer = build(AdditiveConfig(), query_size=4, key_size=7, size=3)
    states, memory, found = asked(layer, 4, 7)
    v, w, u = layer.mechanism.weight[0], layer.query.weight, layer.key
    expected = contexts(lambda s, h: v @ torch.tanh(w @ s + u.weight @ h + u.bias), states, memory)
    assert found.shape == (2, NUM_QUERIES, 7)
    assert_close(found, expected)


def test_luong_s_concat_is_projected_though_no_size_is_given():
    """Luong et al. 2015, section 3.1: v . tanh(W [h_t; h_s])."""
    layer = build(AdditiveConfig())
    states, memory, found = asked(layer)
    matrix = torch.cat([layer.query.weight, layer.key.weight], 1)
    v, bias = layer.mechanism.weight[0], layer.key.bias
    expected = contexts(lambda s, h: v @ torch.tanh(matrix @ torch.cat([s, h]) + bias), states, memory)
    assert_close(found, expected)


@pytest.mark.parametrize("config", [ScaledDotProductConfig(scaled=False), GeneralConfig()], ids=["dot", "general"])
def test_without_a_size_states_meet_as_they_are(config):
    layer = build(config)
    assert not [name for name, _ in layer.named_parameters() if not name.startswith("mechanism")]
    states, memory, found = asked(layer)
    matrix = layer.mechanism.weight[0] if config.kind == "general" else torch.eye(6)
    assert_close(found, contexts(lambda s, h: s @ matrix @ h, states, memory))


def test_unequal_sizes_that_are_not_projected_are_refused():
    with pytest.raises(
        ValueError, match=r"^queries of 4 numbers cannot be compared with keys of 7 by scaled_dot_product: choose"
    ):
        build(ScaledDotProductConfig(), query_size=4, key_size=7)


def test_what_compares_a_sequence_with_itself_is_refused():
    with pytest.raises(ValueError, match=r"^lsh compares a sequence with itself: it cannot be a cross_attention$"):
        build(LSHConfig())
