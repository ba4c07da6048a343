"""Does a gradient reach far-away tokens? The norm of d(u . last output) / d(input k tokens earlier).

The gradient of a vanilla RNN fades with the distance, gates preserve it longer, and self-attention is independent of
distance. u is a random direction, and all models are causal. Norms are relative to the norm one token back: at the
token itself, the residual stream bypasses the layers.
"""

from typing import Any

import torch
from torch import Tensor

from regardant.attention import View
from regardant.layers.recurrent import RecurrentStack
from regardant.models.encoder_decoder import EncoderDecoderConfig
from regardant.models.stacks import Encoder

from .reader import spread

LENGTH, SIZE, SEEDS = 128, 64, 10
DISTANCES = [1, 2, 4, 8, 16, 32, 64, 120]
MODELS = ("rnn", "gru", "lstm", "transformer")

LEAST = 1e-4
"""Least gradient norm one token back: a smaller one is rounding error, and so are norms relative to it."""


def measure() -> dict[str, Any]:
    """Return gradient norms by distance, relative to the norm one token back, over fresh weights and inputs."""
    return {
        "claim": "gradients fade in recurrent models, gates slow that down, a Transformer's do not fade",
        "x": DISTANCES,
        "length": LENGTH,
        "size": SIZE,
        "seeds": SEEDS,
        "series": {name: spread(lambda seed, name=name: _norms(name, seed), SEEDS) for name in MODELS},
    }


def _norms(name: str, seed: int) -> list[float]:
    torch.manual_seed(seed)
    x = torch.randn(1, LENGTH, SIZE, dtype=torch.float64, requires_grad=True)  # its smallest numbers are 1e-308
    direction = torch.randn(SIZE, dtype=torch.float64)  # not ones: the output of a layer norm sums to a constant
    (gradient,) = torch.autograd.grad((_last_output(name, x)[0] * direction).sum(), x)
    norms = gradient[0].norm(dim=-1).flip(0)  # by distance
    if norms[1] < LEAST:
        raise ArithmeticError(f"{name}: the gradient one token back is {norms[1]:.2g}, which is rounding")
    return [float(one) for one in norms[DISTANCES] / norms[1]]


def _last_output(name: str, x: Tensor) -> Tensor:
    if name == "transformer":
        config = EncoderDecoderConfig(preset=None, d_model=SIZE, d_ff=4 * SIZE, dropout=0.0, encoder={"num_layers": 2})
        positions = config.build_positions(LENGTH, causal=False)
        encoder, view = Encoder(config, config.encoder, positions, LENGTH).double(), View(causal=True)
        placed = x + positions.embed(torch.arange(LENGTH))
        stream = config.open_stream(placed, training=True)
        for layer in encoder.layers:
            layer(stream, view)
        output: Tensor = encoder.final_norm(stream.close())
        return output[:, -1]
    assert name in ("rnn", "gru", "lstm")
    stack = RecurrentStack(name, SIZE, SIZE, num_layers=2, dropout=0.0).double()
    return stack(x, stack.start(x))[0][:, -1]
