"""The comparison of architectures as measurements: one layer of each, of equal width, on the same task.

Parallel: time of a pass over 512 tokens divided by 8 times that over 64; 1 is linear. Range: accuracy if the answer is
ten tokens back, in the task of `varying_distance`. Data: accuracy at all distances from 200 training sequences.
Parameters are those of the whole reader.
"""

import time
from typing import Any

import torch
from torch import Tensor, nn

from . import reader, varying_distance

SHORT, LONG, FAR, FEW, STEPS, RATE, SEEDS = 64, 512, 10, 200, 500, 3e-3, 3
ROWS = ("time of 512 tokens over 8 x 64", "accuracy ten tokens back", "accuracy after 200 sequences")
ARCHITECTURES = ("recurrent", "convolution", "attention")


def measure() -> dict[str, Any]:
    """Return the three numbers of each architecture, over seeds, and its parameters."""
    return {
        "claim": "recurrent models are sequential, convolutions local, Transformers parallel and data-hungry",
        "x": list(range(len(ROWS))),
        "names": list(ROWS),
        "steps": STEPS,
        "seeds": SEEDS,
        "chance": 1 / varying_distance.SYMBOLS,
        "parameters": {name: sum(one.numel() for one in build(name, 0).parameters()) for name in ARCHITECTURES},
        "series": {name: reader.spread(lambda seed, name=name: _numbers(name, seed), SEEDS) for name in ARCHITECTURES},
    }


def build(name: str, seed: int, max_length: int = varying_distance.LENGTH) -> nn.Module:
    """Return a reader of the task."""
    vocab_size, classes = varying_distance.SYMBOLS + varying_distance.LENGTH, varying_distance.SYMBOLS
    if name == "recurrent":
        return reader.RecurrentReader(seed, vocab_size=vocab_size, classes=classes)
    mixer = varying_distance.MIXERS["attention" if name == "attention" else "convolution, kernel 5"]
    encoder = {"num_layers": 1, "self_attention": mixer}
    return reader.Reader(seed, vocab_size=vocab_size, classes=classes, max_length=max_length, encoder=encoder)


def _numbers(name: str, seed: int) -> list[float]:
    test = torch.Generator().manual_seed(9)
    whole = build(name, seed)
    reader.fit(whole, varying_distance.draw, steps=STEPS, rate=RATE)
    far = reader.accuracy(whole, *varying_distance.draw(test, FAR, 400))
    few = build(name, seed)
    seen = varying_distance.draw(torch.Generator().manual_seed(100 + seed), None, FEW)

    def batch(generator: torch.Generator) -> tuple[Tensor, Tensor]:
        rows = torch.randint(FEW, (64,), generator=generator)
        return seen[0][rows], seen[1][rows]

    reader.fit(few, batch, steps=STEPS, rate=RATE)
    after_few = reader.accuracy(few, *varying_distance.draw(test, None, 400))
    return [_slowdown(build(name, seed, LONG)), far, after_few]


@torch.no_grad()
def _slowdown(model: nn.Module) -> float:
    def seconds(length: int) -> float:
        tokens = torch.zeros(1, length, dtype=torch.long)
        best = float("inf")
        for _ in range(20):
            started = time.perf_counter()
            model(tokens)
            best = min(best, time.perf_counter() - started)
        return best

    return seconds(LONG) / seconds(SHORT) / (LONG / SHORT)
