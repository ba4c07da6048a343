import pytest
import torch
from torch.testing import assert_close

from regardant.attention import View
from regardant.layers.convolution import ConvolutionMixer

D_MODEL, LENGTH, KERNEL = 4, 6, 3


def by_hand(layer, x, first):
    """Gehring et al. 2017, section 3.2: (W_a * x + b_a) sigmoid(W_b * x + b_b), token by token; `first` offset read."""
    weight, bias = layer.convolution.weight, layer.convolution.bias
    said = []
    for t in range(LENGTH):
        total = bias.clone()
        for offset in range(KERNEL):
            if 0 <= (at := t + first + offset) < LENGTH:
                total = total + weight[:, :, offset] @ x[at]
        said.append(total[:D_MODEL] * torch.sigmoid(total[D_MODEL:]))
    return torch.stack(said)


@pytest.mark.parametrize(("causal", "first"), [(False, -1), (True, -2)])
def test_it_is_the_gated_sum_over_neighbours(causal, first):
    torch.manual_seed(0)
    layer, x = ConvolutionMixer(D_MODEL, KERNEL, causal=causal), torch.randn(1, LENGTH, D_MODEL)
    assert_close(layer(x, View())[0], by_hand(layer, x[0], first))


def test_padding_is_read_as_zeros():
    layer, x = ConvolutionMixer(D_MODEL, KERNEL, causal=False), torch.randn(1, LENGTH, D_MODEL)
    real = torch.tensor([[True] * 4 + [False] * 2])
    assert_close(layer(x, View(keys=real))[:, :4], layer(x[:, :4], View()))
