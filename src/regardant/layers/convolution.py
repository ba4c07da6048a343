"""A gated convolution over tokens, in the place of self-attention: what a token gets depends on offsets alone.

Gehring et al. 2017, "Convolutional sequence to sequence learning", https://arxiv.org/abs/1705.03122, section 3.2.

Shape legend: B sentences, N rows, T tokens, M d_model.
"""

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from regardant.attention import MixerConfig, View
from regardant.attention.beam_keys import Ancestry
from regardant.layers.remembered import Remembered


class ConvolutionConfig(MixerConfig):
    """A convolution with a gated linear unit."""

    kind: Literal["convolution"] = "convolution"

    kernel: int = Field(5, gt=0)
    """Tokens that are read together: around the token in an encoder, up to it in a decoder."""


@dataclass(frozen=True)
class ConvolutionState(Remembered):
    """The tokens before the next one that it will read."""

    before: Float[Tensor, "N K M"] | None = None

    def reorder(self, rows: Int[Tensor, " N2"]) -> "ConvolutionState":
        return self if self.before is None else ConvolutionState(self.before[rows])


class Convolution(nn.Module):
    """Conv1d(M, 2 M, kernel), one half gating the other."""

    def __init__(self, d_model: int, kernel: int, *, causal: bool) -> None:
        super().__init__()
        if not causal and kernel % 2 == 0:
            raise ValueError(f"a kernel of {kernel} has no middle: take an odd one in an encoder")
        self.convolution = nn.Conv1d(d_model, 2 * d_model, kernel)
        self.before = kernel - 1 if causal else kernel // 2
        self.after = kernel - 1 - self.before

    def forward(self, x: Float[Tensor, "B T M"], view: View) -> Float[Tensor, "B T M"]:
        if view.keys is not None:
            x = x * view.keys[..., None]
        return self._gated(F.pad(x, (0, 0, self.before, self.after)))

    def start(self, capacity: int, ancestry: Ancestry | None = None) -> ConvolutionState:
        """The state before the first token."""
        return ConvolutionState()

    def step(
        self, x: Float[Tensor, "N T M"], state: ConvolutionState, view: View
    ) -> tuple[Float[Tensor, "N T M"], ConvolutionState]:
        """The newest tokens, given the last ones."""
        if not self.before:
            return self._gated(x), state
        x = F.pad(x, (0, 0, self.before, 0)) if state.before is None else torch.cat([state.before, x], 1)
        return self._gated(x), ConvolutionState(x[:, -self.before :])

    def _gated(self, x: Tensor) -> Tensor:
        return F.glu(self.convolution(x.mT).mT, -1)
