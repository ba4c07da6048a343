"""The position-wise feed-forward network: max(0, x W1 + b1) W2 + b2, with dropout inside.

Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, eq. 2. As two convolutions of kernel 1 it is the same function;
with a larger kernel tokens mix with their neighbours. Gated (Shazeer 2020, https://arxiv.org/abs/2002.05202):
(f(x W1) * x W3) W2.

Shape legend: B sentences, T tokens, M d_model, K kernel.
"""

from collections.abc import Callable
from typing import Annotated, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from pydantic import Field
from torch import Tensor, nn

from regardant.config import Config
from regardant.layers.dropout import Dropout
from regardant.layers.linear import Linear

Activation = Literal["relu", "gelu", "silu", "sigmoid"]
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "silu": F.silu,
    "sigmoid": torch.sigmoid,
}


class LinearConfig(Config):
    """Each position by itself."""

    kind: Literal["linear"] = "linear"

    activation: Activation = "relu"
    """Between the two matrices."""


class ConvolutionConfig(Config):
    """A convolution over neighbours, then each position by itself. Kernel 1 is `linear`."""

    kind: Literal["convolution"] = "convolution"

    kernel: int = Field(1, gt=0)
    """Tokens that are read together: around the token in an encoder, up to it in a decoder."""

    activation: Activation = "relu"
    """Between the convolution and the matrix."""


class GatedConfig(Config):
    """Each position by itself, one half of the inner numbers multiplied by the other: GLU, ReGLU, GEGLU, SwiGLU."""

    kind: Literal["gated"] = "gated"

    activation: Activation = "silu"
    """Of the gate: sigmoid is GLU, relu ReGLU, gelu GEGLU, silu SwiGLU."""


AnyFeedForward = Annotated[LinearConfig | ConvolutionConfig | GatedConfig, Field(discriminator="kind")]


class FeedForward(nn.Module):
    """Each position by itself: widened to d_ff, rectified, narrowed again."""

    def __init__(self, d_model: int, d_ff: int, dropout: float, activation: Activation = "relu") -> None:
        super().__init__()
        self.widen = Linear(d_model, d_ff, stays_narrow=True)
        self.dropout = Dropout(dropout)
        self.narrow = Linear(d_ff, d_model)
        self.activation = ACTIVATIONS[activation]

    def forward(self, x: Float[Tensor, "*B M"], real: Bool[Tensor, "B T"] | None = None) -> Float[Tensor, "*B M"]:
        """`real` is not padding; only what mixes positions needs it."""
        return self.narrow(self.dropout(self.inner(x)))

    def inner(self, x: Tensor) -> Tensor:
        """The d_ff numbers of each position."""
        return self.activation(self.widen(x))

    def step(self, x: Float[Tensor, "N T M"], state: Tensor | None) -> tuple[Float[Tensor, "N T M"], Tensor | None]:
        """The newest tokens, and what later ones need to know."""
        return self(x), None


class GatedFeedForward(FeedForward):
    """Two thirds of d_ff inside, so that there are as many weights as without a gate."""

    def __init__(self, d_model: int, d_ff: int, dropout: float, activation: Activation) -> None:
        inner = 2 * d_ff // 3
        super().__init__(d_model, inner, dropout, activation)
        self.gate = Linear(d_model, inner, stays_narrow=True)

    def inner(self, x: Tensor) -> Tensor:
        return self.activation(self.gate(x)) * self.widen(x)


class ConvolutionalFeedForward(nn.Module):
    """Conv1d(d_model, d_ff, kernel), rectified, Conv1d(d_ff, d_model, 1); never changes the length."""

    def __init__(
        self, d_model: int, d_ff: int, dropout: float, activation: Activation, *, kernel: int, causal: bool
    ) -> None:
        super().__init__()
        if not causal and kernel % 2 == 0:
            raise ValueError(f"a kernel of {kernel} has no middle: take an odd one in an encoder")
        self.widen = nn.Conv1d(d_model, d_ff, kernel)
        self.dropout = Dropout(dropout)
        self.narrow = nn.Conv1d(d_ff, d_model, 1)
        self.activation = ACTIVATIONS[activation]
        self.before = kernel - 1 if causal else kernel // 2
        self.after = kernel - 1 - self.before

    def forward(self, x: Float[Tensor, "B T M"], real: Bool[Tensor, "B T"] | None = None) -> Float[Tensor, "B T M"]:
        if real is not None and self.before + self.after:
            x = x * real[..., None]
        return self._convolved(F.pad(x, (0, 0, self.before, self.after)))

    def step(self, x: Float[Tensor, "N T M"], state: Tensor | None) -> tuple[Float[Tensor, "N T M"], Tensor | None]:
        if not self.before:
            return self._convolved(x), None
        x = F.pad(x, (0, 0, self.before, 0)) if state is None else torch.cat([state, x], 1)
        return self._convolved(x), x[:, -self.before :]

    def _convolved(self, x: Tensor) -> Tensor:
        narrowed: Tensor = self.narrow(self.dropout(self.activation(self.widen(x.mT))))
        return narrowed.mT

    def copy_linear(self, linear: FeedForward) -> None:
        """Take over the weights of a linear one: the same function from now on.

        Raises:
            ValueError: the kernel is not 1.
        """
        if (kernel := self.before + 1 + self.after) != 1:
            raise ValueError(f"a kernel of {kernel} reads neighbours, which a linear network does not: take kernel 1")
        with torch.no_grad():
            for mine, other in ((self.widen, linear.widen), (self.narrow, linear.narrow)):
                mine.weight.copy_(other.weight[..., None])
                assert mine.bias is not None
                mine.bias.copy_(other.bias)


def build_feed_forward(
    config: AnyFeedForward, d_model: int, d_ff: int, dropout: float, *, causal: bool
) -> FeedForward | ConvolutionalFeedForward:
    """The network of a layer."""
    if isinstance(config, ConvolutionConfig):
        return ConvolutionalFeedForward(d_model, d_ff, dropout, config.activation, kernel=config.kernel, causal=causal)
    kind = GatedFeedForward if isinstance(config, GatedConfig) else FeedForward
    return kind(d_model, d_ff, dropout, config.activation)
