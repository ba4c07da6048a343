"""Do positions extrapolate? Each scheme learns to copy the token before, and is tested at twice the trained length."""

from typing import Any

import torch
from torch import Tensor

from . import reader

SYMBOLS, SHORT, LONG, STEPS, RATE, SEEDS = 8, 16, 32, 400, 3e-3, 3

KINDS: dict[str, dict[str, Any]] = {
    "sinusoidal": {"kind": "sinusoidal"},
    "learned": {"kind": "learned"},
    "one_hot": {"kind": "one_hot"},
    "scalar": {"kind": "scalar"},
    "scalar, raw": {"kind": "scalar", "raw": True},
    "rotary": {"kind": "rotary"},
    "relative_bias": {"kind": "relative_bias"},
    "t5": {"kind": "t5"},
    "alibi": {"kind": "alibi"},
    "shaw": {"kind": "shaw"},
    "none": {"kind": "none"},
}


def measure() -> dict[str, Any]:
    """Return the accuracy at the trained length, and at positions past it."""
    return {
        "claim": "learned positions cannot extrapolate, sinusoids can",
        "x": [SHORT, LONG],
        "steps": STEPS,
        "seeds": SEEDS,
        "chance": 1 / SYMBOLS,
        "series": {
            name: reader.spread(lambda seed, kind=kind: _accuracies(kind, seed), SEEDS) for name, kind in KINDS.items()
        },
    }


def draw(length: int, size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return sequences, and the token before each as its answer."""
    tokens = torch.randint(SYMBOLS, (size, length), generator=generator)
    answers = tokens.roll(1, 1)
    answers[:, 0] = -1
    return tokens, answers


def _accuracies(kind: dict[str, Any], seed: int) -> list[float]:
    model = reader.Reader(
        seed, vocab_size=SYMBOLS, classes=SYMBOLS, max_length=LONG, positions=kind, encoder={"num_layers": 2}
    )

    def batch(generator: torch.Generator) -> tuple[Tensor, Tensor]:
        length = int(torch.randint(SHORT // 2, SHORT + 1, (1,), generator=generator))
        return draw(length, 32, generator)

    reader.fit(model, batch, steps=STEPS, rate=RATE)
    test = torch.Generator().manual_seed(9)
    short = reader.accuracy(model, *draw(SHORT, 200, test))
    tokens, answers = draw(LONG, 200, test)
    answers[:, :SHORT] = -1  # positions that no training sequence has
    return [short, reader.accuracy(model, tokens, answers)]
