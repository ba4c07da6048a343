"""Does attention decide a word's sense? "bank" means one thing beside a river and another beside money.

One word of each sentence is ambiguous; a cue somewhere else decides its label. In half of the sentences a pronoun asks
which of two nouns fits the verb, as in "the animal did not cross the street, because it was tired".
"""

from typing import Any

import torch
from torch import Tensor

from regardant.inspection import capture

from . import reader

LENGTH, FILLERS, CUES, STEPS, RATE, SEEDS = 10, 12, 4, 300, 3e-3, 3
BANK, FIRST_CUE = 0, 1
VOCAB = FIRST_CUE + 2 * CUES + FILLERS


def measure() -> dict[str, Any]:
    """Accuracy of the label, and the weight of the ambiguous word on its cue, without and with training."""
    return {
        "claim": "attention resolves ambiguous words by their context",
        "x": [0, 1],
        "names": ["untrained", "trained"],
        "steps": STEPS,
        "seeds": SEEDS,
        "series": {
            "accuracy": reader.spread(lambda seed: [one[0] for one in _found(seed)], SEEDS),
            "weight on the cue": reader.spread(lambda seed: [one[1] for one in _found(seed)], SEEDS),
        },
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


def _found(seed: int) -> list[tuple[float, float]]:
    model = reader.Reader(seed, vocab_size=VOCAB, classes=2, max_length=LENGTH, encoder={"num_layers": 1})
    test = draw(torch.Generator().manual_seed(9), 400)
    before = reader.accuracy(model, *test), on_cue(model, test[0])
    reader.fit(model, draw, steps=STEPS, rate=RATE)
    return [before, (reader.accuracy(model, *test), on_cue(model, test[0]))]


@torch.no_grad()
def on_cue(model: reader.Reader, tokens: Tensor) -> float:
    """Return the mean weight of the ambiguous word on its cue, of the head that gives most."""
    with capture(model, "*self_attention.weights") as records:
        model(tokens)
    weights = records["encoder.layers.0.self_attention.weights"][0]  # [B, H, T, T]
    rows = torch.arange(len(tokens))
    bank = (tokens == BANK).int().argmax(-1)
    cue = ((tokens >= FIRST_CUE) & (tokens < FIRST_CUE + 2 * CUES)).int().argmax(-1)
    return float(weights[rows, :, bank, cue].mean(0).max())
