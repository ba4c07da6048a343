"""The stacks of layers: which vectors their attention reads."""

import pytest
import torch

from regardant.models import EncoderDecoderConfig, next_token, stacks, tokens

SHORT, LONG = [5, 6, 3, 0, 0], [5, 6, 7, 8, 3]


@pytest.mark.parametrize(("sources", "masked"), [([LONG, LONG], False), ([SHORT, LONG], True)])
def test_attention_gets_a_mask_where_there_is_padding_alone(monkeypatch, sources, masked):
    made, view = [], stacks.PassView
    monkeypatch.setattr(stacks, "PassView", lambda **given: made.append(given) or view(**given))
    config = EncoderDecoderConfig(preset=None, d_model=8, num_heads=2, d_ff=16, max_length=8)
    model = config.build(tokens(10), tokens(10), next_token(10)).eval()
    memory = model.encode(torch.tensor(sources))
    model.start(memory, beam_size=2, max_length=4)
    targets = torch.tensor([[2, 5, 3], [2, 6, 3]])
    model(source=torch.tensor(sources), target=targets, targets=targets)
    keys = [given["keys"] for given in made if "keys" in given]
    assert len(keys) == 4 and all((one is not None) == masked for one in keys)


def test_each_decoder_layer_reads_the_encoder_layer_of_its_depth():
    layers = {"num_layers": 2}
    sizes = {"preset": None, "d_model": 8, "num_heads": 2, "d_ff": 16, "max_length": 8}
    config = EncoderDecoderConfig(**sizes, memory="per_layer", encoder=layers, decoder=layers)
    model, read = config.build(tokens(10), tokens(10), next_token(10)).eval(), []
    memory = model.encode(torch.tensor([LONG]))
    for layer in model.decoder.layers:
        layer.cross_attention.register_forward_pre_hook(lambda module, given: read.append(given[1]))
    model.decoder(model.target(torch.tensor([[1, 5]])), memory)
    assert torch.equal(read[0], memory.layers[0]) and torch.equal(read[1], memory.values)
    assert not torch.equal(read[0], read[1])
