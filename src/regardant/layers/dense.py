"""A dense layer over positions, in the place of self-attention: out_i = sum_j w_ij x_j + b_i.

The weights are tied to absolute positions and there is an end to them, as in the MLP-Mixer (Tolstikhin et al. 2021,
https://arxiv.org/abs/2105.01601), whose token mixing this is with one layer in place of two.

Shape legend: B sentences, N rows, T tokens, M d_model, C capacity.
"""

from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regardant.attention import MixerConfig, View
from regardant.attention.beam_keys import Ancestry
from regardant.layers.linear import Linear
from regardant.layers.remembered import Remembered


class DenseConfig(MixerConfig):
    """A weight for each pair of positions, whatever stands there."""

    kind: Literal["dense"] = "dense"


@dataclass(frozen=True)
class DenseState(Remembered):
    """All tokens so far, projected."""

    capacity: int
    length: int = 0
    values: Float[Tensor, "N C M"] | None = None

    def reorder(self, rows: Int[Tensor, " N2"]) -> "DenseState":
        return self if self.values is None else replace(self, values=self.values[rows])


class Dense(nn.Module):
    """The same weights for all features, between two projections."""

    def __init__(self, d_model: int, max_length: int, *, causal: bool) -> None:
        super().__init__()
        self.value = Linear(d_model, d_model)
        self.weight = nn.Parameter(torch.empty(max_length, max_length))
        self.bias = nn.Parameter(torch.zeros(max_length, 1))
        self.output = Linear(d_model, d_model)
        self.causal = causal
        nn.init.normal_(self.weight, std=0.1)

    def forward(self, x: Float[Tensor, "B T M"], view: View) -> Float[Tensor, "B T M"]:
        values, length = self.value(x), x.shape[1]
        if view.keys is not None:
            values = values * view.keys[..., None]
        return self._mixed(values, 0, length)

    def start(self, capacity: int, ancestry: Ancestry | None = None) -> DenseState:
        """The state before the first of at most `capacity` tokens."""
        return DenseState(capacity)

    def step(
        self, x: Float[Tensor, "N T M"], state: DenseState, view: View
    ) -> tuple[Float[Tensor, "N T M"], DenseState]:
        """The newest tokens, given all earlier ones."""
        end = state.length + x.shape[1]
        values = x.new_empty(len(x), state.capacity, x.shape[2]) if state.values is None else state.values
        values[:, state.length : end] = self.value(x)
        return self._mixed(values[:, :end], state.length, end), replace(state, length=end, values=values)

    def _mixed(self, values: Tensor, first: int, end: int) -> Tensor:
        if end > len(self.weight):
            raise ValueError(f"dense weights end at {len(self.weight)} tokens and {end} were given: raise max_length")
        weight, bias = self.weight[first:end, :end], self.bias[first:end]
        if self.causal:
            weight = weight.tril(first)
        mixed: Tensor = self.output(weight.to(values.dtype) @ values + bias.to(values.dtype))
        return mixed
