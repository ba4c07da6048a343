import pytest
import torch

from regardant.data.batching import pad
from regardant.data.vocabulary import PAD
from regardant.generation.config import GenerationConfig
from regardant.generation.search import generate
from regardant.inspection.capture import capture_attention

PLACES = ["decoder.layers.0.cross_attention", "decoder.layers.0.self_attention", "encoder.layers.0.self_attention"]
NUM_HEADS = 2


@pytest.fixture
def model(trained):
    return trained().translator.model


@pytest.fixture
def pairs(trained, test_set):
    """Sources and targets of several lengths."""
    return trained().translator.pairs(test_set.sources[:8], test_set.references[:8])


@pytest.fixture
def recorded(model, pairs):
    with torch.inference_mode(), capture_attention(model) as records:
        model.scores(pairs.source, pairs.target[:, :-1])
    return records


def hooks_of(model):
    return [hook for module in model.modules() for hook in module._forward_hooks]


def test_looking_does_not_change_a_bit(model, pairs):
    generation = GenerationConfig(beam_size=3)

    def outputs():
        with torch.inference_mode():
            return model.scores(pairs.source, pairs.target), generate(model, pairs.source, generation, max_length=40)

    (scores, written), (_, again) = outputs(), outputs()
    assert written == again
    with capture_attention(model) as records:
        seen_scores, seen_written = outputs()
    assert records
    assert torch.equal(seen_scores, scores)
    assert seen_written == written


def test_looking_does_not_change_the_gradients(model, pairs):
    def gradients():
        model.zero_grad()
        model(pairs.source, pairs.target).total.backward()
        return [parameter.grad for parameter in model.parameters()]

    plain = gradients()
    with capture_attention(model) as records:
        seen = gradients()
    assert all(torch.equal(one, other) for one, other in zip(plain, seen, strict=True))
    assert not any(weights.requires_grad for record in records.values() for weights in record)


def test_every_place_is_recorded_under_its_name_with_its_shape(recorded, pairs):
    sentences, target_length = len(pairs.source), pairs.target.shape[1] - 1
    shapes = {name: [tuple(weights.shape) for weights in record] for name, record in recorded.items()}
    source_length = pairs.source.shape[1]
    assert sorted(shapes) == PLACES
    assert shapes["encoder.layers.0.self_attention"] == [(sentences, NUM_HEADS, source_length, source_length)]
    assert shapes["decoder.layers.0.self_attention"] == [(sentences, NUM_HEADS, target_length, target_length)]
    assert shapes["decoder.layers.0.cross_attention"] == [(sentences, NUM_HEADS, target_length, source_length)]
    assert all(weights.dtype == torch.float32 for (weights,) in recorded.values())


def test_rows_sum_to_one_and_padding_and_future_get_nothing(recorded, pairs):
    for (weights,) in recorded.values():
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
        assert (weights >= 0).all()
    padding = (pairs.source == PAD)[:, None, None, :]
    assert padding.any()
    for name in ("encoder.layers.0.self_attention", "decoder.layers.0.cross_attention"):
        (weights,) = recorded[name]
        assert not weights.masked_select(padding).any()
    (weights,) = recorded["decoder.layers.0.self_attention"]
    assert not weights.triu(1).any() and weights.tril(-1).any()


def test_a_kind_picks_its_layers(model, pairs):
    with torch.inference_mode(), capture_attention(model, "cross_attention") as records:
        model.scores(pairs.source, pairs.target)
    assert list(records) == ["decoder.layers.0.cross_attention"]


def test_decoding_steps_append_to_the_record(model, pairs):
    source, beams = pairs.source[:1], 3
    with torch.inference_mode(), capture_attention(model) as records:
        state = model.start(model.encode(source), beams, 5)
        tokens = torch.randint(5, 50, (1, beams, 5), generator=torch.Generator().manual_seed(1))
        for step in range(5):
            model.step(tokens[..., step], state)
    record = records["decoder.layers.0.cross_attention"]
    assert [tuple(weights.shape) for weights in record] == [(1, NUM_HEADS, beams, source.shape[1])] * 5
    assert len(records["encoder.layers.0.self_attention"]) == 1


def test_steps_show_the_weights_that_teacher_forcing_shows(model, pairs):
    source = pad([[int(token) for token in pairs.source[0] if token != PAD][:-1]])
    target = pairs.target[:1, :6]
    with torch.inference_mode():
        with capture_attention(model, "cross_attention") as at_once:
            model.scores(source, target)
        with capture_attention(model, "cross_attention") as in_steps:
            state = model.start(model.encode(source), 1, 6)
            for step in range(6):
                model.step(target[:, step : step + 1], state)
    (whole,), steps = at_once["decoder.layers.0.cross_attention"], in_steps["decoder.layers.0.cross_attention"]
    torch.testing.assert_close(torch.cat(steps, dim=2), whole, rtol=0, atol=1e-5)


def test_nothing_listens_afterwards(model, pairs):
    with capture_attention(model) as records:
        assert len(hooks_of(model)) == len(PLACES)
    model.scores(pairs.source, pairs.target)
    assert not records and not hooks_of(model)


def test_nothing_listens_after_an_error(model):
    with pytest.raises(IndexError), capture_attention(model):
        raise IndexError
    assert not hooks_of(model)
