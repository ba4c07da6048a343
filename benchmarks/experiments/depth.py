"""Do residuals make depth possible? The same stacks with and without them, deeper and deeper."""

from typing import Any

from . import toy

DEPTHS, STEPS, RATE, SEEDS = [1, 2, 4, 8, 16], 400, 1e-3, 3


def measure() -> dict[str, Any]:
    """Loss in nats a token over the last updates, by depth, medians over seeds."""
    return {
        "depths": DEPTHS,
        "steps": STEPS,
        "seeds": SEEDS,
        "chance": round(toy.CHANCE, 3),
        "loss": {
            name: [_median_loss(residual, depth) for depth in DEPTHS]
            for name, residual in (("with residuals", "add"), ("without", "none"))
        },
    }


def _median_loss(residual: str, depth: int) -> float:
    curves = []
    for seed in range(SEEDS):
        model = toy.build(seed, num_layers=depth, residual=residual)
        curves.append(toy.train(model, steps=STEPS, rate=RATE, warmup=100))
    return toy.medians(curves)[-1]
