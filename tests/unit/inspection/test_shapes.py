import torch

from regardant.inspection.shapes import trace_shapes
from regardant.models.decoder_only import DecoderOnlyConfig
from tests.models import over_text

TEXT = torch.randint(5, 30, (3, 7), generator=torch.Generator().manual_seed(1))


def model_of_text():
    return over_text(DecoderOnlyConfig(d_model=16, num_heads=2, d_ff=24, num_layers=2, max_length=16), 30).eval()


def test_a_tree_has_what_goes_in_and_out_of_each_module():
    model = model_of_text()
    found = trace_shapes(model, {"text": TEXT})
    decoder = next(part for part in found.parts if part.name == "decoder")
    layers = next(part for part in decoder.parts if part.name == "decoder.layers")
    first = layers.parts[0]
    assert (first.name, first.kind, first.calls) == ("decoder.layers.0", "DecoderLayer", 1)
    assert first.inputs[0] == first.outputs[0] == [3, 7, 16]
    assert layers.calls == 0 and layers.outputs == []
    head = next(part for part in found.parts if part.name == "head")
    assert (head.inputs[0], head.outputs) == ([3, 7, 16], [[3, 7, 30]])
    assert head.own == {"weight": [30, 16]}
    assert found.parameters == sum(parameter.numel() for parameter in model.parameters())


def test_a_traced_model_is_left_as_it_was():
    model = model_of_text()
    trace_shapes(model, {"text": TEXT})
    assert not any(module._forward_hooks for module in model.modules())
    assert "scores" not in vars(model.head)
