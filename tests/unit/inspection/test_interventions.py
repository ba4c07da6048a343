import pytest
import torch
from torch.testing import assert_close

from regardant.data.vocabulary import NEVER_WRITTEN
from regardant.generation.config import GenerationConfig
from regardant.generation.search import generate
from regardant.inspection import EditRow, MaskKey, Patch, ScaleHead, capture, intervene
from regardant.inspection.places import BEFORE_CHANGE
from regardant.models.recurrent import RecurrentConfig
from tests.models import over_pairs

CROSS = "decoder.layers.0.cross_attention"
OWN = "decoder.layers.0.self_attention"


@pytest.fixture
def model(trained):
    return trained().translator.model


@pytest.fixture
def pairs(trained, test_set):
    return trained().translator.pairs(test_set.sources[:3], test_set.references[:3])


@pytest.fixture
def look(model, pairs):
    """Logits, and records, of a teacher-forced pass under interventions."""

    def run(*interventions):
        with torch.inference_mode(), intervene(model, *interventions), capture(model) as records:
            return model.scores(pairs.source, pairs.target), records

    return run


def one_hot(length, at):
    return torch.eye(length)[at].tolist()


def test_a_head_switched_off_mixes_nothing_and_the_others_as_before(look):
    (plain, before), (changed, after) = look(), look(ScaleHead(CROSS, 1))
    (mixed,), (unchanged,) = after[f"{CROSS}.mixed"], before[f"{CROSS}.mixed"]
    assert not mixed[:, 1].any()
    assert torch.equal(mixed[:, 0], unchanged[:, 0])
    assert not torch.allclose(changed, plain)


def test_a_head_can_be_scaled(look):
    (_, before), (_, after) = look(), look(ScaleHead(CROSS, 0, 2.5))
    assert_close(after[f"{CROSS}.mixed"][0][:, 0], 2.5 * before[f"{CROSS}.mixed"][0][:, 0])


def test_a_star_means_every_attention(look):
    _, records = look(ScaleHead("*", 0))
    assert not any(records[name][0][:, 0].any() for name in records if name.endswith(".mixed"))


def test_an_edited_row_is_what_is_mixed_by_and_what_is_seen(look, pairs):
    length = pairs.source.shape[1]
    (_, before), (_, after) = look(), look(EditRow(CROSS, head=1, row=2, weights=one_hot(length, 3)))
    (weights,), (plain,) = after[f"{CROSS}.weights"], before[f"{CROSS}.weights"]
    assert weights[:, 1, 2].tolist() == [one_hot(length, 3)] * 3
    assert_close(after[f"{CROSS}.mixed"][0][:, 1, 2], after[f"{CROSS}.value"][0][:, 1, 3])
    weights[:, 1, 2] = plain[:, 1, 2]
    assert_close(weights, plain)


def test_an_edited_row_does_not_touch_what_was_written_before(look, pairs):
    (plain, _), (changed, _) = look(), look(EditRow(CROSS, 0, 2, one_hot(pairs.source.shape[1], 0)))
    assert_close(changed[:, :2], plain[:, :2])
    assert not torch.allclose(changed[:, 2], plain[:, 2])


def test_rows_count_on_from_step_to_step(model, pairs):
    """A recurrent decoder asks for one row a call, and so does any decoder that writes."""
    torch.manual_seed(0)
    recurrent = over_pairs(RecurrentConfig(hidden_size=8, embedding_size=8, dropout=0.0), 12).eval()
    source, target = torch.tensor([[5, 6, 7, 2]]), torch.tensor([[1, 5, 6]])
    row = EditRow("decoder.cross_attention", 0, 1, one_hot(4, 3))
    with torch.inference_mode(), intervene(recurrent, row), capture(recurrent, "*.weights") as records:
        recurrent.scores(source, target)
    weights = records.whole("decoder.cross_attention.weights")[0, 0]
    assert weights[1].tolist() == one_hot(4, 3)
    assert weights[0].max() < 1 and weights[2].max() < 1

    row = EditRow(OWN, 0, 1, [1.0, 0.0])
    with torch.inference_mode(), intervene(model, row), capture(model, f"{OWN}.weights") as records:
        state = model.start(model.encode(pairs.source), 1, 3)
        for step in range(2):
            model.step(pairs.target[:, step : step + 1], state)
    first, second = records[f"{OWN}.weights"]
    assert first.shape[-1] == 1
    assert second[:, 0, 0].tolist() == [[1.0, 0.0]] * 3


def test_a_second_pass_in_a_context_counts_on(model, pairs):
    length = pairs.source.shape[1]
    row = EditRow("encoder.layers.0.self_attention", 0, length + 1, one_hot(length, 0))
    with torch.inference_mode(), intervene(model, row), capture(model, "encoder.*.weights") as records:
        for _ in range(2):
            model.encode(pairs.source)
    first, second = records["encoder.layers.0.self_attention.weights"]
    assert second[:, 0, 1].tolist() == [one_hot(length, 0)] * 3
    assert not torch.equal(first[:, 0, 1], second[:, 0, 1])


def test_a_masked_key_is_seen_by_nobody_and_the_rest_share_its_weight(look):
    (_, before), (_, after) = look(), look(MaskKey(CROSS, 1))
    (weights,), (plain,) = after[f"{CROSS}.weights"], before[f"{CROSS}.weights"]
    assert not weights[..., 1].any()
    rest = plain.clone()
    rest[..., 1] = 0
    assert_close(weights, rest / rest.sum(-1, keepdim=True), rtol=1e-4, atol=1e-6)


def test_padding_stays_hidden_beside_a_masked_key(look, pairs):
    _, records = look(MaskKey("encoder.layers.0.self_attention", 0))
    (weights,) = records["encoder.layers.0.self_attention.weights"]
    padding = (pairs.source == 0)[:, None, None, :]
    assert padding.any() and not weights.masked_select(padding).any()


def test_an_activation_of_another_pass_can_be_put_in(look, pairs):
    plain, before = look()
    place = "encoder.layers.0.after_feed_forward.written"
    (written,) = before[place]
    silent, _ = look(Patch(place, lambda x: x * 0))
    restored, after = look(Patch(place, written))
    assert not torch.allclose(silent, plain)
    assert_close(restored, plain)
    assert torch.equal(after[place][0], written)


def test_weights_can_be_patched_by_a_function(look):
    _, records = look(Patch(f"{CROSS}.weights", lambda weights: weights.roll(1, -1)))
    (weights,), (value,), (mixed,) = (records[f"{CROSS}.{name}"] for name in ("weights", "value", "mixed"))
    assert_close(weights @ value, mixed, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("quantity", ["query", "key", "value"])
def test_queries_keys_and_values_can_be_patched_before_they_meet(look, quantity):
    (plain, _), (changed, records) = look(), look(Patch(f"{CROSS}.{quantity}", lambda x: x * 0))
    assert not records[f"{CROSS}.{quantity}"][0].any()
    assert not torch.allclose(changed, plain)


def test_several_interventions_act_in_their_order(look):
    _, records = look(Patch("head.logits", lambda x: x + 1), Patch("head.logits", lambda x: x * 0))
    assert not records["head.logits"][0].any()


def test_it_does_not_matter_which_context_is_opened_first(model, pairs):
    seen = []
    row = EditRow(CROSS, 0, 1, one_hot(pairs.source.shape[1], 0))
    interventions = (row, MaskKey(OWN, 0), ScaleHead(CROSS, 1, 0.5), Patch(f"{CROSS}.query", lambda x: x * 2))
    for capture_first in (False, True):
        changing, looking = intervene(model, *interventions), capture(model)
        with torch.inference_mode():
            if capture_first:
                with looking as records, changing:
                    model.scores(pairs.source, pairs.target)
            else:
                with changing, looking as records:
                    model.scores(pairs.source, pairs.target)
                    read = {place: records.whole(place) for place in records}
            seen.append(records)
    assert seen[0].keys() == seen[1].keys()
    for place, numbers in read.items():
        assert_close(seen[1].whole(place), numbers)
    assert_close(seen[0].whole(f"{CROSS}.weights"), read[f"{CROSS}.weights"])


def test_a_translation_without_a_head_is_what_scoring_without_it_likes_best(model, pairs):
    generation = GenerationConfig(beam_size=1, max_length_ratio=0, max_length_extra=8)
    with torch.inference_mode(), intervene(model, ScaleHead("*", 0), MaskKey(CROSS, 0), MaskKey(OWN, 1)):
        ((best, *_), *_) = generate(model, pairs.source[:1], generation, max_length=40)
        written = torch.tensor([[1, *best.tokens]])
        scores = model.scores(pairs.source[:1], written)[0, : len(best.tokens)]
        scores[:, NEVER_WRITTEN] = -torch.inf
    assert scores.argmax(-1).tolist() == list(best.tokens)


def test_the_model_is_as_it_was_afterwards_even_after_an_error(model, pairs):
    with torch.inference_mode():
        plain = model.scores(pairs.source, pairs.target)
        row = EditRow(CROSS, 0, 0, one_hot(pairs.source.shape[1], 0))
        with pytest.raises(IndexError), intervene(model, ScaleHead("*", 0), MaskKey(CROSS, 1), row):
            model.scores(pairs.source, pairs.target)
            raise IndexError
        assert torch.equal(model.scores(pairs.source, pairs.target), plain)
    mechanisms = [module for name, module in model.named_modules() if name.endswith("mechanism")]
    assert mechanisms
    left = {"start", "step", "reorder", "edited", *BEFORE_CHANGE}
    assert not any(left & vars(one).keys() for one in mechanisms)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


@pytest.mark.parametrize(
    ("intervention", "message"),
    [
        (ScaleHead("encoder.layers.9.self_attention", 0), "no place 'encoder.layers.9.self_attention.mixed'; did you"),
        (ScaleHead(CROSS, 2), "there is no head 2: choose 0 to 1"),
        (EditRow(CROSS, 2, 0, [1.0]), "there is no head 2: choose 0 to 1"),
        (EditRow(CROSS, 0, 0, [1.0]), r"1 weights for \d+ keys: give one for each key"),
        (
            Patch(f"{CROSS}.scores", lambda x: x),
            "scores is computed outside of the forward pass: change decoder.layers.0.cross",
        ),
        (Patch("head.probabilities", lambda x: x), "computed outside of the forward pass: change head.logits"),
        (Patch(f"{CROSS}.query", lambda x: x[:1]), r"cross_attention.query is \[3, .*; given \[1, .*: keep the shape"),
    ],
)
def test_what_cannot_be_done_is_refused(model, pairs, intervention, message):
    with torch.inference_mode(), pytest.raises(ValueError, match=message), intervene(model, intervention):
        model.scores(pairs.source, pairs.target)


def test_a_second_context_at_one_attention_is_refused_and_the_first_stays(model, pairs):
    with torch.inference_mode(), intervene(model, ScaleHead(CROSS, 0)), capture(model, f"{CROSS}.mixed") as records:
        twice = intervene(model, ScaleHead(OWN, 0), MaskKey(CROSS, 0))
        with pytest.raises(ValueError, match="cross_attention already: give all interventions to one"), twice:
            pass
        with intervene(model, ScaleHead(OWN, 0)):
            model.scores(pairs.source, pairs.target)
    assert not records[f"{CROSS}.mixed"][0][:, 0].any()


def test_what_a_cell_does_inside_can_be_looked_at_alone():
    model = over_pairs(RecurrentConfig(hidden_size=8, embedding_size=8), 12)
    with (
        pytest.raises(ValueError, match="update_gate is computed outside of the forward pass: it can only be captured"),
        intervene(model, Patch("encoder.layers.0.update_gate", lambda x: x)),
    ):
        pass
