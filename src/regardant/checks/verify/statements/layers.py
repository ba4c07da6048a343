"""Statements about layers, baselines and positions."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from regardant.attention import EVERYTHING, ScaledDotProductConfig, View
from regardant.checks.verify import cost, counts, layers, positions
from regardant.checks.verify.attention import largest
from regardant.checks.verify.check import COURSE, MISSAOUI, PITIE, WALKTHROUGH, WANG, Claim
from regardant.checks.verify.layers import parameters
from regardant.checks.verify.mechanisms import ours
from regardant.layers.convolution import ConvolutionMixer
from regardant.layers.dense import DenseMixer
from regardant.layers.feed_forward import ConvolutionalFeedForward, LinearFeedForward
from regardant.layers.multi_head import HeadShape, SelfAttention
from regardant.models import EncoderDecoderConfig, next_token, tokens
from regardant.models.stacks import EncoderLayer
from regardant.positions.none import NoPositions
from regardant.positions.sinusoidal import SinusoidalConfig

LENGTH, D_MODEL = 6, 16


def changed_by(layer: Callable[[Tensor], Tensor], position: int) -> list[int]:
    """Return the positions, counted from 0, whose output changes with the input at `position`."""
    x = torch.randn(1, LENGTH, D_MODEL)
    other = x.clone()
    other[:, position] = torch.randn(D_MODEL)
    return ((layer(other) - layer(x)).abs().amax(-1)[0] > 1e-6).nonzero().flatten().tolist()


def attending(*, causal: bool = False) -> SelfAttention:
    """Return a self-attention layer with two heads."""
    shape = HeadShape(D_MODEL, 2, 2, D_MODEL // 2, D_MODEL // 2)
    return SelfAttention(shape, ScaledDotProductConfig(), NoPositions(), "separate", causal=causal)


@Claim(
    "E-01",
    "What the feed-forward network reads",
    MISSAOUI,
    lecture="pools the learned information of each position",
    true={"outputs that a change of the third position changes": "2"},
    verdict="wrong",
    note="The network pools nothing: each position is computed by itself. Positions count from 0.",
).measured
def each_position_alone() -> dict[str, list[int]]:
    layer = LinearFeedForward(D_MODEL, 32, 0.0)
    return {"outputs that a change of the third position changes": changed_by(layer, 2)}


DENSE_PARAMETERS = Claim(
    "E-05",
    "Parameters of a dense layer",
    f"{PITIE}; {MISSAOUI}",
    lecture={"parameters of a dense layer": "4194304"},
    true={},
    verdict="wrong",
    note="L² d d_v, since each pair of positions has a matrix; the lecture says O(L d d_v). L = 128, d = 512, "
    "d_v = 64.",
).shown_by(counts.costs, "parameters of a dense layer")


@Claim(
    "E-06",
    "Convolutions and the length of inputs",
    PITIE,
    lecture="convolutions and dense layers cannot deal with variable-size inputs",
    true={"convolution on 3, 7 and 20 tokens": "3 7 20", "dense layer of 8 positions on 9": "refused"},
    verdict="partly",
    note="A convolution takes any length. A dense layer over positions does not.",
).measured
def lengths() -> dict[str, Any]:
    convolution = ConvolutionMixer(D_MODEL, 3, causal=False)
    found = [convolution(torch.randn(1, length, D_MODEL), EVERYTHING).shape[1] for length in (3, 7, 20)]
    try:
        dense = str(DenseMixer(D_MODEL, 8, causal=False)(torch.randn(1, 9, D_MODEL), EVERYTHING).shape)
    except ValueError:
        dense = "refused"
    return {"convolution on 3, 7 and 20 tokens": found, "dense layer of 8 positions on 9": dense}


@Claim(
    "E-10",
    "Sinusoids as the paper has them",
    PITIE,
    lecture="ω_k from k = 1, appended, a truncated series of the RBF kernel",
    true={
        "first frequency": "1.000000",
        "numbers of a token of 8, positions added": "8",
        "similarity at offsets 2, 5, 10, 30": "0.897 0.737 0.669 0.566",
        "RBF kernel": "0.886 0.470 0.049 0.000",
    },
    verdict="wrong",
    note="The paper counts from i = 0 and adds. Similarity of sinusoids falls slowly and not monotonically: they are "
    "no truncated series of that kernel.",
).measured
def sinusoids_of_the_paper() -> dict[str, Any]:
    kernel = positions.rbf_kernel.found(ours)
    scheme = SinusoidalConfig().build(d_model=8, num_heads=1, head_size=8, max_length=4, causal=False)
    return {
        "first frequency": positions.frequencies(512)[0],
        "numbers of a token of 8, positions added": scheme.embed(torch.arange(4)).shape[1],
        "similarity at offsets 2, 5, 10, 30": kernel["sinusoids at offsets 2, 5, 10, 30"],
        "RBF kernel": kernel["RBF kernel"],
    }


@Claim(
    "E-12",
    "Activations of LSTM and GRU",
    COURSE,
    lecture="LSTM and GRU introduce ReLU activations",
    true={
        "largest output for inputs of a thousand, LSTM and GRU": "<1.000001",
        "cell state of an LSTM after 50 steps, all gates open": "50",
    },
    verdict="wrong",
    note="Gates are sigmoids and candidates tanh, so every output is between -1 and 1, whatever the input. There is "
    "no ReLU. The cell state of an LSTM has no such bound: it may reach t after t steps.",
).measured
def bounded_outputs() -> dict[str, Any]:
    x = 1000 * torch.randn(1, 50, 4)
    outputs = torch.stack([nn.LSTM(4, 8, batch_first=True)(x)[0], nn.GRU(4, 8, batch_first=True)(x)[0]])
    open_lstm = nn.LSTM(1, 1, batch_first=True)
    for name, parameter in open_lstm.named_parameters():
        parameter.fill_(100.0 if "bias" in name else 0.0)  # every gate and candidate is 1
    return {
        "largest output for inputs of a thousand, LSTM and GRU": largest(outputs),
        "cell state of an LSTM after 50 steps, all gates open": float(open_lstm(torch.zeros(1, 50, 1))[1][1]),
    }


def _post_norm_layer() -> EncoderLayer:
    config = EncoderDecoderConfig(preset=None, d_model=D_MODEL, num_heads=2, d_ff=32, dropout=0.0, norm="post")
    return EncoderLayer(config, config.encoder, NoPositions(), LENGTH).eval()


@Claim(
    "E-16",
    "The encoder layer in one line",
    COURSE,
    lecture="EncoderLayer = FFN(LN(X + MHA(X, X, X)))",
    true={"this project's layer less LN(Z + FFN(Z))": "<1e-5", "less FFN(Z), the lecture's line": ">0.1"},
    verdict="wrong",
    note="Z = LN(X + MHA(X, X, X)), then LN(Z + FFN(Z)): the line leaves out the second residual and norm.",
).measured
def encoder_layer() -> dict[str, Tensor]:
    layer, x = _post_norm_layer(), torch.randn(1, LENGTH, D_MODEL)
    config = EncoderDecoderConfig(preset=None, d_model=D_MODEL, num_heads=2, norm="post", dropout=0.0)
    stream = config.open_stream(x, training=False)
    layer(stream, View())
    z = layer.after_self_attention.norm(x + layer.self_attention(x, View()))
    fed = layer.feed_forward(z)
    output = stream.close()
    return {
        "this project's layer less LN(Z + FFN(Z))": largest(output - layer.after_feed_forward.norm(z + fed)),
        "less FFN(Z), the lecture's line": largest(output - fed),
    }


@Claim(
    "E-17",
    "A layer as composed functions",
    COURSE,
    lecture="f(x) = x + FFN(x + Attention(x))",
    true={"z + FFN(z) less the lecture's form": ">0.1", "that difference less Attention(x)": "<1e-5"},
    verdict="wrong",
    note="z = x + Attention(x), then z + FFN(z). The lecture's form loses what attention writes to the stream itself. "
    "`model.residual=composition` trains it.",
).measured
def composition() -> dict[str, Tensor]:
    layer, x = _post_norm_layer(), torch.randn(1, LENGTH, D_MODEL)
    attended = layer.self_attention(x, View())
    z = x + attended
    apart = (z + layer.feed_forward(z)) - (x + layer.feed_forward(z))
    return {
        "z + FFN(z) less the lecture's form": largest(apart),
        "that difference less Attention(x)": largest(apart - attended),
    }


@Claim(
    "E-25",
    "A convolution of kernel 3 in the FFN",
    COURSE,
    lecture="Conv1d(d_model, d_ff, 3) without padding; y_ij without k",
    true={
        "tokens that are left of 10 without padding": "8",
        "with padding": "10",
        "outputs that a change of the third of 6 changes": "1 2 3",
        "the same in a decoder": "2 3 4",
    },
    verdict="wrong",
    note="The index is y_ijk. Pad one zero on each side, in a decoder two on the left. A 1-D kernel of 3 reads three "
    "positions.",
).measured
def kernel_of_three() -> dict[str, Any]:
    around, before = (
        ConvolutionalFeedForward(D_MODEL, 32, 0.0, "relu", kernel=3, causal=causal) for causal in (False, True)
    )
    return {
        "tokens that are left of 10 without padding": around.widen(torch.randn(1, D_MODEL, 10)).shape[-1],
        "with padding": around(torch.randn(1, 10, D_MODEL)).shape[1],
        "outputs that a change of the third of 6 changes": changed_by(around, 2),
        "the same in a decoder": changed_by(before, 2),
    }


@Claim(
    "E-29",
    "What the decoder does with the memory",
    COURSE,
    lecture="the encoder's output is added; a memory of each layer has very many parameters",
    true={"parameters that a memory of each layer adds": "0"},
    verdict="wrong",
    note="The output of cross-attention is added. Reading encoder layer i in decoder layer i adds no parameters; dense "
    "connections would. `model.memory=per_layer`.",
).measured
def memory_of_each_layer() -> dict[str, int]:
    def count(memory: str) -> int:
        config = EncoderDecoderConfig.model_validate({"preset": "tiny", "memory": memory})
        with torch.device("meta"):
            return parameters(config.build(tokens(100), tokens(100), next_token(100)))

    return {"parameters that a memory of each layer adds": count("per_layer") - count("final")}


WAVELENGTHS = Claim(
    "E-32",
    "Indices and wavelengths of sinusoids",
    f"{COURSE}; {WANG}",
    lecture={"longest wavelength": "10000 · 2π"},
    true={},
    verdict="wrong",
    note="i counts pairs of sine and cosine, from 0 to d/2 - 1, and not dimensions. The largest wavelength is "
    "2π · 10000^((d - 2) / d).",
).shown_by(positions.waves, "longest wavelength", "10000 · 2π")

CANCELLED = Claim(
    "E-34",
    "Gradients through residuals",
    COURSE,
    lecture="with residuals, gradients can't vanish",
    true={},
    verdict="partly",
    note="There is a direct path, but f' = -1 cancels it.",
).shown_by(layers.vanishing, "residual x + .5 x, 3 layers", "residual x - x, 3 layers")

EPSILON = Claim(
    "E-35",
    "Layer norm: formula and code",
    COURSE,
    lecture="the formula divides by σ + ε, the code is nn.LayerNorm",
    true={},
    verdict="partly",
    note="nn.LayerNorm divides by sqrt(σ² + ε).",
).shown_by(layers.layer_norm, "σ + ε", "sqrt(σ² + ε)", "σ + ε is larger at σ = .001 by")

ROTATION = Claim(
    "E-43",
    "The matrix of a shift",
    COURSE,
    lecture="four numbers in a row",
    true={},
    verdict="wrong",
    note="A 2 × 2 matrix, [[cos β, sin β], [-sin β, cos β]], on the column (sin, cos).",
).shown_by(positions.waves, "PE(p + 7) less T_7 PE(p)")

PATHS = Claim(
    "E-44",
    "Path lengths of convolutions",
    COURSE,
    lecture="O(log_k n)",
    true={},
    verdict="partly",
    note="Right with dilation. Plain convolutions need O(n / k) layers. Both counts are of causal convolutions.",
).shown_by(cost.path_lengths, "convolutions of kernel 3, dilated", "convolutions of kernel 3, plain")


@Claim(
    "E-45",
    "What decoder-only models can do",
    COURSE,
    lecture="decoder-only models can do everything",
    true={"outputs that a change of the third of 6 changes": "2 3 4 5", "the same in an encoder": "0 1 2 3 4 5"},
    verdict="partly",
    note="Large models can do much if prompted (Brown et al. 2020, https://arxiv.org/abs/2005.14165). A token has no "
    "context to its right.",
).measured
def left_context() -> dict[str, list[int]]:
    return {
        "outputs that a change of the third of 6 changes": _reach_of(causal=True),
        "the same in an encoder": _reach_of(causal=False),
    }


def _reach_of(*, causal: bool) -> list[int]:
    layer = attending(causal=causal)
    return changed_by(lambda x: layer(x, View(causal=causal)), 2)


@Claim(
    "E-47",
    "The formula of the FFN",
    WALKTHROUGH,
    lecture="max(0xW1 + b1)W2 + b2",
    true={"the layer less max(0, x W1 + b1) W2 + b2": "<1e-5"},
    verdict="wrong",
    note="A comma is missing: max(0, x W1 + b1) W2 + b2.",
).measured
def formula() -> dict[str, Tensor]:
    layer, x = LinearFeedForward(D_MODEL, 32, 0.0), torch.randn(LENGTH, D_MODEL)
    nn.init.normal_(layer.widen.bias)
    inner = torch.maximum(torch.zeros(()), x @ layer.widen.weight.T + layer.widen.bias)
    by_hand = inner @ layer.narrow.weight.T + layer.narrow.bias
    return {"the layer less max(0, x W1 + b1) W2 + b2": largest(layer(x) - by_hand)}


@Claim(
    "E-52",
    "What a GRU merges",
    WALKTHROUGH,
    lecture="the GRU combines input and forget gate; the paper is of 2023",
    true={"blocks of weights, GRU and LSTM": "3 4", "parts of the state, GRU and LSTM": "1 2"},
    verdict="partly",
    note="The GRU also has a reset gate and no separate cell. “Attention is all you need” is of 2017; its seventh "
    "version is of 2023.",
).measured
def gates() -> dict[str, list[int]]:
    gru, lstm = nn.GRU(4, 8, batch_first=True), nn.LSTM(4, 8, batch_first=True)
    states = [gru(torch.randn(1, 3, 4))[1], lstm(torch.randn(1, 3, 4))[1]]
    return {
        "blocks of weights, GRU and LSTM": [len(cell.get_parameter("weight_ih_l0")) // 8 for cell in (gru, lstm)],
        "parts of the state, GRU and LSTM": [1 if isinstance(state, Tensor) else len(state) for state in states],
    }


LEFT_OUT = Claim(
    "E-53",
    "Costs that the O() forms leave out",
    PITIE,
    lecture={"multiplications: scores, RNN, convolution, dense": "1048576 4194304 20971520 536870912"},
    true={},
    verdict="wrong",
    note="Attention also projects and mixes values, and a recurrence multiplies its state by a d_v × d_v matrix.",
).shown_by(
    counts.costs,
    "multiplications: scores, RNN, convolution, dense",
    "of attention's mix and projections",
)


STATEMENTS = (
    each_position_alone,
    DENSE_PARAMETERS,
    lengths,
    sinusoids_of_the_paper,
    bounded_outputs,
    encoder_layer,
    composition,
    kernel_of_three,
    memory_of_each_layer,
    WAVELENGTHS,
    CANCELLED,
    EPSILON,
    ROTATION,
    PATHS,
    left_context,
    formula,
    gates,
    LEFT_OUT,
)
