from functools import partial

import pytest
import torch
from scipy.stats import spearmanr

from regardant.data.vocabulary import EOS, PAD, SOS
from regardant.inspection import Patch, attention_places, head_importance, intervene
from regardant.inspection.importance import by_gradient
from regardant.models.decoder_only import DecoderOnlyConfig
from regardant.models.encoder_decoder import EncoderDecoderConfig
from regardant.models.recurrent import RecurrentConfig
from regardant.models.recurrent.decoders import LuongConfig
from tests.models import loss_of_pairs, loss_of_text, over_pairs, over_text

SOURCE = torch.tensor([[5, 6, 7, 8, EOS], [9, 5, EOS, PAD, PAD]])
TARGET = torch.tensor([[SOS, 9, 8, 7, EOS], [SOS, 6, 5, EOS, PAD]])
TEXT = torch.tensor([[5, 6, 7, 8, 9], [9, 5, 7, 7, 6]])
SIZES = {"d_model": 16, "num_heads": 4, "d_ff": 16, "dropout": 0.0, "max_length": 16}


def transformer():
    stacks = {"encoder": {"num_layers": 2}, "decoder": {"num_layers": 2}}
    model = over_pairs(EncoderDecoderConfig(preset=None, **SIZES, **stacks), 12)
    return model, lambda rows: partial(loss_of_pairs, model, SOURCE[rows], TARGET[rows])


def recurrent():
    sizes = {"embedding_size": 8, "hidden_size": 8, "dropout": 0.0}
    model = over_pairs(RecurrentConfig(decoder=LuongConfig(), **sizes), 12)
    return model, lambda rows: partial(loss_of_pairs, model, SOURCE[rows], TARGET[rows])


def decoder_only():
    model = over_text(DecoderOnlyConfig(num_layers=2, **SIZES), 12)
    return model, lambda rows: partial(loss_of_text, model, TEXT[rows])


@pytest.fixture(params=[transformer, recurrent, decoder_only], ids=lambda make: make.__name__)
def made(request):
    """A model with random weights, and what runs it over some of its two sentences."""
    torch.manual_seed(0)
    model, run = request.param()
    return model.eval(), run


def test_the_gradient_is_that_of_a_factor_of_each_head_sentence_by_sentence(made):
    model, run = made
    for attentions in attention_places(model).values():
        found = by_gradient(model, [run(slice(None))], attentions)
        count = run(slice(None))().count
        for layer, attention in enumerate(attentions):
            expected = torch.zeros(found.shape[1])
            for sentence in range(2):
                factors = torch.ones(found.shape[1], 1, 1, requires_grad=True)
                with intervene(model, Patch(f"{attention}.mixed", lambda x, by=factors: x * by)):
                    (gradient,) = torch.autograd.grad(run(slice(sentence, sentence + 1))().total, factors)
                expected += gradient.flatten().abs()
            torch.testing.assert_close(found[layer], expected / count, rtol=1e-4, atol=1e-6)
        assert (found > 0).any()


def test_the_gradient_is_that_of_the_loss_without_label_smoothing_and_z_loss():
    def made(**head):
        torch.manual_seed(0)
        return over_text(DecoderOnlyConfig(num_layers=2, **SIZES), 12, **head).eval()

    def found(model):
        (attentions,) = attention_places(model).values()
        return by_gradient(model, [partial(loss_of_text, model, TEXT)], attentions)

    smoothed = made(label_smoothing=0.4, z_loss=0.1)
    torch.testing.assert_close(found(smoothed), found(made()))
    with pytest.raises(ValueError, match="a pass that fails"):
        by_gradient(smoothed, [failing], ["decoder.layers.0.self_attention"])
    assert (smoothed.head.label_smoothing, smoothed.head.z_loss) == (0.4, 0.1)


def failing():
    raise ValueError("a pass that fails")


def test_batches_are_added_up(made):
    model, run = made
    (attentions, *_) = attention_places(model).values()
    together = head_importance(model, [run(slice(None))], attentions)
    apart = head_importance(model, [run(slice(0, 1)), run(slice(1, 2))], attentions)
    torch.testing.assert_close(together.gradient, apart.gradient, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(together.ablation, apart.ablation, rtol=1e-3, atol=1e-5)


def test_a_head_is_switched_off_as_if_the_output_did_not_read_it():
    torch.manual_seed(0)
    model, run = transformer()
    model.eval()
    attentions = attention_places(model)["decoder.cross_attention"]
    found = head_importance(model, [run(slice(None))], attentions)
    with torch.no_grad():
        plain = run(slice(None))()
        for layer in range(2):
            for head in range(4):
                weight = model.get_submodule(attentions[layer]).output.weight
                kept = weight.clone()
                weight[:, 4 * head : 4 * (head + 1)] = 0  # of the output's columns, four are the head's
                without = run(slice(None))()
                weight.copy_(kept)
                change = float(without.plain - plain.plain) / int(plain.count)
                assert float(found.ablation[layer, head]) == pytest.approx(change, abs=1e-5)


def test_the_rank_correlation_is_scipy_s_and_none_of_one_head(made):
    model, run = made
    for attentions in attention_places(model).values():
        found = head_importance(model, [run(slice(None))], attentions)
        if found.ablation.numel() == 1:
            assert found.rank_correlation is None
        else:
            expected = spearmanr(found.ablation.flatten(), found.gradient.flatten()).statistic
            assert found.as_dict()["rank_correlation"] == pytest.approx(expected)
