"""Forms: conversions of weights between a checkpoint of Hugging Face and a model of ours, in both directions.

A form reads the checkpoint's tensors into ours and writes them back. `write(read(x)) == x`, bit for bit, but for the
numbers that a form leaves out according to its description.

Shape legend: H heads, G key heads, D size of a query and a key, M d_model, T positions, V vocabulary, P side of a
patch, C channels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regardant.data.vocabulary import SPECIAL_TOKENS
from regardant.layers.multi_head import HeadShape

Tensors = Sequence[Tensor]


@dataclass(frozen=True)
class Sizes:
    """Sizes that forms depend on."""

    heads: HeadShape
    rows: Sequence[int | None] = ()
    """Token ids of the checkpoint by ours, None for one that it lacks."""
    channels: int = 1
    """Channels of an image."""
    patch_size: int = 1
    """Side of a patch in pixels."""


@dataclass(frozen=True)
class Form:
    """Conversion of a checkpoint's tensors to ours (`read`) and back (`write`)."""

    read: Callable[[Tensors, Sizes], list[Tensor]]
    write: Callable[[Tensors, Sizes], list[Tensor]]


def _widths(sizes: Sizes) -> list[int]:
    heads = sizes.heads
    keys, values = (heads.num_key_heads * size for size in (heads.key_size, heads.value_size))
    return [heads.num_heads * heads.key_size, keys, values]


def _pairs(x: Tensor, heads: int) -> Tensor:
    """Return rows [H * D, ...] of each head in the order 0, D/2, 1, D/2 + 1, ..."""
    halves = x.view(heads, 2, -1, *x.shape[1:])
    return halves.transpose(1, 2).reshape(x.shape)


def _halves(x: Tensor, heads: int) -> Tensor:
    """Undo `_pairs`."""
    pairs = x.view(heads, -1, 2, *x.shape[1:])
    return pairs.transpose(1, 2).reshape(x.shape)


def _read_rotary(tensors: Tensors, sizes: Sizes) -> list[Tensor]:
    query, key, value = tensors
    heads = sizes.heads
    return [torch.cat([_pairs(query, heads.num_heads), _pairs(key, heads.num_key_heads), value])]


def _write_rotary(tensors: Tensors, sizes: Sizes) -> list[Tensor]:
    query, key, value = tensors[0].split(_widths(sizes))
    heads = sizes.heads
    return [_halves(query, heads.num_heads), _halves(key, heads.num_key_heads), value]


def _read_words(tensors: Tensors, sizes: Sizes) -> list[Tensor]:
    (theirs,) = tensors
    ours = theirs.new_zeros(len(sizes.rows), *theirs.shape[1:])
    for row, other in enumerate(sizes.rows[:SPECIAL]):
        if other is not None:
            ours[row] = theirs[other]
    ours[SPECIAL:] = theirs[list(sizes.rows[SPECIAL:])]
    return [ours]


def _write_words(tensors: Tensors, sizes: Sizes) -> list[Tensor]:
    (ours,) = tensors
    kept = [row for row, other in enumerate(sizes.rows) if other is not None]
    theirs = ours.new_zeros(len(kept), *ours.shape[1:])
    theirs[[sizes.rows[row] for row in kept]] = ours[kept]
    return [theirs]


def _read_patches(tensors: Tensors, sizes: Sizes) -> list[Tensor]:
    return [tensors[0].permute(0, 2, 3, 1).flatten(1)]


def _write_patches(tensors: Tensors, sizes: Sizes) -> list[Tensor]:
    side = sizes.patch_size
    return [tensors[0].unflatten(1, (side, side, sizes.channels)).permute(0, 3, 1, 2)]


def _positions_from(first: int) -> Form:
    def read(tensors: Tensors, sizes: Sizes) -> list[Tensor]:
        positions, types = tensors
        return [positions[first:] + types[0]]

    def write(tensors: Tensors, sizes: Sizes) -> list[Tensor]:
        (positions,) = tensors
        unused = positions.new_zeros(first, positions.shape[1])
        return [torch.cat([unused, positions]), positions.new_zeros(TOKEN_TYPES, positions.shape[1])]

    return Form(read, write)


SPECIAL = len(SPECIAL_TOKENS)
"""Number of special tokens of a vocabulary of ours."""

TOKEN_TYPES = 2
"""Number of token types in a written checkpoint."""

SAME = Form(lambda tensors, sizes: list(tensors), lambda tensors, sizes: list(tensors))

TRANSPOSED = Form(lambda tensors, sizes: [tensors[0].T], lambda tensors, sizes: [tensors[0].T])

QUERY_KEY_VALUE = Form(
    lambda tensors, sizes: [torch.cat(list(tensors))], lambda tensors, sizes: list(tensors[0].split(_widths(sizes)))
)
"""Three matrices of the checkpoint, which are one of ours."""

KEY_VALUE = Form(
    lambda tensors, sizes: [torch.cat(list(tensors))], lambda tensors, sizes: list(tensors[0].split(_widths(sizes)[1:]))
)
"""Two matrices of the checkpoint, which are one of ours."""

ROTARY_QUERY_KEY_VALUE = Form(_read_rotary, _write_rotary)
"""QUERY_KEY_VALUE where the checkpoint rotates element i of a head with element i + D/2, and we 2i with 2i + 1."""

WORDS = Form(_read_words, _write_words)
"""Rows by token id. A token that the checkpoint lacks has a row of zeros in ours, and is not written."""

WORDS_OF_ONE_ROW = Form(
    lambda tensors, sizes: _read_words([tensors[0][0]], sizes),
    lambda tensors, sizes: [_write_words(tensors, sizes)[0][None]],
)
"""Numbers by token id, [1, V] in the checkpoint."""

POSITIONS_AND_TYPES = _positions_from(0)
"""Positions [T, M] and token types: the first type is added to all positions, others are left out. Types are written as
zeros."""

POSITIONS_FROM_2_AND_TYPES = _positions_from(2)
"""POSITIONS_AND_TYPES where the first two positions are never used (RoBERTa); these are written as zeros."""

PATCHES = Form(_read_patches, _write_patches)
"""A convolution [M, C, P, P] as a matrix [M, P * P * C]."""

CLASS_TOKEN_AND_POSITIONS = Form(
    lambda tensors, sizes: [tensors[0][0, 0] + tensors[1][0, 0], tensors[1][0, 1:]],
    lambda tensors, sizes: [
        tensors[0][None, None],
        torch.cat([torch.zeros_like(tensors[0])[None, None], tensors[1][None]], 1),
    ],
)
"""A class token [1, 1, M] and positions [1, 1 + T, M]: the first position is added to the class token, and written as
zeros."""
