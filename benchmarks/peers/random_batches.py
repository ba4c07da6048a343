"""Random batches for single-stack models: a language model, a masked language model, and an image classifier."""

from typing import Any

import torch
from torch import Tensor

PAD = 0
FIRST = 5
"""First id that is no special token in Regardant's vocabularies."""

MASK, MASKED = 4, 0.15
"""Id of the mask, and the share of tokens that are masked."""

CHANNELS, CLASSES = 3, 10

BATCHES = 4

PROMPT = 16
"""Number of tokens of the prompt."""


def batches(shape: dict[str, Any]) -> list[tuple[Tensor, Tensor, int]]:
    """Return the inputs and targets of each batch, and the number of targets that count: the others are PAD."""
    generator = torch.Generator().manual_seed(2)
    return [_batch(shape, generator) for _ in range(BATCHES)]


def prompt_of(shape: dict[str, Any]) -> Tensor:
    """Return the ids of the prompt [T]."""
    return torch.randint(FIRST, shape["vocab_size"], (PROMPT,), generator=torch.Generator().manual_seed(2))


def _batch(shape: dict[str, Any], generator: torch.Generator) -> tuple[Tensor, Tensor, int]:
    rows, length = shape["rows"], shape["length"]
    if shape["kind"] == "image":
        side = round(length**0.5) * shape["patch_size"]
        pixels = torch.randn(rows, side, side, CHANNELS, generator=generator)
        return pixels, torch.randint(CLASSES, (rows,), generator=generator), rows
    tokens = torch.randint(FIRST, shape["vocab_size"], (rows, length + 1), generator=generator)
    if shape["kind"] == "language model":
        return tokens[:, :-1], tokens[:, 1:], rows * length
    tokens = tokens[:, :-1]
    masked = torch.rand(tokens.shape, generator=generator) < MASKED
    return tokens.masked_fill(masked, MASK), tokens.masked_fill(~masked, PAD), int(masked.sum())
