"""Embeddings of Transformers: their scale, and tied matrices (Vaswani et al. 2017, section 3.4)."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regardant.data.vocabulary import EOS, PAD, SOS
from regardant.models import EncoderDecoderConfig
from regardant.models.decoder_only import DecoderOnlyConfig
from tests.models import over_pairs, over_text

VOCAB_SIZE, D_MODEL = 12, 24
SOURCE = torch.tensor([[5, 6, 7, 8, EOS], [9, 5, EOS, PAD, PAD]])
TARGET = torch.tensor([[SOS, 9, 8, 7, 6], [SOS, 6, 5, 9, 9]])
SIZES = {"d_model": D_MODEL, "num_heads": 2, "d_ff": 32, "dropout": 0.0}


def encoder_decoder(tied, **fields):
    stacks = {"encoder": {"num_layers": 1}, "decoder": {"num_layers": 1}}
    config = EncoderDecoderConfig(preset=None, tie_embeddings=tied, **SIZES, **stacks, **fields)
    return over_pairs(config, VOCAB_SIZE).eval()


def decoder_only(tied, **fields):
    return over_text(DecoderOnlyConfig(num_layers=1, tie_embeddings=tied, **SIZES, **fields), VOCAB_SIZE).eval()


@pytest.mark.parametrize(
    ("build", "inputs"),
    [(encoder_decoder, (SOURCE, TARGET)), (decoder_only, (TARGET,))],
    ids=["encoder-decoder", "decoder-only"],
)
def test_scaled_embeddings_equal_a_table_sqrt_of_d_model_times_as_large(build, inputs):
    scaled, plain = (build("none", scale_embeddings=scale) for scale in (True, False))
    plain.load_state_dict(scaled.state_dict())
    with torch.no_grad():
        assert not torch.allclose(plain.scores(*inputs), scaled.scores(*inputs))
        for module in plain.modules():
            if isinstance(module, nn.Embedding):
                module.weight *= math.sqrt(D_MODEL)
        assert_close(plain.scores(*inputs), scaled.scores(*inputs))


@pytest.mark.parametrize(
    ("build", "matrices"),
    [(encoder_decoder, {"none": 3, "target": 2, "all": 1}), (decoder_only, {"none": 2, "all": 1})],
    ids=["encoder-decoder", "decoder-only"],
)
def test_tied_embeddings_and_output_share_one_matrix(build, matrices):
    counts = {tied: sum(parameter.numel() for parameter in build(tied).parameters()) for tied in matrices}
    fewest = min(counts.values())
    assert {tied: 1 + (count - fewest) / (VOCAB_SIZE * D_MODEL) for tied, count in counts.items()} == matrices
