"""Vectors of a batch, passed from representation to sequence model to head with their masks and positions.

Shape legend: B batch, T elements of a sequence, M size of a vector, P dimensions of a position, H heads.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Vectors:
    """A batch of sequences of vectors. Nothing downstream of it asks what an element was."""

    values: Tensor
    """[B, T, M]"""
    real: Tensor | None = None
    """[B, T] bool: True for an element, False for padding. None: no padding."""
    positions: Tensor | None = None
    """[T, P] int64 with P > 1: the place of each element on a grid, the same for the whole batch. None: the elements
    are in order, 0, 1, 2, ..."""
    grid: tuple[int, ...] | None = None
    """Sizes of that grid, as rows and columns. None: there is none."""
    pairs: Tensor | None = None
    """[B, T, T] bool: True where a query (row) may attend to a key; a graph's adjacency. None: all may attend."""
    edges: Tensor | None = None
    """[B, H or 1, T, T], added to the scores; a graph's edge features."""
    moments: Tensor | None = None
    """[B, 2] mean and deviation by which the numbers of an item were normalised. A head that answers with numbers of
    the same kind restores them. None: the numbers were read as they are."""
    layers: Sequence[Tensor] = ()
    """Outputs of all encoder layers but the last, where each decoder layer reads the one of its own height."""
    state: tuple[Tensor, ...] | None = None
    """A recurrent state, [layers, B, M] each: into a stack the one to begin with, out of it the last one."""
