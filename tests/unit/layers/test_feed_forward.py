import pytest
import torch
from torch.testing import assert_close

from regardant.attention import View
from regardant.layers.dropout import Dropout
from regardant.layers.feed_forward import (
    ActivationAloneConfig,
    ConvolutionalFeedForward,
    ConvolutionalFeedForwardConfig,
    GatedFeedForward,
    GatedFeedForwardConfig,
    LinearFeedForward,
    LinearFeedForwardConfig,
)


def test_it_widens_rectifies_and_narrows():
    torch.manual_seed(0)
    layer = LinearFeedForward(4, 9, dropout=0.5).eval()
    x = torch.randn(2, 3, 4)
    widen, narrow = layer.widen, layer.narrow
    hidden = (x @ widen.weight.T + widen.bias).clamp_min(0)
    assert_close(layer(x), hidden @ narrow.weight.T + narrow.bias)


def test_each_position_is_by_itself():
    layer = LinearFeedForward(4, 9, dropout=0.0)
    x = torch.randn(2, 3, 4)
    assert_close(layer(x)[:, 1], layer(x[:, 1]))


def test_dropout_falls_on_what_is_widened():
    torch.manual_seed(0)
    layer = LinearFeedForward(4, 1000, dropout=0.5).train()
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


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_two_convolutions_of_kernel_one_are_the_linear_network(activation, bias):
    torch.manual_seed(0)
    linear = LinearFeedForward(512, 2048, 0.0, activation, bias=bias).double()
    convolution = ConvolutionalFeedForward(512, 2048, 0.0, activation, kernel=1, causal=False).double()
    convolution.copy_linear(linear)
    x = torch.randn(2, 10, 512, dtype=torch.float64)
    assert_close(convolution(x), linear(x), rtol=0, atol=1e-13)
    assert convolution.widen.weight.data_ptr() != linear.widen.weight.data_ptr()


@pytest.mark.parametrize("causal", [False, True])
def test_a_larger_kernel_takes_over_no_linear_network(causal):
    convolution = ConvolutionalFeedForward(4, 8, 0.0, "relu", kernel=3, causal=causal)
    with pytest.raises(ValueError, match=r"^a kernel of 3 reads neighbours, which a linear network does not: take"):
        convolution.copy_linear(LinearFeedForward(4, 8, 0.0))


def reads(layer):
    """[T, T]: 1 where what is said at a row changes with the token of a column."""
    x = torch.randn(1, 6, 4, requires_grad=True)
    said = layer(x)
    rows = [torch.autograd.grad(said[0, t].sum(), x, retain_graph=True)[0][0].abs().sum(-1) > 0 for t in range(6)]
    return torch.stack(rows).int()


@pytest.mark.parametrize(("kernel", "causal", "band"), [(3, False, (1, -1)), (5, False, (2, -2)), (3, True, (0, -2))])
def test_a_larger_kernel_mixes_neighbours_and_never_the_future_of_a_decoder(kernel, causal, band):
    layer = ConvolutionalFeedForwardConfig(kernel=kernel, activation="gelu").build(4, 8, 0.0, causal=causal)
    assert layer(torch.randn(2, 6, 4)).shape == (2, 6, 4)
    expected = torch.ones(6, 6).tril(band[0]).triu(band[1]).int()
    assert torch.equal(reads(layer), expected)


def test_a_larger_kernel_does_not_read_padding():
    layer = ConvolutionalFeedForwardConfig(kernel=3).build(4, 8, 0.0, causal=False)
    x, real = torch.randn(1, 6, 4), torch.tensor([[True] * 4 + [False] * 2])
    assert_close(layer(x, View(keys=real))[:, :4], layer(x[:, :4]))


def test_an_even_kernel_has_no_middle():
    with pytest.raises(ValueError, match="odd"):
        ConvolutionalFeedForwardConfig(kernel=4).build(4, 8, 0.0, causal=False)
    ConvolutionalFeedForwardConfig(kernel=4).build(4, 8, 0.0, causal=True)


def test_a_gate_costs_no_more_weights():
    def weights(config):
        layer = config.build(96, 384, 0.0, causal=False)
        return sum(p.numel() for p in layer.parameters() if p.dim() == 2)

    assert weights(GatedFeedForwardConfig()) == weights(LinearFeedForwardConfig())


def test_a_gate_multiplies():
    torch.manual_seed(0)
    layer = GatedFeedForward(4, 9, 0.0, "sigmoid")
    x = torch.randn(2, 3, 4)
    hidden = torch.sigmoid(x @ layer.gate.weight.T + layer.gate.bias) * (x @ layer.widen.weight.T + layer.widen.bias)
    assert_close(layer(x), hidden @ layer.narrow.weight.T + layer.narrow.bias)


@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("portions", [[1] * 6, [2, 3, 1]], ids=str)
def test_step_by_step_equals_one_pass(kernel, portions):
    layer = ConvolutionalFeedForwardConfig(kernel=kernel).build(4, 8, 0.0, causal=True)
    x, cache = torch.randn(2, 6, 4), layer.start()
    stepped = torch.cat([layer(newest, cache=cache) for newest in x.split(portions, 1)], 1)
    assert_close(stepped, layer(x))


def test_a_cache_reordered_continues_other_rows():
    layer = ConvolutionalFeedForwardConfig(kernel=3).build(4, 8, 0.0, causal=True)
    x, rows, cache = torch.randn(2, 6, 4), torch.tensor([1, 1, 0]), layer.start()
    layer(x[:, :5], cache=cache)
    cache.reorder(rows)
    assert_close(layer(x[rows, 5:], cache=cache), layer(x[rows])[:, 5:])


def test_an_activation_alone_has_no_matrices():
    layer = ActivationAloneConfig().build(4, 9, 0.5, causal=False)
    x = torch.linspace(-2, 2, 8).view(2, 4)
    assert not list(layer.parameters())
    assert_close(layer.eval()(x), torch.nn.functional.elu(x))
    assert (layer.train()(torch.ones(1000)) == 0).float().mean() == pytest.approx(0.5, abs=0.1)
    rectified = ActivationAloneConfig(activation="relu").build(4, 9, 0.0, causal=False)
    assert_close(rectified(x), x.clamp_min(0))
