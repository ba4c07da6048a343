import pytest
import torch
from scipy.stats import kendalltau
from torch.testing import assert_close

from regardant.data.vocabulary import EOS, SOS
from regardant.inspection import agreement, explain
from regardant.models.encoder_decoder import EncoderDecoderConfig
from regardant.models.one_to_one import OneToOneConfig
from regardant.models.recurrent import RecurrentConfig
from tests.models import over_pairs

SOURCE, TARGET = torch.tensor([5, 6, 7, 8, EOS]), torch.tensor([SOS, 9, 8, 7, EOS])
SIZES = {"d_model": 16, "num_heads": 2, "d_ff": 16, "dropout": 0.0, "max_length": 16}
CONFIGS = {
    "encoder_decoder": EncoderDecoderConfig(preset=None, **SIZES),
    "recurrent": RecurrentConfig(embedding_size=8, hidden_size=8, dropout=0.0),
    "one_to_one": OneToOneConfig(embedding_size=8, hidden_size=8, dropout=0.0),
}


@pytest.fixture(params=CONFIGS)
def model(request):
    torch.manual_seed(0)
    return over_pairs(CONFIGS[request.param], 12).eval()


@pytest.fixture
def explained(model):
    return explain(model, model.source.written, SOURCE, TARGET)


def test_the_gradient_is_what_backward_passes_token_by_token_say(model, explained):
    read = []
    model.source.written.register_forward_hook(lambda module, inputs, output: read.append(output))
    for step, token in enumerate(TARGET[1:]):
        said = model.scores(SOURCE[None], TARGET[None, :-1])[0, step].log_softmax(-1)[token]
        (gradient,) = torch.autograd.grad(said, read[-1])
        assert_close(explained.gradient[step], (gradient[0] * read[-1][0]).sum(-1).abs().detach(), rtol=1e-4, atol=1e-6)
    assert (explained.gradient > 0).any()


def test_a_token_left_out_is_a_source_without_it(model, explained):
    with torch.no_grad():
        whole = model.scores(SOURCE[None], TARGET[None, :-1])[0].softmax(-1)
        for place in range(len(SOURCE)):
            without = torch.cat([SOURCE[:place], SOURCE[place + 1 :]])
            changed = model.scores(without[None], TARGET[None, :-1])[0].softmax(-1)
            expected = (changed - whole).abs().sum(-1) / 2
            assert_close(explained.ablation[:, place], expected, rtol=1e-4, atol=1e-6)
    assert ((explained.ablation >= 0) & (explained.ablation <= 1)).all()


def test_looking_for_explanations_leaves_nothing_behind(model):
    def scores():
        with torch.no_grad():
            return model.scores(SOURCE[None], TARGET[None, :-1])

    before = scores()
    explain(model, model.source.written, SOURCE, TARGET)
    assert torch.equal(scores(), before)
    assert not model.source.written._forward_hooks and all(parameter.grad is None for parameter in model.parameters())


def test_a_long_pair_is_read_in_slices_that_change_nothing(model, explained, monkeypatch):
    rows, scores = [], model.scores

    def counted(source, target):
        rows.append(len(source))
        return scores(source, target)

    monkeypatch.setattr(model, "scores", counted)
    monkeypatch.setattr("regardant.inspection.patching.TOKENS_AT_ONCE", 2 * len(SOURCE) + 1)
    again = explain(model, model.source.written, SOURCE, TARGET)
    assert rows == [2, 2, 1, 2, 2, 1]  # four target tokens; the whole pair, five shortened ones
    assert_close(again.gradient, explained.gradient, rtol=1e-4, atol=1e-6)
    assert_close(again.ablation, explained.ablation, rtol=1e-4, atol=1e-6)


def test_a_source_of_one_token_is_refused(model):
    with pytest.raises(ValueError, match="a source of one token: give two or more"):
        explain(model, model.source.written, SOURCE[-1:], TARGET)


def test_ways_agree_by_kendall_s_tau_but_for_rows_that_order_nothing():
    torch.manual_seed(0)
    one, other = torch.rand(4, 6), torch.rand(4, 6)
    one[2] = 0.5
    expected = [kendalltau(one[row], other[row]).statistic for row in (0, 1, 3)]
    assert agreement(one, other) == pytest.approx(expected)
    assert agreement(one, one.exp()) == pytest.approx([1, 1, 1])
    assert agreement(one, -one) == pytest.approx([-1, -1, -1])
