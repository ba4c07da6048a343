import pytest
import torch
from torch.testing import assert_close

from regardant.attention import View
from regardant.layers.convolution import ConvolutionMixer, ConvolutionMixerConfig

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


def test_without_a_gate_it_is_the_sum_over_neighbours():
    layer, x = ConvolutionMixer(D_MODEL, KERNEL, causal=False, gated=False), torch.randn(1, LENGTH, D_MODEL)
    weight, bias = layer.convolution.weight, layer.convolution.bias
    padded = torch.cat([torch.zeros(1, D_MODEL), x[0], torch.zeros(1, D_MODEL)])
    sums = [bias + sum(weight[:, :, k] @ padded[i + k] for k in range(KERNEL)) for i in range(LENGTH)]
    assert_close(layer(x, View())[0], torch.stack(sums))


@pytest.mark.parametrize(("causal", "reads"), [(False, [2, 5, 8]), (True, [5, 8, 11])])
def test_a_dilated_kernel_reads_tokens_that_far_apart(causal, reads):
    layer = ConvolutionMixer(D_MODEL, KERNEL, causal=causal, gated=False, dilation=3)
    x = torch.randn(1, 14, D_MODEL)
    other = x.clone()
    other[:, 5] = 0
    changed = (layer(other, View()) - layer(x, View())).abs().amax(-1)[0] > 1e-6
    assert changed.nonzero().flatten().tolist() == reads


def test_a_dilated_convolution_decodes_step_by_step():
    layer, x = ConvolutionMixer(D_MODEL, KERNEL, causal=True, dilation=2), torch.randn(2, 9, D_MODEL)
    cache = layer.start(9)
    steps = torch.cat([layer(token[:, None], View(), cache) for token in x.unbind(1)], 1)
    assert_close(steps, layer(x, View()))


def test_the_dilation_grows_from_layer_to_layer():
    config = ConvolutionMixerConfig(kernel=3, growth=3)
    assert [config.at_layer(number).dilation for number in range(3)] == [1, 3, 9]


def test_a_dilation_without_a_second_token_is_refused():
    config = ConvolutionMixerConfig(kernel=3, growth=3).at_layer(2)
    with pytest.raises(
        ValueError, match=r"^a dilation of 9 reaches no second token within max_length \(9\): lower gro"
    ):
        config.build(D_MODEL, max_length=9, causal=False)
    config.build(D_MODEL, max_length=10, causal=False)
    config.model_copy(update={"kernel": 1}).build(D_MODEL, max_length=9, causal=False)
