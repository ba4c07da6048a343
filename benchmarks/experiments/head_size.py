"""How small may heads be? The same model with smaller and smaller queries and keys."""

from typing import Any

from . import reader, toy

SIZES, STEPS, RATE, SEEDS = [1, 2, 4, 8, 16, 32], 400, 2e-3, 3


def measure() -> dict[str, Any]:
    """Return the loss in nats a token over the last updates, by the size of a head's queries and keys."""
    return {
        "claim": "d_k is typically much smaller than d",
        "x": SIZES,
        "steps": STEPS,
        "seeds": SEEDS,
        "chance": round(toy.CHANCE, 3),
        "series": {"d = 64, 4 heads": reader.spread(_losses, SEEDS)},
    }


def _losses(seed: int) -> list[float]:
    models = [toy.build(seed, num_layers=1, key_size=size, value_size=16) for size in SIZES]
    return [toy.train(model, steps=STEPS, rate=RATE, warmup=50)[-1] for model in models]
