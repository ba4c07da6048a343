"""A gated convolution over tokens, in the place of self-attention: weights depend on the offsets of tokens alone.

Gehring et al. 2017, "Convolutional sequence to sequence learning", https://arxiv.org/abs/1705.03122, section 3.2.

Shape legend: B sentences or rows, T tokens, M d_model.
"""

from typing import Literal

import torch.nn.functional as F
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from regardant.attention import View
from regardant.attention.cache import BeamOrigin
from regardant.layers.cache import PrecedingTokens
from regardant.layers.mixers import TokenMixerConfig


class ConvolutionMixerConfig(TokenMixerConfig):
    """A convolution with a gated linear unit."""

    kind: Literal["convolution"] = "convolution"

    kernel: int = Field(5, gt=0)
    """Tokens read together: around the token in an encoder, up to it in a decoder."""

    def build(self, d_model: int, *, max_length: int, causal: bool) -> "ConvolutionMixer":
        return ConvolutionMixer(d_model, self.kernel, causal=causal)


class ConvolutionMixer(nn.Module):
    """Conv1d(M, 2 M, kernel), one half gating the other."""

    def __init__(self, d_model: int, kernel: int, *, causal: bool) -> None:
        super().__init__()
        self.before, self.after = reach_of(kernel, causal=causal)
        self.convolution = nn.Conv1d(d_model, 2 * d_model, kernel)

    def forward(
        self, x: Float[Tensor, "B T M"], view: View, cache: PrecedingTokens | None = None
    ) -> Float[Tensor, "B T M"]:
        """Mix all tokens of a sequence, or the newest with those in the cache."""
        x = padded(x, view, cache, self.before, self.after)
        return F.glu(self.convolution(x.mT).mT, -1)

    def start(self, capacity: int, beam_origin: BeamOrigin | None = None) -> PrecedingTokens:
        """Return the cache before the first token."""
        return PrecedingTokens(self.before)


def reach_of(kernel: int, *, causal: bool) -> tuple[int, int]:
    """Return how many tokens before and after its own a kernel reads.

    Raises:
        ValueError: a kernel around the token has no middle.
    """
    if not causal and kernel % 2 == 0:
        raise ValueError(f"a kernel of {kernel} has no middle: take an odd one in an encoder")
    before = kernel - 1 if causal else kernel // 2
    return before, kernel - 1 - before


def padded(x: Tensor, view: View, cache: PrecedingTokens | None, before: int, after: int) -> Tensor:
    """Return x with what a kernel reads beside it: zeros and no padding tokens, or the tokens of the cache."""
    if cache is not None:
        return cache.extend(x)
    if view.keys is not None and before + after:
        x = x * view.keys[..., None]
    return F.pad(x, (0, 0, before, after))
