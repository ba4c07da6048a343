"""Layers: feed-forward as a convolution, layer norm, heads and their weights, masks, gradients through time."""

from typing import Any

import torch
from torch import Tensor, nn

from regardant.attention import ScaledDotProductConfig
from regardant.attention.masks import causal
from regardant.checks.verify.check import COURSE, MISSAOUI, PITIE, Claim
from regardant.checks.verify.mechanisms import exactly
from regardant.layers.feed_forward import ConvolutionalFeedForward, LinearFeedForward
from regardant.layers.multi_head import HeadShape, Projections, SelfAttention
from regardant.layers.norms import LayerNormConfig, SigmaLayerNorm
from regardant.positions.none import NoPositions


def parameters(module: nn.Module) -> int:
    """Count all parameters, shared ones once."""
    return sum(parameter.numel() for parameter in module.parameters())


def matrices(module: nn.Module) -> int:
    """Count the parameters of matrices, without biases and norms."""
    return sum(parameter.numel() for parameter in module.parameters() if parameter.dim() > 1)


def self_attention(shape: HeadShape, projections: Projections = "separate") -> SelfAttention:
    """Return a self-attention layer of the project, on the meta device."""
    with torch.device("meta"):
        return SelfAttention(shape, ScaledDotProductConfig(), NoPositions(), projections, causal=False)


def feed_forward(d_model: int, d_ff: int) -> LinearFeedForward:
    """Return a feed-forward layer of the project, on the meta device."""
    with torch.device("meta"):
        return LinearFeedForward(d_model, d_ff, 0.0)


@Claim(
    "N-22",
    "Feed-forward as 1 × 1 convolutions",
    COURSE,
    lecture={"equal": "yes", "largest difference": "~1e-7"},
    true={"equal": "yes", "largest difference": "<1e-5", "largest difference in float64": "<1e-13"},
    verdict="right",
    note="Batch 2, length 10, d_model = 512, d_ff = 2048. In float32 another order of summation alone differs by up to "
    "1e-6.",
).measured
def convolution() -> dict[str, Any]:
    linear = LinearFeedForward(512, 2048, 0.0)
    convolved = ConvolutionalFeedForward(512, 2048, 0.0, "relu", kernel=1, causal=False)
    convolved.copy_linear(linear)
    x = torch.randn(2, 10, 512)
    plain = linear(x), convolved(x)
    wide = linear.double()(x.double()), convolved.double()(x.double())
    return {
        "equal": torch.allclose(*plain, atol=1e-6),
        "largest difference": (plain[0] - plain[1]).abs().max(),
        "largest difference in float64": (wide[0] - wide[1]).abs().max(),
    }


@Claim(
    "N-29",
    "Feed-forward of a shifted sequence",
    COURSE,
    lecture="FFN(roll(X)) = roll(FFN(X))",
    true={
        "shifted by one": "<1e-6",
        "in any other order": "<1e-6",
        "shifted by one, kernel 3": ">0.01",
        "shifted by one, with dropout": ">0.01",
    },
    verdict="right",
    note="Each position is computed by itself, so the equation holds for any order. It fails for a wider kernel, "
    "padded at its ends, and with dropout.",
).measured
def shifted() -> dict[str, Tensor]:
    x, order = torch.randn(2, 10, 64), torch.randperm(10)

    def apart(layer: nn.Module) -> Tensor:
        return (layer(x.roll(1, 1)) - layer(x).roll(1, 1)).abs().max()

    layer = LinearFeedForward(64, 256, 0.0)
    return {
        "shifted by one": apart(layer),
        "in any other order": (layer(x[:, order]) - layer(x)[:, order]).abs().max(),
        "shifted by one, kernel 3": apart(ConvolutionalFeedForward(64, 256, 0.0, "relu", kernel=3, causal=False)),
        "shifted by one, with dropout": apart(LinearFeedForward(64, 256, 0.5).train()),
    }


@Claim(
    "N-28",
    "Layer norm: where ε stands",
    COURSE,
    lecture={"formula": "(x - μ) / (σ + ε)", "code": "nn.LayerNorm"},
    true={
        "σ + ε": "-1.341629 -0.447210 0.447210 1.341629",
        "sqrt(σ² + ε)": "-1.341635 -0.447212 0.447212 1.341635",
        "unbiased σ + ε, ε = 1e-6": "-1.161894 -0.387298 0.387298 1.161894",
        "σ + ε is larger at σ = .001 by": "3.284",
        "and smaller at σ = 1 by a share of": "5.0e-6",
    },
    verdict="partly",
    note="For [1, 2, 3, 4], ε = 1e-5. The lecture's own code computes the other formula. Both differ where σ is small.",
).measured
def layer_norm() -> dict[str, Any]:
    beside, under = SigmaLayerNorm(4).double(), LayerNormConfig().build(4).double()
    x = exactly([1.0, 2.0, 3.0, 4.0])
    of_one = (x - x.mean()) / x.std(correction=0)
    return {
        "σ + ε": beside(x),
        "sqrt(σ² + ε)": under(x),
        "unbiased σ + ε, ε = 1e-6": (x - x.mean()) / (x.std() + 1e-6),
        "σ + ε is larger at σ = .001 by": (beside(of_one / 1000) / under(of_one / 1000)).mean(),
        "and smaller at σ = 1 by a share of": 1 - (beside(of_one) / under(of_one)).mean(),
    }


@Claim(
    "N-42",
    "The causal mask of four tokens",
    COURSE,
    lecture="0 1 1 1; 0 0 1 1; 0 0 0 1; 0 0 0 0",
    true="0 1 1 1; 0 0 1 1; 0 0 0 1; 0 0 0 0",
    verdict="right",
    note="In this project a mask is True where a query may attend.",
).measured
def causal_mask() -> Tensor:
    tokens = torch.zeros(1, 1, 4, 1)
    allowed = causal().mask(tokens, tokens)
    assert allowed is not None
    return (~allowed)[0, 0].int()


@Claim(
    "N-54",
    "Gradients through many steps or layers",
    f"{MISSAOUI}; {COURSE}",
    lecture="products of factors below 1 vanish; with residuals gradients can't vanish",
    true={
        "slope of the sigmoid at 0": "0.25",
        "linear recurrence .9, 100 steps": "2.656e-5",
        ".5, 50 steps": "8.88e-16",
        "1.1, 100 steps": "13780.6",
        "residual x + .5 x, 3 layers": "3.375",
        "residual x - x, 3 layers": "0.000",
    },
    verdict="partly",
    note="A residual multiplies by 1 + f', which is 0 where f' = -1: there is a direct path, but it can be cancelled.",
).measured
def vanishing() -> dict[str, Tensor]:
    def slope(factor: float, steps: int, *, residual: bool = False) -> Tensor:
        with torch.enable_grad():
            start = exactly(1.0).requires_grad_()
            state = start
            for _ in range(steps):
                state = state + factor * state if residual else factor * state
            return torch.autograd.grad(state, start)[0]

    with torch.enable_grad():
        zero = exactly(0.0).requires_grad_()
        sigmoid = torch.autograd.grad(zero.sigmoid(), zero)[0]
    return {
        "slope of the sigmoid at 0": sigmoid,
        "linear recurrence .9, 100 steps": slope(0.9, 100),
        ".5, 50 steps": slope(0.5, 50),
        "1.1, 100 steps": slope(1.1, 100),
        "residual x + .5 x, 3 layers": slope(0.5, 3, residual=True),
        "residual x - x, 3 layers": slope(-1.0, 3, residual=True),
    }


@Claim(
    "N-55",
    "Truncated back-propagation",
    COURSE,
    lecture=None,
    true={
        "h after ten steps": "6.513216",
        "its gradient in w, all steps": "26.390107",
        "the last 1, 3, 5 and 10 steps": "6.125795 15.477385 21.579976 26.390107",
    },
    verdict="unstated",
    note="Ten steps of h = .9 h + 1. The lecture gives only the idea: the gradient is cut, the state is not.",
).measured
def truncated() -> dict[str, Any]:
    def run(last: int) -> tuple[Tensor, Tensor]:
        with torch.enable_grad():
            w, state = exactly(0.9).requires_grad_(), exactly(0.0)
            for step in range(10):
                state = (state.detach() if step == 10 - last else state) * w + 1
            return state.detach(), torch.autograd.grad(state, w)[0]

    return {
        "h after ten steps": run(10)[0],
        "its gradient in w, all steps": run(10)[1],
        "the last 1, 3, 5 and 10 steps": [run(last)[1] for last in (1, 3, 5, 10)],
    }


@Claim(
    "N-58",
    "Weights of multi-head attention",
    COURSE,
    lecture="Q = K = V: d² parameters; separate: 3d²; heads are parameter-efficient",
    true={
        "with 1, 8 and 16 heads": "1048576 1048576 1048576",
        "of queries, keys and values": "786432",
        "of these where all share one": "262144",
        "where there are none, as in softmax(X Xᵀ) X": "0",
    },
    verdict="wrong",
    note="d = 512. The number of heads does not change the count, and the code that is shown for “1 matrix” has none.",
).measured
def heads() -> dict[str, Any]:
    one = HeadShape(512, 1, 1, 512, 512)
    shared = self_attention(one, "all").query_key_value
    return {
        "with 1, 8 and 16 heads": [
            matrices(self_attention(HeadShape(512, count, count, 512 // count, 512 // count))) for count in (1, 8, 16)
        ],
        "of queries, keys and values": matrices(self_attention(one).query_key_value),
        "of these where all share one": matrices(shared),
        "where there are none, as in softmax(X Xᵀ) X": parameters(self_attention(one, "none")),
    }


@Claim(
    "N-59",
    "Keras' two heads of unequal sizes",
    PITIE,
    lecture={"numbers of a query, key and value": "2 2 3"},
    true={
        "numbers of a query, key and value": "2 2 3",
        "parameters at d = 4 and 8": "98 182",
        "of these, the output projection": "28 56",
    },
    verdict="right",
    note="key_dim 2 and value_dim 3. 21 d + 14 parameters with biases. The lecture does not name the output "
    "projection, which has 7 d of them.",
).measured
def keras_heads() -> dict[str, Any]:
    layers = [self_attention(HeadShape(d, 2, 2, 2, 3)) for d in (4, 8)]
    q, k, v = (width // 2 for width in layers[0].widths)
    return {
        "numbers of a query, key and value": [q, k, v],
        "parameters at d = 4 and 8": [parameters(layer) for layer in layers],
        "of these, the output projection": [parameters(layer.output) for layer in layers],
    }


@Claim(
    "N-62",
    "Weights of the feed-forward network",
    COURSE,
    lecture="d_model × d_ff + d_ff × d_model, whatever the length",
    true={"weights": "2097152", "with biases": "2099712"},
    verdict="right",
    note="d_model = 512, d_ff = 2048.",
).measured
def feed_forward_weights() -> dict[str, int]:
    layer = feed_forward(512, 2048)
    return {"weights": matrices(layer), "with biases": parameters(layer)}
