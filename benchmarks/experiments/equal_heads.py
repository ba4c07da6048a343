"""Do heads specialise by themselves? Only if they differ at the start.

Heads that begin with the same projections and the same block of the output matrix get the same gradient at every
step and stay equal for ever: the random initial weights let them differ, not the objective.
"""

from typing import Any

import torch
from torch import Tensor, nn

from regardant.layers.multi_head import SelfAttention

from . import toy
from .reader import spread

STEPS, D_MODEL, NUM_HEADS, SEEDS = 200, 32, 4, 3
CASES = ("random", "equal projections", "equal projections and outputs")


def measure() -> dict[str, Any]:
    """Return how far apart the heads' query matrices are, relative to their size, while a toy task is learned."""
    return {
        "claim": "heads specialise by themselves",
        "x": [0, *toy.updates(STEPS)],
        "steps": STEPS,
        "seeds": SEEDS,
        "series": {case: spread(lambda seed, case=case: _train(case, seed), SEEDS) for case in CASES},
    }


def _train(case: str, seed: int) -> list[float]:
    model = toy.build(seed, num_layers=1, d_model=D_MODEL, num_heads=NUM_HEADS, d_ff=64)
    attention = model.encoder.layers[0].self_attention
    assert isinstance(attention, SelfAttention)
    if case != "random":
        _equalise(attention, outputs=case.endswith("outputs"))
    return toy.train(model, steps=STEPS, rate=3e-3, watch=lambda: _difference(attention))


def _query_heads(attention: SelfAttention) -> Tensor:
    """Return the query matrices of the heads [H, D, M]."""
    linear = attention.query_key_value
    assert isinstance(linear, nn.Linear)
    return linear.weight[:D_MODEL].view(NUM_HEADS, -1, D_MODEL)


@torch.no_grad()
def _equalise(attention: SelfAttention, *, outputs: bool) -> None:
    assert isinstance(attention.query_key_value, nn.Linear) and isinstance(attention.output, nn.Linear)
    for parameter in (attention.query_key_value.weight, attention.query_key_value.bias):
        parts = parameter.view(3, NUM_HEADS, D_MODEL // NUM_HEADS, -1)
        parts.copy_(parts[:, :1].clone().expand_as(parts))
    if outputs:
        blocks = attention.output.weight.view(D_MODEL, NUM_HEADS, -1)
        blocks.copy_(blocks[:, :1].clone().expand_as(blocks))


@torch.no_grad()
def _difference(attention: SelfAttention) -> float:
    heads = _query_heads(attention)
    return float((heads - heads.mean(0)).norm() / heads.norm())
