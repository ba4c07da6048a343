"""Caches of layers: what a layer keeps of earlier tokens between two decoding steps.

Shape legend: B sentences, W beams of a sentence, N = B x W rows, T new tokens, K kept tokens, KT = K + T, M d_model.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor


class LayerCache:
    """Base of all caches: a row a beam, unless a layer keeps it otherwise. A layer's `forward` updates it in place."""

    follows_beams: ClassVar[bool] = True
    """True if rows move with the beams. False: `reorder` does nothing."""

    @property
    def joins(self) -> bool:
        """True if `join` works."""
        return False

    def reorder(self, rows: Int[Tensor, " N2"]) -> None:
        """Let row i continue row `rows[i]`."""
        raise NotImplementedError

    def keep(self, sentences: Int[Tensor, " B2"], rows: Int[Tensor, " N2"]) -> None:
        """Drop all other sentences; `rows` are the beams of those that stay."""
        self.reorder(rows)

    def join(self, *others: Any) -> None:
        """Take the rows of the same layer's caches of other sentences, after as many tokens, behind its own.

        All rows are copied: memory of rows that were dropped is free.
        """
        raise NotImplementedError


@dataclass
class PrecedingTokens(LayerCache):
    """The last `count` tokens that a causal convolution has read: zeros before the first."""

    count: int
    tokens: Float[Tensor, "N K M"] | None = None

    def extend(self, x: Float[Tensor, "N T M"]) -> Float[Tensor, "N KT M"]:
        """Return the kept tokens with the newest after them, and keep the last."""
        x = F.pad(x, (0, 0, self.count, 0)) if self.tokens is None else torch.cat([self.tokens, x], 1)
        self.tokens = x[:, x.shape[1] - self.count :]
        return x

    def reorder(self, rows: Int[Tensor, " N2"]) -> None:
        if self.tokens is not None:
            self.tokens = self.tokens[rows]
