"""Every model there is, with every mechanism, can be looked into and intervened in."""

import pytest
import torch
from torch.testing import assert_close

from regardant.attention.interface import expand_heads
from regardant.generation.config import GenerationConfig
from regardant.generation.search import generate
from regardant.inspection import MaskKey, Patch, ScaleHead, capture, intervene, place_names
from regardant.inspection.places import INPUTS, OUTPUTS

from .test_models import MODELS, SOURCE, TARGET

pytestmark = pytest.mark.usefixtures("shapes_unchecked")

BEAMS = GenerationConfig(beam_size=2, max_length_ratio=0, max_length_extra=3)


@pytest.fixture(params=MODELS)
def model(request):
    torch.manual_seed(0)
    return MODELS[request.param]().eval()


def attentions(model):
    return [name.removesuffix(".weights") for name in place_names(model) if name.endswith(".weights")]


def of_head(model, quantity):
    (place,) = (name for name in place_names(model) if name.endswith(f"head.{quantity}"))
    return place


def stepped(model):
    state = model.start(model.encode(SOURCE), 1, TARGET.shape[1])
    return torch.cat([model.step(tokens, state) for tokens in TARGET.split(1, 1)], 1)


def test_outputs_are_bit_identical_with_capture_on_and_off(model):
    def outputs():
        with torch.inference_mode():
            return model.scores(SOURCE, TARGET), generate(model, SOURCE, BEAMS)

    scores, written = outputs()
    with capture(model) as records:
        seen_scores, seen_written = outputs()
    assert torch.equal(seen_scores, scores)
    assert seen_written == written
    assert of_head(model, "probabilities") in records


def test_what_is_seen_is_what_ran(model):
    with torch.inference_mode(), capture(model) as records:
        scores = model.scores(SOURCE, TARGET)
    assert records.as_dict().keys() == set(place_names(model))
    assert torch.equal(records.whole(of_head(model, "logits")), scores)
    assert_close(records.whole(of_head(model, "probabilities")), scores.softmax(-1))
    for place in attentions(model):
        weights, values, mixed = (records[f"{place}.{quantity}"] for quantity in ("weights", "value", "mixed"))
        for row, v, answer in zip(weights, values, mixed, strict=True):
            assert_close(row @ expand_heads(v, row.shape[1]), answer, rtol=1e-4, atol=1e-5)
    with torch.inference_mode():  # reading has left nothing behind
        assert torch.equal(model.scores(SOURCE, TARGET), scores)


def test_interventions_that_change_nothing_change_nothing(model):
    changeable = [name for name in place_names(model) if name.rpartition(".")[2] in {*INPUTS, *OUTPUTS, "weights"}]
    nothing = [Patch(name, lambda x: x) for name in changeable]
    for place in attentions(model):
        nothing += [ScaleHead(place, 0, 1.0), MaskKey(place, 99)]
    with torch.no_grad():
        plain = model.scores(SOURCE, TARGET)
        with intervene(model, *nothing):
            assert_close(model.scores(SOURCE, TARGET), plain, rtol=0, atol=1e-5)
            assert_close(stepped(model), plain, rtol=1e-4, atol=1e-5)
        assert torch.equal(model.scores(SOURCE, TARGET), plain)


def test_an_intervention_acts_on_every_step_as_on_a_whole_pass(model):
    if not attentions(model):
        pytest.skip("it has no attention")
    interventions = [one for place in attentions(model) for one in (ScaleHead(place, 0, 0.5), MaskKey(place, 1))]
    with torch.no_grad():
        plain = model.scores(SOURCE, TARGET)
        with intervene(model, *interventions):
            changed = model.scores(SOURCE, TARGET)
            assert_close(stepped(model), changed, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(changed, plain)


def test_a_masked_key_gets_no_weight(model):
    if not attentions(model):
        pytest.skip("it has no attention")
    masks = [MaskKey(place, 1) for place in attentions(model)]
    with torch.no_grad(), capture(model, "*.weights") as records, intervene(model, *masks):
        model.scores(SOURCE, TARGET)
    assert not any(weights[..., 1].any() for calls in records.values() for weights in calls)
