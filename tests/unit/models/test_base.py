import pytest
import torch

from regardant.attention import ScaledDotProductConfig
from regardant.attention.lsh import LSHConfig
from regardant.attention.performer import PerformerConfig
from regardant.models import EncoderDecoderConfig
from tests.models import over_pairs

SOURCE = torch.randint(5, 12, (2, 12), generator=torch.Generator().manual_seed(0))


def build(config):
    torch.manual_seed(0)
    sizes = {"preset": None, "d_model": 16, "num_heads": 2, "d_ff": 32}
    encoder = {"num_layers": 2, "self_attention": config}
    return over_pairs(EncoderDecoderConfig(**sizes, encoder=encoder, decoder={"num_layers": 1}), 12).eval()


def encoded(model):
    with torch.no_grad():
        return model.encode(SOURCE).values


@pytest.mark.parametrize(
    "config", [PerformerConfig(num_features=8), LSHConfig(num_buckets=4)], ids=["performer", "lsh"]
)
def test_a_model_draws_anew_what_is_random_in_every_layer_and_a_seed_decides_what(config):
    model = build(config)
    before, drawn = encoded(model), [buffer.clone() for buffer in model.encoder.buffers()]
    torch.manual_seed(7)
    model.redraw()
    after = encoded(model)
    assert not torch.allclose(before, after)
    assert sum(not torch.equal(old, new) for old, new in zip(drawn, model.encoder.buffers(), strict=True)) == 2
    model.redraw()
    assert not torch.allclose(encoded(model), after)
    torch.manual_seed(7)
    model.redraw()
    assert torch.equal(encoded(model), after)


def test_what_is_not_random_stays():
    model = build(ScaledDotProductConfig())
    before = encoded(model)
    model.redraw()
    assert torch.equal(encoded(model), before)
