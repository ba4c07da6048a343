"""Residual streams, which sublayers read from and write to.

pre: x + dropout(sublayer(norm(x))), which trains stably and needs a norm after the last layer.
post: norm(x + dropout(sublayer(x))), the original (Vaswani et al. 2017, section 5.4).
Xiong et al. 2020, "On layer normalization in the Transformer architecture", https://arxiv.org/abs/2002.04745.
`residual: none` leaves out the `x +`, as an ablation. composition: a layer is x + FFN(x + Attention(x)), in which the
output of attention reaches the stream through the feed-forward network alone.

The stream decides which activations training keeps for the backward pass: all (PlainStream), the inputs of sublayers
(CheckpointedStream), only the final streams (TwoStreams).
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Literal, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

from regardant.attention.masks import product_dtype
from regardant.kernels import supports
from regardant.layers.dropout import Dropout
from regardant.layers.norms import NormConfig
from regardant.layers.observed import OBSERVED

NormPlace = Literal["pre", "post"]
ResidualKind = Literal["add", "none", "reversible", "composition"]

Sublayer = Callable[..., Tensor]
"""Function of the vectors of the stream and other inputs. Returns the vectors to write."""


class Residual(nn.Module):
    """Write of a sublayer to the stream, with norm and dropout. A call passes the sublayer and its other inputs."""

    def __init__(
        self,
        d_model: int,
        norm_place: NormPlace,
        dropout: float,
        *,
        adds: bool,
        normalisation: NormConfig,
        ends_layer: bool = False,
    ) -> None:
        super().__init__()
        self.norm = normalisation.build(d_model)
        self.dropout = Dropout(dropout)
        self.written = nn.Identity()  # a module, so that inspection can hook the output
        self.norm_place = norm_place
        self.adds = adds
        self.ends_layer = ends_layer

    def forward(self, x: Float[Tensor, "*B M"], sublayer: Sublayer, *inputs: Any) -> Float[Tensor, "*B M"]:
        written: Tensor = sublayer(self.norm(x) if self.norm_place == "pre" else x, *inputs)
        written = self.written(self.dropout(written) if self.training else written)
        if self.norm_place == "pre":
            return x + written if self.adds else written
        normed: Tensor = self.norm(x + written if self.adds else written)
        return normed

    def branch(self, x: Float[Tensor, "*B M"], sublayer: Sublayer, *inputs: Any) -> Float[Tensor, "*B M"]:
        """Return the output of the sublayer under pre-norm, before it is added to the stream."""
        written: Tensor = self.written(self.dropout(sublayer(self.norm(x), *inputs)))
        return written


@runtime_checkable
class ResidualStream(Protocol):
    """Vectors that the layers of a stack write to, one sublayer after the other."""

    def write(self, residual: Residual, sublayer: Sublayer, *inputs: Any) -> None:
        """Write the output of a sublayer. Tensors that need a gradient, such as a memory, must be among `inputs`."""

    def close(self) -> Tensor:
        """Return the output of the stack."""


class PlainStream:
    """Stream of one vector for each token."""

    def __init__(self, x: Tensor) -> None:
        self.x = x

    def write(self, residual: Residual, sublayer: Sublayer, *inputs: Any) -> None:
        self.x = residual(self.x, sublayer, *inputs)

    def close(self) -> Tensor:
        return self.x


class FusedStream(PlainStream):
    """Plain stream for training on an accelerator, where dropout, sum and norm are one kernel.

    Under pre-norm, the output of a sublayer waits for the norm of the next sublayer.
    """

    def __init__(self, x: Tensor) -> None:
        super().__init__(x)
        self.waiting: tuple[Tensor, Dropout] | None = None

    def write(self, residual: Residual, sublayer: Sublayer, *inputs: Any) -> None:
        norm = residual.norm
        is_observed = norm in OBSERVED or residual.written in OBSERVED  # the kernel calls neither module
        if type(norm) is not nn.LayerNorm or not residual.adds or is_observed:
            self.x = self.close()
            super().write(residual, sublayer, *inputs)
        elif residual.norm_place == "post":
            _, self.x = _add_and_norm(self.x, sublayer(self.x, *inputs), residual.dropout, norm, self.x.dtype)
        else:
            if self.waiting is None:
                normed = norm(self.x)
            else:  # narrowed here, since the first product would do so in another pass over memory
                self.x, normed = _add_and_norm(self.x, *self.waiting, norm, product_dtype(self.x))
            self.waiting = sublayer(normed, *inputs), residual.dropout

    def close(self) -> Tensor:
        if self.waiting is not None:
            written, dropout = self.waiting
            self.x, self.waiting = self.x + dropout(written), None
        return self.x


def _add_and_norm(
    x: Tensor, written: Tensor, dropout: Dropout, norm: nn.LayerNorm, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Return x + dropout(written), and its norm in `dtype`."""
    from regardant.kernels.residual import add_and_norm

    seed = dropout.seed() if dropout.rate else 0
    return add_and_norm(x, written, norm.weight, norm.bias, norm.eps, dropout.rate, seed, dtype)


class CheckpointedStream(PlainStream):
    """Plain stream that keeps only the input of each sublayer: the backward pass recomputes the sublayer.

    Chen et al. 2016, "Training deep nets with sublinear memory cost", https://arxiv.org/abs/1604.06174.
    """

    def write(self, residual: Residual, sublayer: Sublayer, *inputs: Any) -> None:
        self.x = checkpoint(residual, self.x, sublayer, *inputs, use_reentrant=False)


class ComposedStream(PlainStream):
    """Stream of layers x + FFN(x + Attention(x)): the last write of a layer is added to the layer's input."""

    def __init__(self, x: Tensor) -> None:
        super().__init__(x)
        self.input = x

    def write(self, residual: Residual, sublayer: Sublayer, *inputs: Any) -> None:
        written = residual.branch(self.x, sublayer, *inputs)
        if residual.ends_layer:
            self.x = self.input = self.input + written
        else:
            self.x = self.x + written


class TwoStreams:
    """Stream of two vectors for each token, each written from the other, so that a write can be undone.

    Gomez et al. 2017, "The reversible residual network", https://arxiv.org/abs/1707.04585; Kitaev et al. 2020,
    https://arxiv.org/abs/2001.04451, section 3. Both begin as the input; the output is their mean.
    """

    def __init__(self, x: Tensor) -> None:
        self.x = x
        self.functions: list[Sublayer] = []
        self.counts: list[int] = []
        self.tensors: list[Tensor] = []

    def write(self, residual: Residual, sublayer: Sublayer, *inputs: Any) -> None:
        def branch(x: Tensor, *tensors: Tensor) -> Tensor:
            given = iter(tensors)
            return residual.branch(x, sublayer, *(next(given) if isinstance(one, Tensor) else one for one in inputs))

        tensors = [one for one in inputs if isinstance(one, Tensor)]
        self.functions.append(branch)
        self.counts.append(len(tensors))
        self.tensors += tensors

    def close(self) -> Tensor:
        # Parameters of the sublayers are no inputs of the function: autograd calls its backward pass only if x needs a
        # gradient, and the x of a frozen embedding needs none.
        x = self.x if self.x.requires_grad else self.x.detach().requires_grad_()
        output: Tensor = _Reversible.apply(self.functions, self.counts, x, *self.tensors)  # type: ignore[no-untyped-call]
        return output


class EagerTwoStreams:
    """Stream of the same values as `TwoStreams`, written one by one: for inference, where every write is observable."""

    def __init__(self, x: Tensor) -> None:
        self.written, self.read = x, x

    def write(self, residual: Residual, sublayer: Sublayer, *inputs: Any) -> None:
        self.written, self.read = self.read, self.written + residual.branch(self.read, sublayer, *inputs)

    def close(self) -> Tensor:
        return (self.written + self.read) / 2


def open_stream(kind: ResidualKind, x: Tensor, *, training: bool, checkpointing: bool) -> ResidualStream:
    """Return the stream of a stack that begins with x."""
    if kind == "composition":
        return ComposedStream(x)
    if kind != "reversible":
        if training and checkpointing:
            return CheckpointedStream(x)
        return FusedStream(x) if training and supports(x) else PlainStream(x)
    return TwoStreams(x) if training else EagerTwoStreams(x)


class _Reversible(torch.autograd.Function):
    """Function that keeps only the two final streams: its backward pass undoes one write after the other."""

    @staticmethod
    def forward(ctx: Any, functions: Sequence[Sublayer], counts: Sequence[int], x: Tensor, *others: Tensor) -> Tensor:
        streams, given, random_states = [x, x], iter(others), []
        for number, (function, count) in enumerate(zip(functions, counts, strict=True)):
            mine = number % 2
            random_states.append(_random_states(x.device))
            leaves = [one.detach().requires_grad_() for one in (streams[1 - mine], *islice(given, count))]
            with torch.enable_grad():  # as in the backward pass, so that the same kernel runs and undoes the write
                written = function(*leaves)
            streams[mine] = streams[mine] + written.detach()
        ctx.functions, ctx.counts, ctx.random_states = functions, counts, random_states
        ctx.autocast = torch.is_autocast_enabled(x.device.type), torch.get_autocast_dtype(x.device.type)
        ctx.save_for_backward(*streams, *others)
        return (streams[0] + streams[1]) / 2

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        first, second, *others = ctx.saved_tensors
        streams, to_streams = [first, second], [gradients[0] / 2, gradients[0] / 2]
        to_others: list[Tensor | None] = [None] * len(others)
        end = len(others)
        enabled, dtype = ctx.autocast
        for number in reversed(range(len(ctx.functions))):
            mine, begin = number % 2, end - ctx.counts[number]
            leaves = [x.detach().requires_grad_() for x in (streams[1 - mine], *others[begin:end])]
            again = _drawing_from(ctx.random_states[number], first.device)
            with again, torch.enable_grad(), torch.autocast(first.device.type, dtype, enabled=enabled):
                written = ctx.functions[number](*leaves)
            torch.autograd.backward(written, to_streams[mine].to(written.dtype))
            streams[mine] = streams[mine] - written.detach()
            if (to_read := leaves[0].grad) is not None:
                to_streams[1 - mine] = to_streams[1 - mine] + to_read
            to_others[begin:end] = [leaf.grad for leaf in leaves[1:]]
            end = begin
        return (None, None, to_streams[0] + to_streams[1], *to_others)


def _random_states(device: torch.device) -> list[Tensor]:
    """Return the states of the generators that dropout draws from: the CPU's, which also seeds kernels of an
    accelerator without a key, and the accelerator's."""
    of_device = [] if device.type == "cpu" else [torch.get_device_module(device).get_rng_state(device)]
    return [torch.get_rng_state(), *of_device]


@contextlib.contextmanager
def _drawing_from(states: Sequence[Tensor], device: torch.device) -> Iterator[None]:
    """Draw random numbers from these states while the context is open, and restore the generators afterwards."""
    of_cpu, *of_device = states
    with torch.random.fork_rng([device] if of_device else [], device_type=device.type):
        torch.set_rng_state(of_cpu)
        for state in of_device:
            torch.get_device_module(device).set_rng_state(state, device)
        yield
