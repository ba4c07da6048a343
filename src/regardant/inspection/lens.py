"""The logit lens: predictions of a model cut off after each of its layers.

The residual stream after a layer goes through the final norm and the head (nostalgebraist 2020, "interpreting GPT: the
logit lens"). Post-norm streams have no final norm, and go to the head unchanged.

Shape legend: L layers, B batch elements, T elements, N targets of the batch that the head does not ignore, V answers to
choose from, M d_model.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regardant.layers.residual import ResidualStream
from regardant.models.base import Model
from regardant.models.hierarchical import HierarchicalEncoder
from regardant.models.sequence import SequenceDecoder, SequenceEncoder
from regardant.models.vectors import Vectors


@dataclass(frozen=True)
class LensReading:
    """Predictions of every target, before the first layer and after each: [L + 1, N]."""

    rank: Tensor
    """Rank of the target by probability: 1 is the likeliest."""
    probability: Tensor
    """Probability of the target."""
    divergence: Tensor
    """Kullback-Leibler divergence of the layer's distribution from the final one, D(final || layer), in nats."""


def logit_lens(model: Model, run: Callable[[], Tensor], targets: Tensor) -> LensReading:
    """Read every layer of the stack below the head while `run` returns the logits [B, T, V] of tokens `targets` [B, T].

    `run` may also return logits [B, V] of classes `targets` [B]. Targets that the head ignores are left out.

    Raises:
        ValueError: no residual stream leads to the head, the head scores no classes, or the model was not run exactly
            once.
    """
    if model.head.compares_inputs:
        raise ValueError(f"{type(model.head).__name__} compares two inputs and scores no classes")
    stack = residual_stack(model)
    real = targets != model.head.ignored
    answers = targets[real][:, None]
    with torch.no_grad():
        with _streams(stack.layers) as streams, _output(stack) as outputs:
            scores = run()
        if targets.is_floating_point() or scores.shape[:-1] != targets.shape:
            raise ValueError(f"{type(model.head).__name__} scores no classes")
        final = scores[real].float().log_softmax(-1)
        if len(streams) != len(stack.layers) + 1:
            raise ValueError("the lens reads one pass: let `run` run the model exactly once")
        vectors = [replace(outputs[0], values=stack.final_norm(stream)) for stream in streams]
        readings = [_reading(model.head.scores(one)[real].float(), final, answers) for one in vectors]
    return LensReading(*(torch.stack(parts) for parts in zip(*readings, strict=True)))


def _reading(logits: Tensor, final: Tensor, answers: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    scores = logits.log_softmax(-1)
    of_target = scores.gather(1, answers)
    rank = (scores > of_target).sum(-1) + 1
    divergence = F.kl_div(scores, final, reduction="none", log_target=True).sum(-1)
    return rank.cpu(), of_target[:, 0].exp().cpu(), divergence.cpu()


def residual_stack(model: Model) -> Any:
    """Return the sequence model whose output the head reads: layers on one residual stream, then a norm.

    Raises ValueError for a model without one, such as a hierarchical one, whose head reads the sum of two stacks.
    """
    stacks = [module for module in model.modules() if isinstance(module, SequenceEncoder | SequenceDecoder)]
    if any(isinstance(stack, HierarchicalEncoder) for stack in stacks):
        raise ValueError("a hierarchical model adds two stacks: it has no residual stream that leads to its head")
    if stacks and isinstance(getattr(stacks[-1], "final_norm", None), nn.Module):
        return stacks[-1]
    raise ValueError(f"{type(model).__name__} has no residual stream that leads to its head")


@contextmanager
def _output(stack: nn.Module) -> Iterator[list[Vectors]]:
    """Yield a list that gets the output of the stack in each pass."""
    outputs: list[Vectors] = []

    def listen(module: nn.Module, inputs: tuple[Any, ...], output: Vectors) -> None:
        outputs.append(output)

    handle = stack.register_forward_hook(listen)
    try:
        yield outputs
    finally:
        handle.remove()


@contextmanager
def _streams(layers: Sequence[nn.Module]) -> Iterator[list[Tensor]]:
    """Yield the values of the stream [B, T, M] before the first layer and after each."""
    values: list[Tensor] = []

    def before(layer: nn.Module, inputs: tuple[Any, ...]) -> None:
        values.append(_values(inputs[0]))

    def after(layer: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        values.append(_values(inputs[0]))

    with ExitStack() as listening:
        listening.callback(layers[0].register_forward_pre_hook(before).remove)
        for layer in layers:
            listening.callback(layer.register_forward_hook(after).remove)
        yield values


def _values(stream: ResidualStream) -> Tensor:
    return stream.close()
