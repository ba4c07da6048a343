"""Which positions does an output depend on? A table of receptive fields, measured by gradients.

An output depends on an input if its gradient is not zero. Layers are untrained, so every path that exists is open.
"""

from typing import Any

import torch

from regardant.inspection.reach import reached
from regardant.layers.recurrent import RecurrentStack
from regardant.models.encoder_decoder import EncoderDecoderConfig
from regardant.models.stacks import Encoder
from regardant.models.vectors import Vectors

LENGTH, SIZE, DEPTHS = 64, 16, [1, 2, 3, 4]

MIXERS: dict[str, dict[str, Any]] = {
    "convolution, kernel 3": {"kind": "convolution", "kernel": 3},
    "convolution, kernel 3, dilation tripled": {"kind": "convolution", "kernel": 3, "growth": 3},
    "attention": {"kind": "scaled_dot_product"},
    "attention, window of 4": {"kind": "window", "window": 4},
    "dense": {"kind": "dense"},
}


def measure() -> dict[str, Any]:
    """Return the number of positions that reach the middle one, by number of layers."""
    series = {name: {"median": [_reach(mixer, depth) for depth in DEPTHS]} for name, mixer in MIXERS.items()}
    series["feed-forward alone"] = {"median": [1.0] * len(DEPTHS)}
    series["recurrence"] = {"median": [_recurrent(depth) for depth in DEPTHS]}
    return {
        "claim": "receptive field: a position, its neighbours, all; O(log_k n) layers of convolutions",
        "x": DEPTHS,
        "length": LENGTH,
        "series": series,
    }


def _reach(mixer: dict[str, Any], depth: int) -> float:
    torch.manual_seed(0)
    config = EncoderDecoderConfig.model_validate(
        {
            "preset": None,
            "d_model": SIZE,
            "num_heads": 2,
            "d_ff": 32,
            "dropout": 0.0,
            "max_length": LENGTH,
            "positions": {"kind": "none"},
            "encoder": {"num_layers": depth, "self_attention": mixer},
        }
    )
    encoder = Encoder(config, config.encoder, config.build_positions(LENGTH, causal=False), LENGTH)
    return _count(lambda x: encoder(Vectors(x)).values)


def _recurrent(depth: int) -> float:
    torch.manual_seed(0)
    stack = RecurrentStack("gru", SIZE, SIZE, depth, 0.0)
    return _count(lambda x: stack(x, stack.start(x))[0])


def _count(layer: Any) -> float:
    return float(reached(layer, torch.randn(1, LENGTH, SIZE), LENGTH // 2).sum())
