"""Truncated back-propagation through time: no gradient passes a cut, through states or through input feeding."""

import pytest
import torch

from regardant.data.vocabulary import EOS, SOS
from regardant.models.recurrent import RecurrentConfig
from regardant.models.recurrent.decoders import BahdanauConfig, ChoConfig, LuongConfig, SutskeverConfig
from tests.models import over_pairs

SOURCE = torch.tensor([[5, 6, 7, 8, EOS]])
TARGET = torch.tensor([[SOS, 9, 8, 7, 6]])
DECODERS = {
    "sutskever": SutskeverConfig(),
    "cho": ChoConfig(),
    "bahdanau": BahdanauConfig(),
    "luong": LuongConfig(),
    "luong without input feeding": LuongConfig(input_feeding=False),
}


def tokens_with_gradient(decoder, bptt):
    """Return 1 for each target token to which the last logits have a gradient, else 0."""
    torch.manual_seed(0)
    sizes = {"embedding_size": 8, "hidden_size": 6, "num_layers": 2, "dropout": 0.0}
    model = over_pairs(RecurrentConfig(decoder=decoder, bptt=bptt, **sizes), 12)
    vectors = []
    model.target.written.register_forward_hook(lambda module, given, values: vectors.append(values))
    logits = model.scores(SOURCE, TARGET)
    (gradient,) = torch.autograd.grad(logits[:, -1].square().sum(), vectors)
    return [int(of_token.any()) for of_token in gradient[0]]


@pytest.mark.parametrize("decoder", DECODERS.values(), ids=DECODERS)
def test_a_gradient_ends_at_the_cut_and_nowhere_else(decoder):
    assert tokens_with_gradient(decoder, None) == [1, 1, 1, 1, 1]
    assert tokens_with_gradient(decoder, 2) == [0, 0, 0, 0, 1]
    assert tokens_with_gradient(decoder, 3) == [0, 0, 0, 1, 1]
