"""Decoding state of mechanisms that attend back a fixed distance: the newest keys, and the first ones if needed.

Shape legend: N rows, G key heads, T new keys, R kept keys, D size of a key, E size of a value.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regardant.attention.masks import View


@dataclass(frozen=True)
class RollingKeys:
    """Keys and values of a rolling window, of constant size where the reach is finite."""

    reach: int
    """Number of newest keys that are kept."""
    first: int = 0
    """Number of first keys of the sequence that are always kept."""
    length: int = 0
    """Number of keys appended so far."""
    keys: Float[Tensor, "N G R D"] | None = None
    values: Float[Tensor, "N G R E"] | None = None
    positions: Int[Tensor, " R"] | None = None

    def append(self, k: Tensor, v: Tensor) -> "RollingKeys":
        """Return the state with keys and values [N, G, T, .] appended. Call `forget` after their queries attended."""
        length = self.length + k.shape[2]
        at = torch.arange(self.length, length, device=k.device)
        if self.keys is None or self.values is None or self.positions is None:
            return replace(self, length=length, keys=k, values=v, positions=at)
        return replace(
            self,
            length=length,
            keys=torch.cat([self.keys, k], 2),
            values=torch.cat([self.values, v], 2),
            positions=torch.cat([self.positions, at]),
        )

    def forget(self) -> "RollingKeys":
        """Return the state without the keys that no later query attends to."""
        assert self.keys is not None and self.values is not None and self.positions is not None
        if len(self.positions) <= self.first + self.reach:
            return self
        keys, values, positions = (
            self._ends(x, dim) for x, dim in ((self.keys, 2), (self.values, 2), (self.positions, 0))
        )
        return replace(self, keys=keys, values=values, positions=positions)

    def _ends(self, x: Tensor, dim: int) -> Tensor:
        """Return the first and the newest entries along a dimension, copied."""
        newest = x.narrow(dim, x.shape[dim] - self.reach, self.reach)
        return torch.cat([x.narrow(dim, 0, self.first), newest], dim)

    def view(self, view: View, num_queries: int) -> View:
        """Return the view of the newest queries on the kept keys."""
        assert self.positions is not None
        newest = torch.arange(self.length - num_queries, self.length, device=self.positions.device)
        return replace(view, query_positions=newest, key_positions=self.positions)

    def reorder(self, rows: Int[Tensor, " N2"]) -> "RollingKeys":
        """Return the state whose row i continues row `rows[i]`."""
        if self.keys is None or self.values is None:
            return self
        return replace(self, keys=self.keys.index_select(0, rows), values=self.values.index_select(0, rows))
