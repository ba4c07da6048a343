"""Convolution over tokens, in place of self-attention: weights depend on the offsets of tokens alone.

Gated: Gehring et al. 2017, "Convolutional sequence to sequence learning", https://arxiv.org/abs/1705.03122, section
3.2. Dilated from layer to layer: van den Oord et al. 2016, https://arxiv.org/abs/1609.03499, section 2.1.

Shape legend: B sentences or rows, T tokens, M d_model.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from regardant.attention import View
from regardant.attention.cache import BeamOrigin
from regardant.layers.cache import PrecedingTokens
from regardant.layers.mixers import TokenMixerConfig


class ConvolutionMixerConfig(TokenMixerConfig):
    """Convolution over tokens, with a gated linear unit or plain."""

    kind: Literal["convolution"] = "convolution"

    kernel: int = Field(5, gt=0)
    """Kernel size, in tokens: centred on the token in an encoder, ending at the token in a decoder."""

    gated: bool = True
    """True lets one half of the output gate the other. False: out_i = sum_k W_k x_(i+k) + b."""

    dilation: int = Field(1, gt=0)
    """Distance between neighbouring tokens in the kernel of the first layer."""

    growth: int = Field(1, gt=0)
    """Factor of the dilation from each layer to the next. With growth equal to kernel, L layers reach kernel ** L
    tokens."""

    def at_layer(self, number: int) -> "ConvolutionMixerConfig":
        return self.model_copy(update={"dilation": self.dilation * self.growth**number})

    def build(self, d_model: int, *, max_length: int, causal: bool) -> "ConvolutionMixer":
        if self.kernel > 1 and self.dilation >= max_length > 1:
            raise ValueError(
                f"a dilation of {self.dilation} reaches no second token within max_length ({max_length}): lower "
                "growth, dilation or the number of layers"
            )
        return ConvolutionMixer(d_model, self.kernel, causal=causal, gated=self.gated, dilation=self.dilation)


class ConvolutionMixer(nn.Module):
    """Convolution over tokens: Conv1d(M, 2 M, kernel), one half gating the other; or Conv1d(M, M, kernel)."""

    def __init__(self, d_model: int, kernel: int, *, causal: bool, gated: bool = True, dilation: int = 1) -> None:
        super().__init__()
        self.before, self.after = (dilation * count for count in reach_of(kernel, causal=causal))
        self.gated = gated
        self.convolution = nn.Conv1d(d_model, 2 * d_model if gated else d_model, kernel, dilation=dilation)

    def forward(
        self, x: Float[Tensor, "B T M"], view: View, cache: PrecedingTokens | None = None
    ) -> Float[Tensor, "B T M"]:
        """Mix all tokens of a sequence, or the newest with those in the cache."""
        x = padded(x, view, cache, self.before, self.after)
        convolved: Tensor = self.convolution(x.mT).mT
        return F.glu(convolved, -1) if self.gated else convolved

    def position_weights(self, length: int) -> Float[Tensor, "T T"]:
        """Return the weight of position j in the output of position i: the norm of the matrix of their offset."""
        sizes = self.convolution.weight.norm(dim=(0, 1))  # [K]
        dilation = self.convolution.dilation[0]
        found = sizes.new_zeros(length, length)
        for tap, size in enumerate(sizes):
            offset = tap * dilation - self.before
            found = found + size * torch.ones(length, length, device=size.device).tril(offset).triu(offset)
        return found

    def start(self, capacity: int, beam_origin: BeamOrigin | None = None) -> PrecedingTokens:
        """Return an empty cache."""
        return PrecedingTokens(self.before)


def reach_of(kernel: int, *, causal: bool) -> tuple[int, int]:
    """Return the number of tokens that a kernel reads before and after its own.

    Raises:
        ValueError: a kernel of even size is to be centred on the token.
    """
    if not causal and kernel % 2 == 0:
        raise ValueError(f"a kernel of {kernel} has no middle: take an odd one in an encoder")
    before = kernel - 1 if causal else kernel // 2
    return before, kernel - 1 - before


def padded(x: Tensor, view: View, cache: PrecedingTokens | None, before: int, after: int) -> Tensor:
    """Return x with the context of the kernel: zeros, also in place of padding tokens, or the tokens of the cache."""
    if cache is not None:
        return cache.extend(x)
    if view.keys is not None and before + after:
        x = x * view.keys[..., None]
    return F.pad(x, (0, 0, before, after))
