"""Feed-forward networks of a layer: max(0, x W1 + b1) W2 + b2 for each token, with dropout inside, and variants.

Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, eq. 2. Two convolutions of kernel 1 compute the same function;
with a larger kernel tokens mix with their neighbours. Gated (Shazeer 2020, https://arxiv.org/abs/2002.05202):
(f(x W1) * x W3) W2. A class derived from `FeedForwardConfig`, with a `kind`, adds a network.

Shape legend: B sentences, T tokens, M d_model, F d_ff, K kernel.
"""

from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from regardant.attention import EVERYTHING, View
from regardant.config import Variants
from regardant.kernels import supports
from regardant.layers.activations import ACTIVATIONS, Activation
from regardant.layers.cache import LayerCache, PrecedingTokens
from regardant.layers.convolution import padded, reach_of
from regardant.layers.dropout import Dropout
from regardant.layers.linear import Linear
from regardant.layers.rounded_rows import apply_to_rows, narrows


class FeedForward(nn.Module):
    """Interface of feed-forward networks, applied after attention."""

    def forward(self, x: Float[Tensor, "B T M"], view: View = EVERYTHING, cache: Any = None) -> Float[Tensor, "B T M"]:
        """Return the outputs of all tokens, or with a cache those of the newest. The cache is updated in place.

        view: networks that mix neighbours ignore its padding.
        cache: returned by `start`.
        """
        raise NotImplementedError

    def start(self) -> LayerCache | None:
        """Return an empty cache. None: the network reads each token by itself."""
        return None


class FeedForwardConfig(Variants):
    """Configuration of a feed-forward network."""

    default_kind: ClassVar[str] = "linear"

    def build(self, d_model: int, d_ff: int, dropout: float, *, causal: bool) -> FeedForward:
        """Return the network of a layer, with `d_ff` hidden features; `causal` in a decoder."""
        raise NotImplementedError


class LinearFeedForwardConfig(FeedForwardConfig):
    """Network of two matrices, applied to each position by itself."""

    kind: Literal["linear"] = "linear"

    activation: Activation = "relu"
    """Activation function between the two matrices."""

    bias: bool = True
    """True if the two matrices have biases."""

    def build(self, d_model: int, d_ff: int, dropout: float, *, causal: bool) -> "LinearFeedForward":
        return LinearFeedForward(d_model, d_ff, dropout, self.activation, bias=self.bias)


class ConvolutionalFeedForwardConfig(FeedForwardConfig):
    """Convolution over neighbours, then a matrix applied to each position by itself. Kernel 1 is `linear`."""

    kind: Literal["convolution"] = "convolution"

    kernel: int = Field(1, gt=0)
    """Kernel size, in tokens: centred on the token in an encoder, ending at the token in a decoder."""

    activation: Activation = "relu"
    """Activation function between the convolution and the matrix."""

    def build(self, d_model: int, d_ff: int, dropout: float, *, causal: bool) -> "ConvolutionalFeedForward":
        return ConvolutionalFeedForward(d_model, d_ff, dropout, self.activation, kernel=self.kernel, causal=causal)


class GatedFeedForwardConfig(FeedForwardConfig):
    """Gated linear units, applied to each position by itself: GLU, ReGLU, GEGLU, SwiGLU."""

    kind: Literal["gated"] = "gated"

    activation: Activation = "silu"
    """Activation function of the gate: sigmoid is GLU, relu ReGLU, gelu GEGLU, silu SwiGLU."""

    bias: bool = True
    """True if the three matrices have biases."""

    def build(self, d_model: int, d_ff: int, dropout: float, *, causal: bool) -> "GatedFeedForward":
        return GatedFeedForward(d_model, d_ff, dropout, self.activation, bias=self.bias)


class ActivationAloneConfig(FeedForwardConfig):
    """Activation function without matrices, as between the layers of a graph attention network."""

    kind: Literal["activation"] = "activation"

    activation: Activation = "elu"
    """Activation function of each element."""

    def build(self, d_model: int, d_ff: int, dropout: float, *, causal: bool) -> "ActivationAlone":
        return ActivationAlone(dropout, self.activation)


class ActivationAlone(FeedForward):
    """Activation function of each element, followed by dropout."""

    def __init__(self, dropout: float, activation: Activation) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.activation = ACTIVATIONS[activation]

    def forward(self, x: Float[Tensor, "*B M"], view: View = EVERYTHING, cache: None = None) -> Float[Tensor, "*B M"]:
        return self.dropout(self.activation(x))


class LinearFeedForward(FeedForward):
    """Network of each position: a matrix to d_ff features, the activation, a matrix back."""

    def __init__(
        self, d_model: int, d_ff: int, dropout: float, activation: Activation = "relu", *, bias: bool = True
    ) -> None:
        super().__init__()
        self.widen = Linear(d_model, d_ff, bias, stays_narrow=True)
        self.dropout = Dropout(dropout)
        self.narrow = Linear(d_ff, d_model, bias)
        self.activation: Activation = activation

    def forward(self, x: Float[Tensor, "*B M"], view: View = EVERYTHING, cache: None = None) -> Float[Tensor, "*B M"]:
        if not narrows(x):
            return self._widen_and_narrow(x)
        return apply_to_rows(x, self._widen_and_narrow, rounds=self.widen.rounds_rows)

    def _widen_and_narrow(self, x: Float[Tensor, "*B M"]) -> Float[Tensor, "*B M"]:
        if not self.training:
            return self.narrow(self.widen(x, self.activation))
        if self.activation == "relu":
            return self.narrow(self._relu_and_dropout(self.widen(x)))
        return self.narrow(self.dropout(self.widen(x, self.activation)))

    def _relu_and_dropout(self, inner: Float[Tensor, "*B F"]) -> Float[Tensor, "*B F"]:
        if not supports(inner):
            return self.dropout.relu_and_drop(inner)
        from regardant.kernels.feed_forward import relu_and_dropout

        rate = self.dropout.rate
        return relu_and_dropout(inner, rate, self.dropout.seed() if rate else 0)


class GatedFeedForward(LinearFeedForward):
    """Gated network of two thirds of d_ff features, so that it has as many weights as a network without a gate."""

    def __init__(self, d_model: int, d_ff: int, dropout: float, activation: Activation, *, bias: bool = True) -> None:
        inner = 2 * d_ff // 3
        super().__init__(d_model, inner, dropout, activation, bias=bias)
        self.gate = Linear(d_model, inner, bias, stays_narrow=True)

    def _widen_and_narrow(self, x: Float[Tensor, "*B M"]) -> Float[Tensor, "*B M"]:
        inner = self.gate(x, self.activation) * self.widen(x)
        return self.narrow(self.dropout(inner) if self.training else inner)


class ConvolutionalFeedForward(FeedForward):
    """Network of Conv1d(d_model, d_ff, kernel), the activation and Conv1d(d_ff, d_model, 1). It keeps the length."""

    def __init__(
        self, d_model: int, d_ff: int, dropout: float, activation: Activation, *, kernel: int, causal: bool
    ) -> None:
        super().__init__()
        self.before, self.after = reach_of(kernel, causal=causal)
        self.widen = nn.Conv1d(d_model, d_ff, kernel)
        self.dropout = Dropout(dropout)
        self.narrow = nn.Conv1d(d_ff, d_model, 1)
        self.activation = ACTIVATIONS[activation]

    def forward(
        self, x: Float[Tensor, "B T M"], view: View = EVERYTHING, cache: PrecedingTokens | None = None
    ) -> Float[Tensor, "B T M"]:
        x = padded(x, view, cache, self.before, self.after)
        narrowed: Tensor = self.narrow(self.dropout(self.activation(self.widen(x.mT))))
        return narrowed.mT

    def start(self) -> PrecedingTokens | None:
        return PrecedingTokens(self.before) if self.before else None

    def copy_linear(self, linear: LinearFeedForward) -> None:
        """Copy the weights of a linear network, to compute the same function.

        Raises:
            ValueError: the kernel is not 1.
        """
        if (kernel := self.before + 1 + self.after) != 1:
            raise ValueError(f"a kernel of {kernel} reads neighbours, which a linear network does not: take kernel 1")
        with torch.no_grad():
            for mine, other in ((self.widen, linear.widen), (self.narrow, linear.narrow)):
                mine.weight.copy_(other.weight[..., None])
                assert mine.bias is not None
                mine.bias.copy_(torch.zeros_like(mine.bias) if other.bias is None else other.bias)
