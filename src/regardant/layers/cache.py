"""Caches of layers: the data of earlier tokens that a layer keeps between two decoding steps.

Shape legend: B sentences, W beams of a sentence, N = B x W rows, T new tokens, K kept tokens, KT = K + T, M d_model.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor


class LayerCache:
    """Base of all caches, by default with a row per beam. A layer's `forward` updates the cache in place."""

    follows_beams: ClassVar[bool] = True
    """True if rows move with the beams. False: `reorder` does nothing."""

    @property
    def joins(self) -> bool:
        """True if `join` is available."""
        return False

    def reorder(self, rows: Int[Tensor, " N2"]) -> None:
        """Let row i continue row `rows[i]`."""
        raise NotImplementedError

    def keep(self, sentences: Int[Tensor, " B2"], rows: Int[Tensor, " N2"]) -> None:
        """Drop all other sentences; `rows` are the beams of those that stay."""
        self.reorder(rows)

    def join(self, *others: Any) -> None:
        """Append the rows of other sentences, from caches of the same layer with as many tokens.

        All rows are copied, which frees the memory of dropped rows.
        """
        raise NotImplementedError


@dataclass
class PrecedingTokens(LayerCache):
    """Last `count` tokens that a causal convolution has read; zeros before the first token."""

    count: int
    tokens: Float[Tensor, "N K M"] | None = None

    def extend(self, x: Float[Tensor, "N T M"]) -> Float[Tensor, "N KT M"]:
        """Return the kept tokens followed by the newest, and keep the last `count`."""
        x = F.pad(x, (0, 0, self.count, 0)) if self.tokens is None else torch.cat([self.tokens, x], 1)
        self.tokens = x[:, x.shape[1] - self.count :]
        return x

    def reorder(self, rows: Int[Tensor, " N2"]) -> None:
        if self.tokens is not None:
            self.tokens = self.tokens.index_select(0, rows)
