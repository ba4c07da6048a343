"""What travels from representation to sequence model to head: vectors, and what attention needs to know of them.

Shape legend: B batch, T elements of a sequence, M size of a vector, P dimensions of a position, H heads.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regardant.attention import PassView
from regardant.positions import BlockBias


@dataclass(frozen=True)
class Vectors:
    """A batch of sequences of vectors. Nothing downstream of it asks what an element was."""

    values: Tensor
    """[B, T, M]"""
    real: Tensor | None = None
    """[B, T] bool: True for an element, False for padding. None: no padding."""
    positions: Tensor | None = None
    """[T, P] int64: the place of each element, the same for the whole batch. None: 0, 1, 2, ..."""
    pairs: Tensor | None = None
    """[B, T, T] bool: True where a query (row) may attend to a key; a graph's adjacency. None: all may meet."""
    edges: Tensor | None = None
    """[B, H or 1, T, T], added to the scores; a graph's edge features."""
    layers: Sequence[Tensor] = ()
    """Outputs of all encoder layers but the last, where each decoder layer reads the one of its own height."""
    state: tuple[Tensor, ...] | None = None
    """A recurrent state, [layers, B, M] each: into a stack the one to begin with, out of it the last one."""

    def with_values(self, values: Tensor) -> "Vectors":
        """Return the same sequences with other values."""
        return replace(self, values=values)

    def memories(self, num_layers: int) -> list[Tensor]:
        """Return what each of the decoder layers that read this attends to."""
        return [*self.layers, self.values] if self.layers else [self.values] * num_layers

    def view(self, *, causal: bool = False, bias: BlockBias | None = None, recomputed: bool = False) -> PassView:
        """Return what each element may attend to among the others of its sequence."""
        return PassView(
            causal=causal,
            keys=self.real,
            pairs=None if self.pairs is None else self.pairs[:, None],
            bias=bias if self.edges is None else _EdgeBias(self.edges, bias),
            recomputed=recomputed,
        )


@dataclass(frozen=True)
class _EdgeBias:
    """Edge features as a bias, beside the bias of a position scheme."""

    edges: Tensor
    positions: BlockBias | None

    def __call__(self, queries: Tensor, keys: Tensor) -> Tensor:
        bias = self.edges[:, :, queries[:, None], keys[None, :]]
        if self.positions is None:
            return bias
        added: Tensor = bias + self.positions(queries, keys).to(torch.promote_types(bias.dtype, torch.float32))
        return added
