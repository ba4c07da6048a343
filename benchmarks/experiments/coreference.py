"""Does attention resolve a pronoun? "The animal did not cross the wide street, because it was tired": the animal.

A sentence has one noun of each of two classes before a pronoun, an adjective right after the pronoun that fits one
class, and an adjective that fits the other class anywhere else. The answer at the pronoun is the noun that its
adjective fits. Nouns and adjectives alone decide nothing: both classes occur in every sentence, and only the pronoun
marks the adjective that counts.

One layer is enough to answer: the pronoun reads both nouns and its adjective at once, and the feed-forward network
chooses. The ratio of its weights on the two nouns cannot depend on the adjective there, but their difference can: an
adjective that fits the other class may draw a head's weight to itself.
"""

from typing import Any

import torch
from torch import Tensor

from . import reader

LENGTH, NOUNS, ADJECTIVES, FILLERS, LAYERS = 12, 4, 4, 12, (1, 2)
STEPS, RATE, SEEDS = 500, 3e-3, 3
PRONOUN, FIRST_NOUN = 0, 1
FIRST_ADJECTIVE = FIRST_NOUN + 2 * NOUNS
FIRST_FILLER = FIRST_ADJECTIVE + 2 * ADJECTIVES
VOCAB = FIRST_FILLER + FILLERS
"""Tokens: the pronoun, NOUNS nouns of each class, ADJECTIVES adjectives of each class, fillers."""


def measure() -> dict[str, Any]:
    """Return accuracy and the weight of the pronoun on the right noun minus that on the other, by depth, over seeds."""
    return {
        "claim": "attention resolves a pronoun by its context",
        "x": [0, 1],
        "names": ["untrained", "trained"],
        "steps": STEPS,
        "seeds": SEEDS,
        "chance": 0.5,  # one of the two nouns
        "series": reader.spreads(_found, SEEDS),
    }


def draw(generator: torch.Generator, size: int = 64) -> tuple[Tensor, Tensor]:
    """Return sentences [size, LENGTH], and the noun that the pronoun stands for, 0 to 2 NOUNS - 1, as the answer."""
    tokens = torch.randint(FIRST_FILLER, VOCAB, (size, LENGTH), generator=generator)
    rows, at = torch.arange(size), torch.arange(LENGTH)
    pronoun = torch.randint(3, LENGTH - 1, (size,), generator=generator)
    order = torch.rand(size, LENGTH, generator=generator)
    places = order.masked_fill(at >= pronoun[:, None], 2.0).argsort(-1)[:, :2]  # of the right noun and of the other
    free = order.scatter(1, torch.cat([places, pronoun[:, None], pronoun[:, None] + 1], 1), 2.0)
    right = torch.randint(2, (size,), generator=generator)
    nouns = torch.randint(NOUNS, (size, 2), generator=generator) + NOUNS * torch.stack([right, 1 - right], 1)
    adjectives = torch.randint(ADJECTIVES, (size, 2), generator=generator)
    tokens[rows[:, None], places] = FIRST_NOUN + nouns
    tokens[rows, pronoun] = PRONOUN
    tokens[rows, pronoun + 1] = FIRST_ADJECTIVE + adjectives[:, 0] + ADJECTIVES * right
    tokens[rows, free.argmin(-1)] = FIRST_ADJECTIVE + adjectives[:, 1] + ADJECTIVES * (1 - right)
    answers = torch.full_like(tokens, -1)
    answers[rows, pronoun] = nouns[:, 0]
    return tokens, answers


def build(seed: int, num_layers: int) -> reader.Reader:
    """Return a reader of the task."""
    return reader.Reader(
        seed, vocab_size=VOCAB, classes=2 * NOUNS, max_length=LENGTH, encoder={"num_layers": num_layers}
    )


def _found(seed: int) -> dict[str, list[float]]:
    test = draw(torch.Generator().manual_seed(9), 400)
    series: dict[str, list[float]] = {}
    for num_layers in LAYERS:
        model, depth = build(seed, num_layers), f"{num_layers} layer{'s' * (num_layers > 1)}"
        before = reader.accuracy(model, *test), preference(model, *test)
        reader.fit(model, draw, steps=STEPS, rate=RATE)
        after = reader.accuracy(model, *test), preference(model, *test)
        series |= {f"accuracy, {depth}": [before[0], after[0]], f"weight, {depth}": [before[1], after[1]]}
    return series


def preference(model: reader.Reader, tokens: Tensor, answers: Tensor) -> float:
    """Return the mean weight of the pronoun on the right noun minus that on the other, for the head with the largest.

    The mean is over the classes of the right noun, so a head that attends to one class for all adjectives has zero.
    """
    weights = reader.attention_weights(model, tokens)
    rows, pronoun = torch.arange(len(tokens)), (tokens == PRONOUN).int().argmax(-1)
    meant = answers[rows, pronoun]
    right = tokens == FIRST_NOUN + meant[:, None]
    other = (tokens >= FIRST_NOUN) & (tokens < FIRST_ADJECTIVE) & ~right
    on_right, on_other = (weights[:, rows, :, pronoun, one.int().argmax(-1)] for one in (right, other))
    found = on_right - on_other  # [B, L, H]
    return float(torch.stack([found[meant // NOUNS == kind].mean(0) for kind in (0, 1)]).mean(0).max())
