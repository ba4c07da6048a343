"""The shape and the batches that all models are timed on, and the arithmetic that these need.

Shape legend: M d_model, F d_ff, V vocabulary, s and t the tokens of a source and a target.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

SHAPE = {
    "d_model": 256,
    "num_layers": 3,
    "num_heads": 4,
    "d_ff": 1024,
    "vocab_size": 8000,
    "dropout": 0.1,
    "max_length": 256,
}
"""Sizes of the models; num_layers are in the encoder and in the decoder each."""

BATCH_TOKENS = 4096
"""Largest number of tokens of a target block, padding counted."""

BATCHES = 6

Lengths = Sequence[int]


def bucketed(source_lengths: Lengths, target_lengths: Lengths, batch_tokens: int) -> list[list[int]]:
    """Return indices of sentences in batches of similar length, the short ones first. A target block has at most
    `batch_tokens` tokens, padding counted."""
    batches: list[list[int]] = []
    for index in sorted(range(len(target_lengths)), key=lambda i: (target_lengths[i], source_lengths[i])):
        # The last target of a batch is its longest.
        if not batches or (len(batches[-1]) + 1) * target_lengths[index] > batch_tokens:
            batches.append([])
        batches[-1].append(index)
    return batches


def spread(batches: Sequence[Any], count: int) -> list[Any]:
    """Return `count` batches, evenly from the first to the last: the middle one of each of `count` equal parts."""
    return [batches[(2 * part + 1) * len(batches) // (2 * count)] for part in range(count)]


def training_flops(shape: dict[str, Any], lengths: Iterable[tuple[int, int]]) -> int:
    """Return the FLOPs of the matrix products of a training step on sentence pairs of these lengths, without padding.

    A multiplication and an addition are two; the backward pass takes twice the forward one.
    """
    d_model, d_ff, layers = shape["d_model"], shape["d_ff"], shape["num_layers"]
    total = 0
    for s, t in lengths:
        encoder = s * (4 * d_model**2 + 2 * d_model * d_ff) + 2 * s * s * d_model
        decoder = t * (6 * d_model**2 + 2 * d_model * d_ff) + t * t * d_model  # half of the scores are masked
        cross = 2 * s * d_model**2 + 2 * s * t * d_model
        total += layers * (encoder + decoder + cross) + t * d_model * shape["vocab_size"]
    return 2 * 3 * total


def write(path: Path, shape: dict[str, Any], batches: Iterable[tuple[list[list[int]], list[list[int]]]]) -> None:
    """Write the file that every peer reads: the shape, and source and target blocks of ids, padded with 0."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"shape": shape, "batches": list(batches)}), encoding="utf-8")
