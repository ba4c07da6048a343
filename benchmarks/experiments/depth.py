"""Do residuals make depth possible? The same stacks with and without them, deeper and deeper."""

from typing import Any

from . import toy
from .reader import spread

DEPTHS, STEPS, RATE, SEEDS = [1, 2, 4, 8, 16], 400, 1e-3, 3
RESIDUALS = {"with residuals": "add", "without": "none"}


def measure() -> dict[str, Any]:
    """Return the loss in nats a token over the last updates, by depth."""
    return {
        "claim": "residual connections make stacks of a hundred layers and more possible",
        "x": DEPTHS,
        "steps": STEPS,
        "seeds": SEEDS,
        "chance": round(toy.CHANCE, 3),
        "series": {
            name: spread(lambda seed, residual=residual: _losses(residual, seed), SEEDS)
            for name, residual in RESIDUALS.items()
        },
    }


def _losses(residual: str, seed: int) -> list[float]:
    models = [toy.build(seed, num_layers=depth, residual=residual) for depth in DEPTHS]
    return [toy.train(model, steps=STEPS, rate=RATE, warmup=100)[-1] for model in models]
