import copy
import math
from functools import partial

import pytest
import torch
from scipy.stats import entropy
from torch import nn

from regardant.data.vocabulary import EOS, PAD, SOS
from regardant.inspection import logit_lens
from regardant.models.decoder_only import DecoderOnlyConfig
from regardant.models.encoder_decoder import EncoderDecoderConfig
from regardant.models.heads import SequenceClassConfig
from regardant.models.hierarchical import HierarchicalConfig
from regardant.models.recurrent import RecurrentConfig
from regardant.models.representations import tokens
from tests.models import over_pairs, over_text

SOURCE = torch.tensor([[5, 6, 7, 8, EOS], [9, 5, EOS, PAD, PAD]])
TARGET = torch.tensor([[SOS, 9, 8, 7, EOS], [SOS, 6, 5, EOS, PAD]])
SIZES = {"d_model": 16, "num_heads": 2, "d_ff": 16, "dropout": 0.0, "max_length": 16}
NUM_LAYERS, REAL = 3, 7


def translator(**fields):
    stacks = {"encoder": {"num_layers": 1}, "decoder": {"num_layers": NUM_LAYERS}}
    torch.manual_seed(0)
    return over_pairs(EncoderDecoderConfig(preset=None, **SIZES, **stacks, **fields), 12).eval()


KINDS = [{"norm": "pre"}, {"norm": "post"}, {"residual": "none"}, {"normalisation": "rms_norm"}]


def read(model):
    return logit_lens(model, partial(model.scores, SOURCE, TARGET[:, :-1]), TARGET[:, 1:])


@pytest.mark.parametrize("fields", KINDS, ids=str)
def test_a_layer_says_what_a_decoder_that_ends_there_says(fields):
    model = translator(**fields)
    reading, real, written = read(model), TARGET[:, 1:] != PAD, TARGET[:, 1:]
    with torch.no_grad():
        final = model.scores(SOURCE, TARGET[:, :-1])[real].double().softmax(-1)
        for layers in range(NUM_LAYERS + 1):
            shorter = copy.deepcopy(model)
            shorter.decoder.layers = nn.ModuleList(shorter.decoder.layers[:layers])
            said = shorter.scores(SOURCE, TARGET[:, :-1])[real].double().softmax(-1)
            for place, token in enumerate(written[real].tolist()):
                order = said[place].argsort(descending=True).tolist()
                assert int(reading.rank[layers, place]) == order.index(token) + 1
                assert float(reading.probability[layers, place]) == pytest.approx(float(said[place, token]), rel=1e-4)
                nats = entropy(final[place], said[place])
                assert float(reading.divergence[layers, place]) == pytest.approx(nats, rel=1e-3, abs=1e-5)


def test_the_last_layer_says_what_the_model_says_and_padding_is_left_out():
    reading = read(translator())
    assert reading.rank.shape == reading.probability.shape == reading.divergence.shape == (NUM_LAYERS + 1, REAL)
    assert float(reading.divergence[-1].abs().max()) < 1e-5
    assert float(reading.divergence[0].min()) > 0


def test_reversible_streams_are_read_too():
    reading = read(translator(residual="reversible"))
    assert float(reading.divergence[-1].abs().max()) < 1e-5


def test_a_language_model_is_read_as_well():
    torch.manual_seed(0)
    model = over_text(DecoderOnlyConfig(num_layers=2, **SIZES), 12).eval()
    text = torch.tensor([[5, 6, 7, 8, 9]])
    reading = logit_lens(model, partial(model.scores, text[:, :-1]), text[:, 1:])
    assert reading.rank.shape == (3, 4)
    assert float(reading.divergence[-1].abs().max()) < 1e-5 and math.isfinite(float(reading.divergence.sum()))


def test_a_hierarchical_model_whose_head_reads_two_stacks_is_refused():
    config = HierarchicalConfig(**SIZES, num_layers=1, segment=2)
    model = config.build(tokens(12), lambda d_model: SequenceClassConfig().build(d_model, 3)).eval()
    with pytest.raises(ValueError, match="a hierarchical model adds two stacks: it has no residual stream that leads"):
        logit_lens(model, partial(model.scores, input=SOURCE), torch.tensor([0, 2]))


def test_what_has_no_stack_of_layers_is_refused_and_so_are_two_passes():
    recurrent = over_pairs(RecurrentConfig(embedding_size=8, hidden_size=8), 12).eval()
    with pytest.raises(ValueError, match="RecurrentEncoderDecoder has no residual stream that leads to its head"):
        read(recurrent)
    model = translator()

    def twice():
        model.scores(SOURCE, TARGET[:, :-1])
        return model.scores(SOURCE, TARGET[:, :-1])

    with pytest.raises(ValueError, match="the lens reads one pass"):
        logit_lens(model, twice, TARGET[:, 1:])
    assert not model.decoder.layers[0]._forward_hooks
