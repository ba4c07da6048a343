"""Pre-norm or post-norm, with warm-up or without: which deep stacks train?

Xiong et al. 2020, https://arxiv.org/abs/2002.04745: the gradient of a post-norm stack is large near its output at the
start, so that it needs a warm-up; that of a pre-norm stack is not.
"""

from typing import Any

import torch

from . import toy
from .reader import spread

STEPS, WARMUP, NUM_LAYERS, RATE, SEEDS = 600, 100, 8, 2e-3, 3
CASES = {
    f"{norm}-norm, {'with' if warmup else 'no'} warm-up": (norm, warmup)
    for norm in ("pre", "post")
    for warmup in (WARMUP, 0)
}


def measure() -> dict[str, Any]:
    """Return the loss in nats a token during training, and the gradient norm of each decoder layer before it."""
    return {
        "claim": "pre-norm is more stable than post-norm",
        "x": toy.updates(STEPS),
        "steps": STEPS,
        "layers": NUM_LAYERS,
        "learning_rate": RATE,
        "seeds": SEEDS,
        "chance": round(toy.CHANCE, 3),
        "series": {name: spread(lambda seed, case=case: _train(*case, seed), SEEDS) for name, case in CASES.items()},
        "gradient_by_layer": {
            f"{norm}-norm": spread(lambda seed, norm=norm: _gradients(norm, seed), SEEDS) for norm in ("pre", "post")
        },
    }


def _train(norm: str, warmup: int, seed: int) -> list[float]:
    model = toy.build(seed, num_layers=NUM_LAYERS, norm=norm)
    return toy.train(model, steps=STEPS, rate=RATE, warmup=warmup)


def _gradients(norm: str, seed: int) -> list[float]:
    """Return the gradient norm over all weights of each decoder layer, from the first to the last."""
    model = toy.build(seed, num_layers=NUM_LAYERS, norm=norm)
    toy.mean_loss(model, *toy.draw(torch.Generator().manual_seed(1))).backward()
    return [
        float(torch.cat([weight.grad.flatten() for weight in layer.parameters() if weight.grad is not None]).norm())
        for layer in model.decoder.layers
    ]
