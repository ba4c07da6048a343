"""Do heads specialise? Each answer needs two tokens: the one before, and the one that mirrors it.

Heads are specialised if each token has a head of its own. Untrained heads are the baseline.
"""

from typing import Any

import torch
from torch import Tensor

from regardant.inspection import capture

from . import reader

SYMBOLS, LENGTH, STEPS, RATE, SEEDS, HEADS = 5, 9, 800, 3e-3, 3, 4


def measure() -> dict[str, Any]:
    """Return four series, each before and after training: the largest weight of a head on the token before; the largest
    on the mirrored token; the largest difference of the two weights of a head; the accuracy."""
    return {
        "claim": "heads specialise on relations",
        "x": [0, 1],
        "steps": STEPS,
        "seeds": SEEDS,
        "series": {
            "on the token before": reader.spread(lambda seed: _measured(seed)[0], SEEDS),
            "on the mirrored token": reader.spread(lambda seed: _measured(seed)[1], SEEDS),
            "largest difference of both": reader.spread(lambda seed: _measured(seed)[2], SEEDS),
            "accuracy": reader.spread(lambda seed: _measured(seed)[3], SEEDS),
        },
    }


def draw(generator: torch.Generator, size: int = 64) -> tuple[Tensor, Tensor]:
    """Return sequences; the answer at t is the sum of tokens t - 1 and LENGTH - 1 - t, modulo the symbols."""
    tokens = torch.randint(SYMBOLS, (size, LENGTH), generator=generator)
    answers = (tokens.roll(1, 1) + tokens.flip(1)) % SYMBOLS
    answers[:, 0] = -1
    return tokens, answers


_FOUND: dict[int, list[list[float]]] = {}


def _measured(seed: int) -> list[list[float]]:
    if seed not in _FOUND:
        model = reader.Reader(
            seed, vocab_size=SYMBOLS, classes=SYMBOLS, max_length=LENGTH, num_heads=HEADS, encoder={"num_layers": 1}
        )
        test = draw(torch.Generator().manual_seed(9), 200)
        before = *_on_relations(model, test[0]), reader.accuracy(model, *test)
        reader.fit(model, draw, steps=STEPS, rate=RATE)
        after = *_on_relations(model, test[0]), reader.accuracy(model, *test)
        _FOUND[seed] = [[untrained, trained] for untrained, trained in zip(before, after, strict=True)]
    return _FOUND[seed]


@torch.no_grad()
def _on_relations(model: reader.Reader, tokens: Tensor) -> tuple[float, float, float]:
    """Return the largest mean weight of a head on the token before, the largest on the mirrored token, and the largest
    difference of the two weights of a head."""
    with capture(model, "*self_attention.weights") as records:
        model(tokens)
    weights = records["encoder.layers.0.self_attention.weights"][0].mean(0)  # [H, T, T]
    at = torch.arange(1, LENGTH)
    of_before, of_mirror = weights[:, at, at - 1].mean(-1), weights[:, at, LENGTH - 1 - at].mean(-1)
    return float(of_before.max()), float(of_mirror.max()), float((of_before - of_mirror).abs().max())
