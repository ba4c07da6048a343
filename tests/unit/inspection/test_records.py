import json

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regardant.attention import ScaledDotProductConfig, View
from regardant.attention.window import WindowConfig
from regardant.inspection import EditRow, Patch, ScaleHead, capture, intervene
from regardant.layers.multi_head import HeadShape, SelfAttention
from regardant.models.recurrent import RecurrentConfig, RecurrentLanguageModelConfig
from regardant.positions.none import NoPositions
from tests.models import over_pairs, over_text

CHOSEN = (0, 2, 9)  # sentence, step, token


@pytest.fixture
def model(trained):
    return trained().translator.model


@pytest.fixture
def pairs(trained, test_set):
    return trained().translator.pairs(test_set.sources[:2], test_set.references[:2])


def log_probability(model, pairs):
    return model.scores(pairs.source, pairs.target[:, :-1]).log_softmax(-1)[CHOSEN]


@pytest.fixture
def gradients(model, pairs):
    with capture(model, gradients=True) as records:
        chosen = log_probability(model, pairs)
    return records, records.gradients(chosen)


CHANGED = ["query", "key", "value", "weights", "mixed"]
ATTENTIONS = [
    "encoder.layers.0.self_attention",
    "decoder.layers.0.self_attention",
    "decoder.layers.0.cross_attention",
]
PLACES = [
    *(f"{attention}.{quantity}" for attention in ATTENTIONS for quantity in CHANGED),
    "source.written",
    "encoder.layers.0.after_feed_forward.written",
    "decoder.layers.0.after_cross_attention.norm.after",
    "head.logits",
]


@pytest.mark.parametrize("place", PLACES)
def test_a_gradient_is_what_a_small_change_of_the_place_changes(model, pairs, gradients, place):
    records, found = gradients
    shape = records[place][0].shape
    direction = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    model.double()
    try:
        with torch.no_grad():
            up, down = (changed(model, pairs, place, direction * step) for step in (1e-4, -1e-4))
    finally:
        model.float()
    measured = (up - down) / 2e-4
    (gradient,) = found[place]
    assert gradient.shape == shape
    assert float((gradient * direction).sum()) == pytest.approx(float(measured), rel=1e-2, abs=1e-5)


def changed(model, pairs, place, change):
    with intervene(model, Patch(place, lambda x: x + change.to(x))):
        return log_probability(model, pairs)


def test_the_gradient_of_scores_is_that_of_weights_through_the_softmax(gradients):
    records, found = gradients
    place = "decoder.layers.0.cross_attention"
    (weights,), (of_weights,) = records[f"{place}.weights"], found[f"{place}.weights"]
    expected = weights * (of_weights - (weights * of_weights).sum(-1, keepdim=True))
    assert_close(found[f"{place}.scores"][0], expected, rtol=1e-4, atol=1e-7)


def test_gradients_of_weights_and_scores_pass_the_changes_after_them(model, pairs):
    place, last = "decoder.layers.0.cross_attention", pairs.source.shape[1] - 1
    changes = (ScaleHead(place, 1, 0.5), EditRow(place, 0, CHOSEN[1], torch.eye(last + 1)[last].tolist()))
    with intervene(model, *changes), capture(model, f"{place}.*", gradients=True) as records:
        chosen = log_probability(model, pairs)
    found = {name.rpartition(".")[2]: of_call[0] for name, of_call in records.gradients(chosen).items()}
    weights, value = (records[f"{place}.{quantity}"][0] for quantity in ("weights", "value"))
    of_weights = torch.tensor([1.0, 0.5])[:, None, None] * found["mixed"] @ value.mT
    assert_close(found["weights"], of_weights, rtol=1e-4, atol=1e-7)
    of_scores = weights * (of_weights - (weights * of_weights).sum(-1, keepdim=True))
    assert_close(found["scores"][:, 1], of_scores[:, 1], rtol=1e-4, atol=1e-7)
    assert found["weights"][0, 0, CHOSEN[1]].any() and not found["scores"][:, 0, CHOSEN[1]].any()


def test_weights_of_a_head_that_is_switched_off_have_no_gradient(model, pairs):
    place = "decoder.layers.0.cross_attention"
    with intervene(model, ScaleHead(place, 0)), capture(model, f"{place}.*", gradients=True) as records:
        chosen = log_probability(model, pairs)
    found = records.gradients(chosen)
    for quantity in ("weights", "scores"):
        (gradient,) = found[f"{place}.{quantity}"]
        assert not gradient[:, 0].any() and gradient[:, 1].any()


def test_what_comes_later_has_no_gradient(gradients):
    _, found = gradients
    _, step, _ = CHOSEN
    of_mixed = found["decoder.layers.0.cross_attention.mixed"][0][0]
    assert of_mixed[:, step].any() and not of_mixed[:, step + 1 :].any()
    assert not found["encoder.layers.0.self_attention.mixed"][0][1].any()  # another sentence


def test_gradients_of_a_recurrent_model_reach_back_to_every_state():
    torch.manual_seed(0)
    model = over_pairs(RecurrentConfig(hidden_size=8, embedding_size=8, dropout=0.0), 12).eval()
    source, target = torch.tensor([[5, 6, 7, 2], [8, 2, 0, 0]]), torch.tensor([[1, 5, 6], [1, 7, 2]])
    with capture(model, gradients=True) as records:
        chosen = model.scores(source, target).log_softmax(-1)[1, 2, 5]
    found = records.gradients(chosen)
    (of_encoder,) = found["encoder.layers.0.state"]
    assert of_encoder.shape == records["encoder.layers.0.state"][0].shape
    assert of_encoder[1, :, :2].any() and not of_encoder[0].any() and not of_encoder[1, :, 2:].any()
    assert len(found["decoder.cross_attention.weights"]) == 3
    assert not any(name.endswith("_gate") for name in found)


def test_the_gradient_of_a_recurrent_state_is_the_direct_effect_of_its_output():
    torch.manual_seed(0)
    model = over_text(RecurrentLanguageModelConfig(embedding_size=8, hidden_size=8, num_layers=1), 12).eval()
    with capture(model, "*.state", gradients=True) as records:
        chosen = model.scores(text=torch.tensor([[5, 6, 7, 8]])).log_softmax(-1)[0, 2, 9]
    ((place, (gradient,)),) = records.gradients(chosen).items()
    assert place.endswith(".state")
    assert gradient[0, 0].any(-1).tolist() == [False, False, True, False]


def test_two_numbers_may_be_differentiated_one_after_the_other(model, pairs):
    with capture(model, "*.written", gradients=True) as records:
        chosen = model.scores(pairs.source, pairs.target[:, :-1]).log_softmax(-1)[0, 1]
    first, second, both = (records.gradients(of) for of in (chosen[7], chosen[8], chosen[7] + chosen[8]))
    for place in both:
        assert_close(first[place][0] + second[place][0], both[place][0], rtol=1e-4, atol=1e-6)


def test_without_autograd_there_is_nothing_to_differentiate(model, pairs):
    with torch.no_grad(), capture(model, gradients=True) as records:
        chosen = log_probability(model, pairs)
    with pytest.raises(ValueError, match="capture with gradients=True, outside of no_grad"):
        records.gradients(chosen)


@pytest.mark.parametrize("config", [ScaledDotProductConfig(), WindowConfig(window=1)], ids=lambda one: one.kind)
def test_a_mask_is_that_of_the_view_and_of_the_mechanism(config):
    torch.manual_seed(0)
    model = nn.Module()
    model.part = SelfAttention(HeadShape(8, 2, 1, 4, 4), config, NoPositions(), causal=True)
    real = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    with torch.inference_mode(), capture(model, "*.weights") as records:
        model.part(torch.randn(2, 5, 8), View(causal=True, keys=real))
    away = torch.arange(5)[:, None] - torch.arange(5)
    pattern = (away >= 0) & (away <= (1 if config.kind == "window" else 4))
    expected = (pattern & real[:, None]).unsqueeze(1).expand(2, 2, 5, 5)
    assert torch.equal(records.mask("part"), expected)
    assert torch.equal(records["part.weights"][0] > 0, expected)


def test_the_mask_of_a_decoder_that_attends_step_by_step_holds_all_steps():
    torch.manual_seed(0)
    model = over_pairs(RecurrentConfig(hidden_size=8, embedding_size=8, dropout=0.0), 12).eval()
    source, target = torch.tensor([[5, 6, 7, 2], [8, 2, 0, 0]]), torch.tensor([[1, 5, 6], [1, 7, 2]])
    with torch.no_grad(), capture(model, "*.weights") as records:
        model.scores(source, target)
    expected = (source != 0)[:, None, None].expand(2, 1, 3, 4)
    assert torch.equal(records.mask("decoder.cross_attention"), expected)


def test_records_are_plain_numbers(model, pairs):
    with torch.no_grad(), capture(model, ["*.weights", "head.logits"]) as records:
        model.scores(pairs.source, pairs.target)
    told = json.loads(json.dumps(records.as_dict()))
    assert told.keys() == records.keys()
    for place in records:
        assert_close(torch.tensor(told[place][0]), records[place][0])


def test_a_place_that_was_not_captured_is_not_there(model, pairs):
    with torch.no_grad(), capture(model, "head.logits") as records:
        model.scores(pairs.source, pairs.target)
    assert "head.probabilities" not in records
    with pytest.raises(KeyError):
        records["head.probabilities"]
