"""Do warm-up and clipping cure instability? Post-norm stacks at ever larger rates, with and without each."""

from typing import Any

import torch

from . import toy

RATES, STEPS, SEEDS, LAYERS, WARMUP, CLIP = [5e-4, 1e-3, 2e-3, 4e-3], 300, 3, 4, 100, 1.0
CASES = {"neither": (0, None), "warm-up": (WARMUP, None), "clipping": (0, CLIP), "both": (WARMUP, CLIP)}


def measure() -> dict[str, Any]:
    """Loss in nats a token over the last updates, by rate."""
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
        if clip is not None:
            for parameter in model.parameters():
                parameter.register_post_accumulate_grad_hook(_clipped(clip))
        curve = toy.train(model, steps=STEPS, rate=rate, warmup=warmup)
        found.append(curve[-1] if torch.isfinite(torch.tensor(curve[-1])) else 10.0)
    return found


def _clipped(most: float) -> Any:
    """Return a hook that clips the gradient of one tensor by its norm."""

    def hook(parameter: torch.Tensor) -> None:
        assert parameter.grad is not None
        norm = parameter.grad.norm()
        if norm > most:
            parameter.grad.mul_(most / norm)

    return hook
