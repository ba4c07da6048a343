"""Does attention decide a word's sense? "bank" means one thing beside a river and another beside money.

One word of each sentence is ambiguous; a cue somewhere else decides its label.
"""

from typing import Any

import torch
from torch import Tensor

from . import reader

LENGTH, FILLERS, CUES, STEPS, RATE, SEEDS = 10, 12, 4, 300, 3e-3, 3
BANK, FIRST_CUE = 0, 1
VOCAB = FIRST_CUE + 2 * CUES + FILLERS


def measure() -> dict[str, Any]:
    """Return accuracy of the label, and the weight of the ambiguous word on its cue, without and with training."""
    return {
        "claim": "attention resolves ambiguous words by their context",
        "x": [0, 1],
        "names": ["untrained", "trained"],
        "steps": STEPS,
        "seeds": SEEDS,
        "series": reader.spreads(_found, SEEDS),
    }


def draw(generator: torch.Generator, size: int = 64) -> tuple[Tensor, Tensor]:
    """Return sentences with one ambiguous word and one cue, and the sense of that word as the only answer."""
    tokens = torch.randint(FIRST_CUE + 2 * CUES, VOCAB, (size, LENGTH), generator=generator)
    places = torch.rand(size, LENGTH, generator=generator).argsort(-1)
    rows = torch.arange(size)
    sense = torch.randint(2, (size,), generator=generator)
    cue = torch.randint(CUES, (size,), generator=generator)
    tokens[rows, places[:, 0]] = BANK
    tokens[rows, places[:, 1]] = FIRST_CUE + sense * CUES + cue
    answers = torch.full_like(tokens, -1)
    answers[rows, places[:, 0]] = sense
    return tokens, answers


def _found(seed: int) -> dict[str, list[float]]:
    model = reader.Reader(seed, vocab_size=VOCAB, classes=2, max_length=LENGTH, encoder={"num_layers": 1})
    test = draw(torch.Generator().manual_seed(9), 400)
    before = reader.accuracy(model, *test), on_cue(model, test[0])
    reader.fit(model, draw, steps=STEPS, rate=RATE)
    after = reader.accuracy(model, *test), on_cue(model, test[0])
    return {"accuracy": [before[0], after[0]], "weight on the cue": [before[1], after[1]]}


def on_cue(model: reader.Reader, tokens: Tensor) -> float:
    """Return the mean weight of the ambiguous word on its cue, for the head with the largest."""
    (weights,) = reader.attention_weights(model, tokens)  # [B, H, T, T]
    rows = torch.arange(len(tokens))
    bank = (tokens == BANK).int().argmax(-1)
    cue = ((tokens >= FIRST_CUE) & (tokens < FIRST_CUE + 2 * CUES)).int().argmax(-1)
    return float(weights[rows, :, bank, cue].mean(0).max())
