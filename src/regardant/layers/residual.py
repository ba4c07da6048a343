"""The residual stream: how a sublayer reads from it and writes to it.

pre: x + dropout(sublayer(norm(x))), which trains stably and needs a norm after the last layer.
post: norm(x + dropout(sublayer(x))), the original (Vaswani et al. 2017, section 5.4).
Xiong et al. 2020, "On layer normalization in the Transformer architecture", https://arxiv.org/abs/2002.04745.
Without the `x +` (residual: none) depth costs what it costs: an ablation.

What training keeps between the forward and the backward pass is for the stream to say: all (PlainStream), the stream
between sublayers alone (CheckpointedStream), nothing (TwoStreams).
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

from regardant.layers.dropout import Dropout
from regardant.layers.norms import Normalisation, build_norm

NormPlace = Literal["pre", "post"]
ResidualKind = Literal["add", "none", "reversible"]

Sublayer = Callable[..., Tensor]
"""(what it reads from the stream, tensors from elsewhere) to what it writes."""


class Residual(nn.Module):
    """One write to the stream. The sublayer is given at the call, since it differs in what else it takes."""

    def __init__(
        self, d_model: int, norm_place: NormPlace, dropout: float, *, adds: bool, normalisation: Normalisation
    ) -> None:
        super().__init__()
        self.norm = build_norm(normalisation, d_model)
        self.dropout = Dropout(dropout)
        self.norm_place = norm_place
        self.adds = adds

    def forward(self, x: Float[Tensor, "*B M"], sublayer: Sublayer, *others: Tensor) -> Float[Tensor, "*B M"]:
        if self.norm_place == "pre":
            written = self.branch(x, sublayer, *others)
            return x + written if self.adds else written
        written = self.dropout(sublayer(x, *others))
        normed: Tensor = self.norm(x + written if self.adds else written)
        return normed

    def branch(self, x: Float[Tensor, "*B M"], sublayer: Sublayer, *others: Tensor) -> Float[Tensor, "*B M"]:
        """What is written, pre-norm, before it is added."""
        written: Tensor = self.dropout(sublayer(self.norm(x), *others))
        return written


@runtime_checkable
class Stream(Protocol):
    """What the layers of a stack write to, one sublayer after the other."""

    def write(self, residual: Residual, sublayer: Sublayer, *others: Tensor) -> None:
        """One sublayer; `others` are tensors from elsewhere that it needs, and that gradients go back to."""

    def close(self) -> Tensor:
        """What the stack says."""


class PlainStream:
    """One vector a token."""

    def __init__(self, x: Tensor) -> None:
        self.x = x

    def write(self, residual: Residual, sublayer: Sublayer, *others: Tensor) -> None:
        self.x = residual(self.x, sublayer, *others)

    def close(self) -> Tensor:
        return self.x


class CheckpointedStream(PlainStream):
    """The same, but of a sublayer only its input is kept: the backward pass computes it again.

    Chen et al. 2016, "Training deep nets with sublinear memory cost", https://arxiv.org/abs/1604.06174.
    """

    def write(self, residual: Residual, sublayer: Sublayer, *others: Tensor) -> None:
        self.x = checkpoint(residual, self.x, sublayer, *others, use_reentrant=False)


class TwoStreams:
    """Two vectors a token, each written from the other: what was before a write can be had from what is after it.

    Gomez et al. 2017, "The reversible residual network", https://arxiv.org/abs/1707.04585; Kitaev et al. 2020,
    https://arxiv.org/abs/2001.04451, section 3. Both begin as the input; what is said is their mean.
    """

    def __init__(self, x: Tensor) -> None:
        self.x = x
        self.writes: list[tuple[Residual, Sublayer, tuple[Tensor, ...]]] = []

    def write(self, residual: Residual, sublayer: Sublayer, *others: Tensor) -> None:
        self.writes.append((residual, sublayer, others))

    def close(self) -> Tensor:
        functions = [
            lambda x, *others, r=residual, s=sublayer: r.branch(x, s, *others) for residual, sublayer, _ in self.writes
        ]
        others = [tensor for *_, given in self.writes for tensor in given]
        counts = [len(given) for *_, given in self.writes]
        said: Tensor = _Reversible.apply(functions, counts, self.x, *others)  # type: ignore[no-untyped-call]
        return said


class EagerTwoStreams:
    """The same numbers, each write at once: where nothing is learned, and one may look at every write."""

    def __init__(self, x: Tensor) -> None:
        self.written, self.read = x, x

    def write(self, residual: Residual, sublayer: Sublayer, *others: Tensor) -> None:
        self.written, self.read = self.read, self.written + residual.branch(self.read, sublayer, *others)

    def close(self) -> Tensor:
        return (self.written + self.read) / 2


def open_stream(kind: ResidualKind, x: Tensor, *, training: bool, checkpointing: bool) -> Stream:
    """The stream of a stack that begins with x."""
    if kind != "reversible":
        return CheckpointedStream(x) if training and checkpointing else PlainStream(x)
    return TwoStreams(x) if training else EagerTwoStreams(x)


class _Reversible(torch.autograd.Function):
    """Keeps the two streams after the last write and nothing else: the backward pass undoes write after write."""

    @staticmethod
    def forward(ctx: Any, functions: Sequence[Sublayer], counts: Sequence[int], x: Tensor, *others: Tensor) -> Tensor:
        streams, given, random_states = [x, x], iter(others), []
        for number, (function, count) in enumerate(zip(functions, counts, strict=True)):
            mine = number % 2
            random_states.append(_random_state(x.device))
            streams[mine] = streams[mine] + function(streams[1 - mine], *(next(given) for _ in range(count)))
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


def _random_state(device: torch.device) -> Tensor:
    """Of the generator from which a dropout without a key of its own draws, as it does on every accelerator."""
    return torch.get_rng_state() if device.type == "cpu" else torch.get_device_module(device).get_rng_state(device)


@contextlib.contextmanager
def _drawing_from(state: Tensor, device: torch.device) -> Iterator[None]:
    """Draw once more what was drawn from there; afterwards the generator stands where it stood."""
    on_cpu = device.type == "cpu"
    with torch.random.fork_rng([] if on_cpu else [device], device_type=device.type):
        if on_cpu:
            torch.set_rng_state(state)
        else:
            torch.get_device_module(device).set_rng_state(state, device)
        yield
