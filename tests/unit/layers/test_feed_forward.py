import torch
from torch.testing import assert_close

from regardant.layers.dropout import Dropout
from regardant.layers.feed_forward import FeedForward


def test_it_widens_rectifies_and_narrows():
    torch.manual_seed(0)
    layer = FeedForward(4, 9, dropout=0.5).eval()
    x = torch.randn(2, 3, 4)
    widen, narrow = layer.widen, layer.narrow
    hidden = (x @ widen.weight.T + widen.bias).clamp_min(0)
    assert_close(layer(x), hidden @ narrow.weight.T + narrow.bias)


def test_each_position_is_by_itself():
    layer = FeedForward(4, 9, dropout=0.0)
    x = torch.randn(2, 3, 4)
    assert_close(layer(x)[:, 1], layer(x[:, 1]))


def test_dropout_falls_on_what_is_widened():
    torch.manual_seed(0)
    layer = FeedForward(4, 1000, dropout=0.5).train()
    seen = []
    layer.narrow.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    x = torch.randn(1, 4)
    layer(x)
    layer.eval()(x)
    dropped, whole = seen
    live = whole > 0
    assert 0.4 < (dropped[live] == 0).float().mean() < 0.6
    kept = dropped != 0
    assert_close(dropped[kept], 2 * whole[kept])
    assert [type(module) for module in layer.children()].count(Dropout) == 1
