"""Can a layer find a relation at a distance that varies? The last token gives the distance of the answer.

Convolutions and dense layers have a weight for each offset or position, whatever the tokens; attention compares tokens.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor

from . import reader

LENGTH, SYMBOLS, STEPS, RATE, SEEDS = 12, 6, 500, 3e-3, 3
DISTANCES = [1, 2, 3, 4, 6, 8, 10]

MIXERS: dict[str, dict[str, Any]] = {
    "attention": {"kind": "scaled_dot_product"},
    "convolution, kernel 5": {"kind": "convolution", "kernel": 5, "gated": False},
    "dense": {"kind": "dense"},
}


def measure() -> dict[str, Any]:
    """Return the accuracy by distance for one layer of each kind."""
    return {
        "claim": "convolution and dense layers tie weights to places; attention finds a relation at any distance",
        "x": DISTANCES,
        "steps": STEPS,
        "seeds": SEEDS,
        "chance": 1 / SYMBOLS,
        "series": {
            name: reader.spread(partial(accuracies, mixer, LENGTH, DISTANCES, STEPS), SEEDS)
            for name, mixer in MIXERS.items()
        },
    }


def draw(
    generator: torch.Generator, distance: int | None = None, size: int = 64, length: int = LENGTH
) -> tuple[Tensor, Tensor]:
    """Return sequences whose last token is a distance, and the symbol that far before it as its answer."""
    tokens = torch.randint(SYMBOLS, (size, length), generator=generator)
    far = torch.randint(1, length, (size,), generator=generator) if distance is None else torch.full((size,), distance)
    answers = torch.full_like(tokens, -1)
    answers[:, -1] = tokens[torch.arange(size), length - 1 - far]
    tokens[:, -1] = SYMBOLS + far
    return tokens, answers


def accuracies(mixer: dict[str, Any], length: int, distances: list[int], steps: int, seed: int) -> list[float]:
    """Return the accuracy at each distance of a layer with this mixer, trained on sequences of this length."""
    model = reader.Reader(
        seed,
        vocab_size=SYMBOLS + length,
        classes=SYMBOLS,
        max_length=length,
        encoder={"num_layers": 1, "self_attention": mixer},
    )
    reader.fit(model, partial(draw, length=length), steps=steps, rate=RATE)
    test = torch.Generator().manual_seed(9)
    return [reader.accuracy(model, *draw(test, distance, 400, length)) for distance in distances]
