"""Recurrent decoders read, beside each token, the vectors that their papers name."""

import pytest
import torch
from torch.testing import assert_close

from regardant.data.vocabulary import EOS, SOS
from regardant.models.recurrent import RecurrentConfig
from regardant.models.recurrent.decoders import ChoConfig, LuongConfig
from tests.models import over_pairs

SOURCE = torch.tensor([[5, 6, 7, 8, EOS], [9, 5, 6, 6, EOS]])
TARGET = torch.tensor([[SOS, 9, 8, 7, 6], [SOS, 6, 5, 9, 9]])
EMBEDDING_SIZE, HIDDEN_SIZE = 8, 6


def build(decoder):
    """Return a model of two layers, and a list of the vectors that its decoder reads beside each token."""
    torch.manual_seed(0)
    sizes = {"embedding_size": EMBEDDING_SIZE, "hidden_size": HIDDEN_SIZE, "num_layers": 2, "dropout": 0.0}
    model = over_pairs(RecurrentConfig(decoder=decoder, **sizes), 12).eval()
    read = []
    model.decoder.stack.register_forward_hook(lambda module, given, answer: read.append(given[0][..., EMBEDDING_SIZE:]))
    return model, read


@torch.no_grad()
def test_cho_s_context_is_the_last_state_of_the_encoder_s_top_layer():
    """Cho et al. 2014, section 2.2: c is read at every step."""
    model, read = build(ChoConfig())
    model.scores(SOURCE, TARGET)
    context = model.encode(SOURCE).state[0][-1]
    assert_close(torch.cat(read, 1), context[:, None].expand(-1, TARGET.shape[1], -1))


@pytest.mark.parametrize("input_feeding", [True, False])
@torch.no_grad()
def test_luong_s_decoder_reads_the_attentional_vector_of_the_step_before(input_feeding):
    """Luong et al. 2015, section 3.3."""
    model, read = build(LuongConfig(input_feeding=input_feeding))
    tokens = torch.randn(2, TARGET.shape[1], EMBEDDING_SIZE)
    attentional = model.decoder.run(tokens, model.encode(SOURCE))
    if input_feeding:
        expected = torch.cat([torch.zeros_like(attentional[:, :1]), attentional[:, :-1]], 1)
        assert_close(torch.cat(read, 1), expected)
    else:
        assert torch.cat(read, 1).numel() == 0
