import math

import pytest
import torch
import torch.nn.functional as F

from regardant.attention import PassView
from regardant.data.vocabulary import PAD, SOS
from regardant.inspection import capture
from regardant.inspection.gradients import gradient_norms
from regardant.layers.residual import PlainStream
from regardant.models.decoder_only import DecoderOnlyConfig
from regardant.models.encoder_decoder import EncoderDecoderConfig
from regardant.models.one_to_one import OneToOneConfig
from regardant.models.recurrent import RecurrentConfig, RecurrentLanguageModelConfig
from tests.models import over_pairs, over_text

VOCAB = 30
TEXT = torch.randint(5, VOCAB, (3, 7), generator=torch.Generator().manual_seed(1))
SOURCE = torch.tensor([[5, 6, 7, 8, 9], [9, 5, 6, PAD, PAD]])
TARGET = torch.tensor([[SOS, 9, 8, 7, 6], [SOS, 6, 5, PAD, PAD]])
SIZES = {"d_model": 16, "num_heads": 2, "d_ff": 16, "dropout": 0.0, "max_length": 16}
CHOSEN = (1, 2, 4, 5)
"""Of six targets the four that are evenly spread, counted from 0."""


def decoder_only(**fields):
    torch.manual_seed(0)
    return over_text(DecoderOnlyConfig(**SIZES, num_layers=3, **fields), VOCAB).eval()


def recurrent(cell):
    torch.manual_seed(0)
    return over_text(
        RecurrentLanguageModelConfig(cell=cell, embedding_size=16, hidden_size=16, num_layers=2), VOCAB
    ).eval()


def translator(config):
    torch.manual_seed(0)
    return over_pairs(config, VOCAB).eval()


def of_text(model, text=TEXT):
    return gradient_norms(model, {"text": text[:, :-1]}, text[:, 1:])


def of_pairs(model):
    return gradient_norms(model, {"source": SOURCE, "target": TARGET[:, :-1]}, TARGET[:, 1:])


def gradient_at(model, depth):
    """Of the mean loss with respect to the stream after so many layers, by running the layers one by one."""
    with torch.no_grad():
        stream = PlainStream(model.text(TEXT[:, :-1]).values)
        for layer in model.decoder.layers[:depth]:
            layer(stream, PassView(causal=True), None, PassView())
    x = stream.close().requires_grad_()
    stream = PlainStream(x)
    for layer in model.decoder.layers[depth:]:
        layer(stream, PassView(causal=True), None, PassView())
    logits = model.decoder.final_norm(stream.close()) @ model.head.weight.T
    return torch.autograd.grad(F.cross_entropy(logits.flatten(0, 1), TEXT[:, 1:].flatten()), x)[0]


def test_the_gradient_by_depth_is_that_of_the_layers_run_one_by_one():
    model = decoder_only()
    names = ["text", "decoder.layers.0", "decoder.layers.1", "decoder.layers.2"]
    expected = {name: float(gradient_at(model, depth).norm()) for depth, name in enumerate(names)}
    found = of_text(model).depth
    assert list(found) == names
    assert found == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("residual", ["add", "none", "reversible", "composition"])
def test_after_the_last_layer_it_is_that_at_the_last_norm_whatever_the_stream(residual):
    model = decoder_only(residual=residual)
    with capture(model, "decoder.final_norm.before", gradients=True) as records:
        loss = model(text=TEXT[:, :-1], targets=TEXT[:, 1:])
    (gradient,) = records.gradients(loss.total / loss.count)["decoder.final_norm.before"]
    assert of_text(model).depth["decoder.layers.2"] == pytest.approx(float(gradient.norm()), rel=1e-4)


def norms_of_target(model, text, target):
    """|dL / dx_s| of the target at a position of one text [T + 1], by a backward pass of its own."""
    read = []
    handle = model.text.written.register_forward_hook(lambda module, inputs, output: read.append(output))
    try:
        logits = model.scores(text=text[None, :-1])
    finally:
        handle.remove()
    loss = F.cross_entropy(logits[0, target], text[target + 1])
    return torch.autograd.grad(loss, read[0])[0][0].norm(dim=-1).tolist()


@pytest.mark.parametrize("make", [decoder_only, lambda: recurrent("rnn"), lambda: recurrent("lstm")])
def test_the_gradient_by_distance_is_the_mean_over_single_targets(make):
    model = make()
    by_distance = {}
    for text in TEXT:
        for target in CHOSEN:
            norms = norms_of_target(model, text, target)
            for position in range(target + 1):
                by_distance.setdefault(target - position, []).append(norms[position])
    expected = [sum(by_distance[distance]) / len(by_distance[distance]) for distance in range(6)]
    assert of_text(model).distance["text"] == pytest.approx(expected, rel=1e-4)


def test_it_fades_with_every_step_of_a_recurrence_and_not_with_distance_in_attention():
    text = torch.randint(5, VOCAB, (4, 41), generator=torch.Generator().manual_seed(2))
    fading = of_text(recurrent("rnn"), text).distance["text"]
    assert fading[39] < 1e-3 * fading[1]
    torch.manual_seed(0)
    attending = over_text(DecoderOnlyConfig(**{**SIZES, "max_length": 64}), VOCAB).eval()
    reaching = of_text(attending, text).distance["text"]
    assert reaching[39] > 0.1 * reaching[1]


def test_a_source_ends_one_position_before_its_first_target():
    """Padding is no position: the second source of three vectors lies nearer than the first of five."""
    model = translator(RecurrentConfig(decoder={"kind": "sutskever"}, bidirectional=False, dropout=0.0))
    by_distance = {}
    for row, (length, chosen) in enumerate(((5, (0, 1, 2, 3)), (3, (0, 0, 1, 1)))):
        for target in chosen:
            read = []
            hook = model.source.written.register_forward_hook(lambda module, inputs, output: read.append(output))  # noqa: B023
            logits = model.scores(source=SOURCE[row : row + 1], target=TARGET[row : row + 1, :-1])
            hook.remove()
            loss = F.cross_entropy(logits[0, target], TARGET[row, target + 1])
            norms = torch.autograd.grad(loss, read[0])[0][0].norm(dim=-1).tolist()
            for position in range(length):
                by_distance.setdefault(length - position + target, []).append(norms[position])
    found = of_pairs(model).distance["source"]
    assert math.isnan(found[0]) and len(found) == 5 + 3 + 1
    expected = [sum(by_distance[distance]) / len(by_distance[distance]) for distance in range(1, 9)]
    assert found[1:] == pytest.approx(expected, rel=1e-3)


def test_a_source_that_is_read_beside_its_target_begins_at_distance_0():
    found = of_pairs(translator(OneToOneConfig(dropout=0.0)))
    assert list(found.distance) == ["source"]
    assert len(found.distance["source"]) == 4 and found.distance["source"][0] > found.distance["source"][3] > 0


def test_what_a_layer_leaves_to_the_next_and_to_the_decoder_has_a_gradient():
    for config in (
        EncoderDecoderConfig(preset="tiny", memory="per_layer"),
        RecurrentConfig(num_layers=2),
        RecurrentConfig(num_layers=2, decoder={"kind": "sutskever"}),
    ):
        depth = of_pairs(translator(config)).depth
        assert list(depth)[:2] == ["source", "target"]
        assert all(norm > 0 for norm in depth.values()), depth


def test_a_measurement_leaves_the_model_as_it_was():
    model = decoder_only()
    before = model.scores(text=TEXT)
    of_text(model)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not any(module._forward_hooks for module in model.modules())
    assert torch.equal(model.scores(text=TEXT), before)
