import pytest
import torch
from torch.testing import assert_close

from regardant.layers.residual import Residual


def residual(norm_place, dropout=0.0):
    torch.manual_seed(0)
    layer = Residual(6, norm_place, dropout)
    torch.nn.init.normal_(layer.norm.weight)
    torch.nn.init.normal_(layer.norm.bias)
    return layer


def test_pre_norm_gives_the_sublayer_normed_input_and_leaves_the_stream_alone():
    layer, x = residual("pre"), torch.randn(2, 3, 6)
    assert_close(layer(x, lambda h: h**2), x + layer.norm(x) ** 2)


def test_post_norm_gives_the_sublayer_the_stream_and_norms_the_sum():
    layer, x = residual("post"), torch.randn(2, 3, 6)
    assert_close(layer(x, lambda h: h**2), layer.norm(x + x**2))


@pytest.mark.parametrize("norm_place", ["pre", "post"])
def test_dropout_falls_on_what_is_written_and_never_on_the_stream(norm_place):
    layer, x = residual(norm_place, dropout=0.5), torch.randn(200, 6)
    written = torch.full_like(x, 100.0)
    seen = []
    layer.dropout.register_forward_hook(lambda module, inputs, dropped: seen.append((inputs[0], dropped)))
    after = layer(x, lambda h: written)
    ((given, dropped),) = seen
    assert given is written and 0.3 < (dropped == 0).float().mean() < 0.7
    assert_close(after, x + dropped if norm_place == "pre" else layer.norm(x + dropped))
