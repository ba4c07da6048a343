"""Vectors of a batch, passed from representation to sequence model to head with their masks and positions.

Shape legend: B batch, T elements of a sequence, M size of a vector, P dimensions of a position, H heads.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Vectors:
    """A batch of sequences of vectors, of whatever modality: all that sequence models and heads read."""

    values: Tensor
    """[B, T, M]"""
    real: Tensor | None = None
    """[B, T] bool: True for an element, False for padding. None: no padding."""
    positions: Tensor | None = None
    """[T, P] int64 with P > 1: the place of each element on a grid, the same for the whole batch. None: the elements
    are in order, 0, 1, 2, ..."""
    grid: tuple[int, ...] | None = None
    """Sizes of the grid, such as rows and columns. None: there is none."""
    pairs: Tensor | None = None
    """[B, T, T] bool: True where a query (row) may attend to a key; a graph's adjacency. None: all may attend."""
    edges: Tensor | None = None
    """[B, H or 1, T, T] bias on attention scores, from a graph's distances and edge features. None: no bias."""
    moments: Tensor | None = None
    """[B, 2] mean and standard deviation by which the numbers of an item were normalised. The forecasting head undoes
    the normalisation. None: the numbers were not normalised."""
    layers: Sequence[Tensor] = ()
    """Outputs of all encoder layers but the last, if each decoder layer attends to the one at the same depth."""
    state: tuple[Tensor, ...] | None = None
    """Recurrent state, [layers, B, M] each: the initial state as input of a stack, the last one as its output."""
