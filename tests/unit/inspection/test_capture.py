import pytest
import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from regardant.attention import View
from regardant.data.batching import pad
from regardant.data.vocabulary import EOS, PAD
from regardant.generation.config import GenerationConfig
from regardant.generation.search import generate
from regardant.inspection import capture, place_names
from regardant.models.encoder_decoder import EncoderDecoderConfig
from regardant.models.stacks import Encoder
from regardant.models.vectors import Vectors
from regardant.positions.none import NoPositions
from tests.models import over_pairs

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
    with torch.inference_mode(), capture(model) as records:
        model.scores(pairs.source, pairs.target[:, :-1])
    return records


def hooks_of(model):
    return [hook for module in model.modules() for hook in module._forward_hooks]


def weights_of(records):
    return {name: calls for name, calls in records.items() if name.endswith(".weights")}


def test_looking_does_not_change_a_bit(model, pairs):
    generation = GenerationConfig(beam_size=3)

    def outputs():
        with torch.inference_mode():
            return model.scores(pairs.source, pairs.target), generate(model, pairs.source, generation, max_length=40)

    (scores, written), (_, again) = outputs(), outputs()
    assert written == again
    with capture(model) as records:
        seen_scores, seen_written = outputs()
    assert records
    assert torch.equal(seen_scores, scores)
    assert seen_written == written


@pytest.mark.parametrize("keep", [False, True])
def test_looking_does_not_change_the_gradients(model, pairs, keep):
    def gradients():
        model.zero_grad()
        model(**pairs.inputs, targets=pairs.targets).total.backward()
        return [parameter.grad for parameter in model.parameters()]

    plain = gradients()
    with capture(model, gradients=keep) as records:
        seen = gradients()
    assert all(torch.equal(one, other) for one, other in zip(plain, seen, strict=True))
    assert not any(x.requires_grad for calls in records.values() for x in calls)


def test_every_attention_has_its_weights_under_its_name_with_their_shape(recorded, pairs):
    sentences, target_length = len(pairs.source), pairs.target.shape[1] - 1
    shapes = {name: [tuple(one.shape) for one in calls] for name, calls in weights_of(recorded).items()}
    source_length = pairs.source.shape[1]
    assert sorted(shapes) == [f"{place}.weights" for place in PLACES]
    assert shapes[f"{PLACES[2]}.weights"] == [(sentences, NUM_HEADS, source_length, source_length)]
    assert shapes[f"{PLACES[1]}.weights"] == [(sentences, NUM_HEADS, target_length, target_length)]
    assert shapes[f"{PLACES[0]}.weights"] == [(sentences, NUM_HEADS, target_length, source_length)]
    assert all(x.dtype == torch.float32 for calls in recorded.values() for x in calls)


def test_rows_sum_to_one_and_padding_and_future_get_nothing(recorded, pairs):
    for (weights,) in weights_of(recorded).values():
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
        assert (weights >= 0).all()
    padding = (pairs.source == PAD)[:, None, None, :]
    assert padding.any()
    for name in (PLACES[0], PLACES[2]):
        (weights,) = recorded[f"{name}.weights"]
        assert not weights.masked_select(padding).any()
    (weights,) = recorded[f"{PLACES[1]}.weights"]
    assert not weights.triu(1).any() and weights.tril(-1).any()


def test_scores_are_what_the_softmax_is_taken_of(recorded):
    for place in PLACES:
        (scores,), (weights,) = recorded[f"{place}.scores"], recorded[f"{place}.weights"]
        torch.testing.assert_close(scores.softmax(-1), weights)


def test_the_residual_stream_is_the_sum_of_what_was_written(recorded):
    written = ["source", "encoder.layers.0.after_self_attention", "encoder.layers.0.after_feed_forward"]
    stream = sum(recorded[f"{place}.written"][0] for place in written)
    torch.testing.assert_close(recorded["encoder.final_norm.before"][0], stream)


def test_a_normalisation_is_seen_before_and_after(recorded, model):
    before, after = recorded["encoder.final_norm.before"][0], recorded["encoder.final_norm.after"][0]
    with torch.no_grad():
        torch.testing.assert_close(model.encoder.final_norm(before), after)


def test_a_name_picks_its_places(model, pairs):
    with torch.inference_mode(), capture(model, ["*.cross_attention.weights", "head.*"]) as records:
        model.scores(pairs.source, pairs.target)
    assert sorted(records) == ["decoder.layers.0.cross_attention.weights", "head.logits", "head.probabilities"]


def test_all_names_of_a_model_are_known(model, recorded):
    assert sorted(recorded) == sorted(place_names(model))


def test_a_name_that_no_place_has_is_refused(model):
    with (
        pytest.raises(ValueError, match=r"no place 'encoder.layers.0.self_atention.weights'; did you mean encoder"),
        capture(model, "encoder.layers.0.self_atention.weights"),
    ):
        pass
    with pytest.raises(ValueError, match=r"no place 'gates': `inspection.place_names` lists"), capture(model, "gates"):
        pass


def test_decoding_steps_append_to_the_record(model, pairs):
    source, beams = pairs.source[:1], 3
    with torch.inference_mode(), capture(model) as records:
        state = model.start(model.encode(source), beams, 5)
        tokens = torch.randint(5, 50, (1, beams, 5), generator=torch.Generator().manual_seed(1))
        for step in range(5):
            model.step(tokens[..., step], state)
            state.reorder(torch.tensor([[1, 1, 0]]))
    crossed, own = records[f"{PLACES[0]}.weights"], records[f"{PLACES[1]}.weights"]
    assert [tuple(weights.shape) for weights in crossed] == [(1, NUM_HEADS, beams, source.shape[1])] * 5
    shared = [(1, NUM_HEADS, beams, (step + 1) * beams) for step in range(5)]  # all beams on the keys of all
    assert [tuple(weights.shape) for weights in own] == shared
    assert len(records[f"{PLACES[2]}.weights"]) == 1
    assert records.whole("head.probabilities").shape[:2] == (beams, 5)


def test_what_decoding_overwrites_later_stays_as_it_was_seen(model, pairs):
    with torch.inference_mode(), capture(model, f"{PLACES[1]}.key") as records:
        state = model.start(model.encode(pairs.source[:1]), 2, 4)
        model.step(torch.tensor([[7, 8]]), state)
        (first,) = records[f"{PLACES[1]}.key"]
        first = first.clone()
        state.reorder(torch.tensor([[1, 1]]))
        model.step(torch.tensor([[9, 9]]), state)
    assert torch.equal(records[f"{PLACES[1]}.key"][0], first)


def test_weights_of_a_beam_search_are_those_that_mixed_its_values(model, pairs):
    place = PLACES[1]
    wanted = [f"{place}.{quantity}" for quantity in ("weights", "value", "mixed")]
    with torch.inference_mode(), capture(model, wanted) as records:
        generate(model, pairs.source, GenerationConfig(beam_size=3), max_length=12)
    weights, values, mixed = (records[name] for name in wanted)
    assert len(weights) > 3
    for step, (share, value, output) in enumerate(zip(weights, values, mixed, strict=True)):
        torch.testing.assert_close(share @ value, output, msg=lambda text, step=step: f"step {step}: {text}")


def test_steps_show_the_weights_that_teacher_forcing_shows(model, pairs):
    source = pad([[int(token) for token in pairs.source[0] if token != PAD][:-1]])
    target = pairs.target[:1, :6]
    with torch.inference_mode():
        with capture(model, "*.cross_attention.weights") as at_once:
            model.scores(source, target)
        with capture(model, "*.cross_attention.weights") as in_steps:
            state = model.start(model.encode(source), 1, 6)
            for step in range(6):
                model.step(target[:, step : step + 1], state)
    (place,) = at_once
    torch.testing.assert_close(in_steps.whole(place), at_once[place][0], rtol=0, atol=1e-5)


def test_slices_of_a_batch_are_weighed_as_the_batch_is(model, pairs, monkeypatch):
    with torch.inference_mode(), capture(model, "*.weights") as records:
        model.scores(pairs.source, pairs.target)
        at_once = {place: records.whole(place) for place in records}
        monkeypatch.setattr("regardant.inspection.places.MOST_PAIRS", 3 * NUM_HEADS * pairs.source.shape[1] ** 2)
        for place in records:
            torch.testing.assert_close(records.whole(place), at_once[place])


def test_nothing_listens_afterwards(model, pairs):
    with capture(model, "*.weights") as records:
        assert len(hooks_of(model)) == len(PLACES)
    model.scores(pairs.source, pairs.target)
    assert not records and not hooks_of(model)


def test_nothing_listens_after_an_error(model):
    with pytest.raises(IndexError), capture(model):
        raise IndexError
    assert not hooks_of(model)


class LiveBytes(TorchDispatchMode):
    """How many bytes the tensors that anything in here made took at most, all that were alive together."""

    def __init__(self):
        super().__init__()
        self.live, self.peak = {}, 0

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        made = function(*arguments, **(named or {}))
        for x in tree_leaves(made):
            if isinstance(x, torch.Tensor):
                storage = x.untyped_storage()
                self.live[storage._cdata] = (StorageWeakRef(storage), storage.nbytes())
        self.live = {key: one for key, one in self.live.items() if not one[0].expired()}
        self.peak = max(self.peak, sum(size for _, size in self.live.values()))
        return made


def test_all_layers_of_500_tokens_cost_little_more_memory_than_one():
    """Six layers of eight heads, three kinds: their weights together would be 144 MB."""
    stack = {"num_layers": 6}
    config = EncoderDecoderConfig(
        preset=None, d_model=512, num_heads=8, d_ff=64, max_length=500, encoder=stack, decoder=stack
    )
    torch.manual_seed(0)
    model = over_pairs(config, 50).eval()
    tokens = torch.randint(5, 50, (1, 500))
    tokens[:, -1] = EOS
    with torch.inference_mode():
        with LiveBytes() as plain:
            model.scores(tokens, tokens)
        with LiveBytes() as seen, capture(model, "*.weights") as records:
            model.scores(tokens, tokens)
            for place in records:
                assert records[place][0].shape == (1, 8, 500, 500)
    assert len(records) == 18
    one_layer = 8 * 500 * 500 * 4
    assert plain.peak > one_layer / 8  # it counts at all
    assert seen.peak - plain.peak <= 2 * one_layer + 50e6


@pytest.mark.parametrize("mixer", [{"kind": "dense"}, {"kind": "convolution", "kernel": 3, "gated": False}])
def test_weights_of_positions_are_what_a_mixer_applies(mixer):
    torch.manual_seed(0)
    sizes = {"preset": None, "d_model": 8, "num_heads": 1, "dropout": 0.0, "max_length": 6}
    config = EncoderDecoderConfig.model_validate({**sizes, "encoder": {"num_layers": 1, "self_attention": mixer}})
    encoder = Encoder(config, config.encoder, NoPositions(), 6).eval()
    layer, x = encoder.layers[0].self_attention, torch.randn(1, 5, 8)
    with capture(encoder, "*.position_weights") as records, torch.no_grad():
        encoder(Vectors(x))
    (found,) = records["layers.0.self_attention.position_weights"]
    assert found.shape == (1, 5, 5)
    for position in range(5):
        other = x.clone()
        other[:, position] += 1
        changed = (layer(other, View()) - layer(x, View())).abs().amax(-1)[0] > 1e-6
        assert (changed == (found[0, :, position].abs() > 0)).all()
