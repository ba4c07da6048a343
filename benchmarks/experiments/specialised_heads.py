"""Do heads specialise? Each answer needs two tokens: the one before, and the one that mirrors it.

A head is specialised if most of its weight is on one of the two. Untrained heads are the baseline.
"""

from typing import Any

import torch
from torch import Tensor

from regardant.inspection import capture

from . import reader

SYMBOLS, LENGTH, STEPS, RATE, SEEDS, HEADS = 5, 9, 800, 3e-3, 3, 4


def measure() -> dict[str, Any]:
    """Return the weight of the best head on each of the two tokens, before and after training, and the accuracy."""
    return {
        "claim": "heads specialise on relations",
        "x": [0, 1],
        "steps": STEPS,
        "seeds": SEEDS,
        "series": {
            "on the token before": reader.spread(lambda seed: _weights(seed)[0], SEEDS),
            "on the mirrored token": reader.spread(lambda seed: _weights(seed)[1], SEEDS),
            "accuracy": reader.spread(lambda seed: _weights(seed)[2], SEEDS),
        },
    }


def draw(generator: torch.Generator, size: int = 64) -> tuple[Tensor, Tensor]:
    """Return sequences; the answer at t is the sum of tokens t - 1 and LENGTH - 1 - t, modulo the symbols."""
    tokens = torch.randint(SYMBOLS, (size, LENGTH), generator=generator)
    answers = (tokens.roll(1, 1) + tokens.flip(1)) % SYMBOLS
    answers[:, 0] = -1
    return tokens, answers


_FOUND: dict[int, tuple[list[float], list[float], list[float]]] = {}


def _weights(seed: int) -> tuple[list[float], list[float], list[float]]:
    if seed not in _FOUND:
        model = reader.Reader(
            seed, vocab_size=SYMBOLS, classes=SYMBOLS, max_length=LENGTH, num_heads=HEADS, encoder={"num_layers": 1}
        )
        test = draw(torch.Generator().manual_seed(9), 200)
        before = _on_relations(model, test[0]), reader.accuracy(model, *test)
        reader.fit(model, draw, steps=STEPS, rate=RATE)
        after = _on_relations(model, test[0]), reader.accuracy(model, *test)
        _FOUND[seed] = (
            [before[0][0], after[0][0]],
            [before[0][1], after[0][1]],
            [before[1], after[1]],
        )
    return _FOUND[seed]


@torch.no_grad()
def _on_relations(model: reader.Reader, tokens: Tensor) -> tuple[float, float]:
    """Return the mean weight of the best head on the token before, and of the best on the mirrored one."""
    with capture(model, "*self_attention.weights") as records:
        model(tokens)
    weights = records["encoder.layers.0.self_attention.weights"][0].mean(0)  # [H, T, T]
    at = torch.arange(1, LENGTH)
    of_before, of_mirror = weights[:, at, at - 1].mean(-1), weights[:, at, LENGTH - 1 - at].mean(-1)
    return float(of_before.max()), float(of_mirror.max())
