"""Do warm-up and clipping cure instability? Post-norm stacks at rising learning rates, with and without each."""

from typing import Any

import torch

from . import toy

RATES, STEPS, SEEDS, LAYERS, WARMUP, CLIP = [5e-4, 1e-3, 2e-3, 4e-3], 300, 3, 4, 100, 1.0
CASES = {"neither": (0, None), "warm-up": (WARMUP, None), "clipping": (0, CLIP), "both": (WARMUP, CLIP)}


def measure() -> dict[str, Any]:
    """Return the loss in nats a token over the last updates, by learning rate."""
    from .reader import spread

    return {
        "claim": "warm-up and gradient clipping cure unstable training",
        "x": RATES,
        "steps": STEPS,
        "seeds": SEEDS,
        "chance": round(toy.CHANCE, 3),
        "series": {name: spread(lambda seed, case=case: _losses(*case, seed), SEEDS) for name, case in CASES.items()},
    }


def _losses(warmup: int, clip: float | None, seed: int) -> list[float]:
    found = []
    for rate in RATES:
        model = toy.build(seed, num_layers=LAYERS, norm="post")
        curve = toy.train(model, steps=STEPS, rate=rate, warmup=warmup, clip=clip)
        found.append(curve[-1] if torch.isfinite(torch.tensor(curve[-1])) else 10.0)
    return found
