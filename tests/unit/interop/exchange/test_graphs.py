"""Models as functions of plain tensors score token by token, with keys and values passed on, as they do at once."""

import pytest
import torch
from torch.testing import assert_close

from regardant.interop.graphs.modules import Continuation, SameIds, TranslatorDecoder, TranslatorEncoder, traceable
from regardant.models.decoder_only import DecoderOnlyConfig
from regardant.models.encoder_decoder import EncoderDecoderConfig
from regardant.positions import PositionsConfig
from tests.models import over_pairs, over_text

VOCAB_SIZE, LENGTH = 12, 9
SIZES = {"d_model": 16, "num_heads": 4, "num_key_heads": 2, "d_ff": 32, "max_length": 16, "dropout": 0.0}
POSITIONS = ["none", "sinusoidal", "learned", "rotary", "alibi", "t5", "relative_bias"]


def varied(model):
    """The model with weights that are far from zero, so that a bias that is left out shows."""
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return model.eval()


def nothing(model, rows):
    """Keys and values of no token."""
    layers = len(model.decoder.layers)
    return [torch.zeros(layers, rows, SIZES["num_key_heads"], 0, SIZES["d_model"] // SIZES["num_heads"])] * 2


@pytest.fixture
def target():
    return torch.randint(5, VOCAB_SIZE, (3, LENGTH))


@pytest.mark.parametrize("positions", POSITIONS)
def test_a_translator_scores_step_by_step_as_the_model(positions, target):
    kind = PositionsConfig.kinds()[positions]()
    stacks = {"encoder": {"num_layers": 2}, "decoder": {"num_layers": 2}}
    model = varied(over_pairs(EncoderDecoderConfig(preset=None, positions=kind, **SIZES, **stacks), VOCAB_SIZE))
    source = torch.randint(5, VOCAB_SIZE, (3, 7))
    source[1, 4:] = source[2, 2:] = 0  # padding
    with traceable(model) as copied:
        memory = TranslatorEncoder(copied, SameIds())(source)
        decoder, found = TranslatorDecoder(copied, SameIds()), []
        keys, values = nothing(model, len(source))
        for tokens in target.split(1, 1):
            scores, keys, values = decoder(tokens, keys, values, *memory)
            found.append(scores)
        assert_close(torch.cat(found, 1), model.scores(source, target), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("positions", POSITIONS)
def test_a_language_model_scores_step_by_step_as_the_model(positions, target):
    kind = PositionsConfig.kinds()[positions]()
    model = varied(over_text(DecoderOnlyConfig(positions=kind, num_layers=2, **SIZES), VOCAB_SIZE))
    with traceable(model) as copied:
        continuation, found = Continuation(copied, SameIds()), []
        keys, values = nothing(model, len(target))
        for tokens in target.split([4, 1, 3, 1], 1):  # several tokens at once after others, too
            scores, keys, values = continuation(tokens, keys, values)
            found.append(scores)
        assert_close(torch.cat(found, 1), model.scores(target), rtol=1e-4, atol=1e-4)
