"""Dense layer over positions, in place of self-attention: out_i = sum_j w_ij x_j + b_i.

The weights belong to a fixed number of absolute positions, as in the token mixing of the MLP-Mixer (Tolstikhin et al.
2021, https://arxiv.org/abs/2105.01601), here with one layer in place of two.

Shape legend: B sentences or rows, N rows, T tokens, M d_model, C capacity, L tokens so far.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regardant.attention import View
from regardant.attention.cache import BeamOrigin, move_rows
from regardant.layers.cache import LayerCache
from regardant.layers.linear import Linear
from regardant.layers.mixers import TokenMixerConfig


class DenseMixerConfig(TokenMixerConfig):
    """Learned weight for each pair of positions, independent of the tokens."""

    kind: Literal["dense"] = "dense"

    def build(self, d_model: int, *, max_length: int, causal: bool) -> "DenseMixer":
        return DenseMixer(d_model, max_length, causal=causal)


@dataclass
class DenseCache(LayerCache):
    """Projected values of all tokens so far."""

    capacity: int
    length: int = 0
    values: Float[Tensor, "N C M"] | None = None

    def append(self, values: Float[Tensor, "N T M"]) -> Float[Tensor, "N L M"]:
        """Append the newest values; return all so far."""
        end = self.length + values.shape[1]
        if self.values is None:
            self.values = values.new_empty(len(values), self.capacity, values.shape[2])
        self.values[:, self.length : end] = values
        self.length = end
        return self.values[:, :end]

    def reorder(self, rows: Int[Tensor, " N2"]) -> None:
        if self.values is None:
            return
        written = self.values[:, : self.length]
        if len(rows) <= len(written):
            move_rows(rows, written)
            self.values = self.values[: len(rows)]
        else:
            self.values = self.values.new_empty(len(rows), *self.values.shape[1:])
            self.values[:, : self.length] = written.index_select(0, rows)


class DenseMixer(nn.Module):
    """Dense layer over positions, the same for all features, between two projections."""

    def __init__(self, d_model: int, max_length: int, *, causal: bool) -> None:
        super().__init__()
        self.value = Linear(d_model, d_model)
        self.weight = nn.Parameter(torch.empty(max_length, max_length))
        self.bias = nn.Parameter(torch.zeros(max_length, 1))
        self.output = Linear(d_model, d_model)
        self.causal = causal
        nn.init.normal_(self.weight, std=0.1)

    @property
    def longest(self) -> int:
        """Maximum number of tokens."""
        return len(self.weight)

    def forward(self, x: Float[Tensor, "B T M"], view: View, cache: DenseCache | None = None) -> Float[Tensor, "B T M"]:
        """Mix all tokens of a sequence, or the newest with those in the cache."""
        values = self.value(x)
        if cache is not None:
            values = cache.append(values)
        elif view.keys is not None:
            values = values * view.keys[..., None]
        end = values.shape[1]
        first = end - x.shape[1]
        if end > self.longest:
            raise ValueError(f"dense weights end at {self.longest} tokens and {end} were given: raise max_length")
        weight, bias = self.weight[first:end, :end], self.bias[first:end]
        if self.causal:
            weight = weight.tril(first)
        mixed: Tensor = self.output(weight.to(values.dtype) @ values + bias.to(values.dtype))
        return mixed

    def position_weights(self, length: int) -> Float[Tensor, "T T"]:
        """Return w_ij of the first `length` positions: the weight of j in the output of i, for all features."""
        weight = self.weight[:length, :length]
        return weight.tril() if self.causal else weight

    def start(self, capacity: int, beam_origin: BeamOrigin | None = None) -> DenseCache:
        """Return an empty cache for at most `capacity` tokens."""
        return DenseCache(capacity)
