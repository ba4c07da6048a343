"""The module tree of a model, with the input and output shapes of each module in one forward pass."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from regardant.models.base import Model

Shape = list[int]

Calls = dict[str, list[tuple[list[Shape], list[Shape]]]]
"""Input and output shapes of each call, by module name."""


@dataclass(frozen=True)
class TracedModule:
    """One module and its parts. A module that only holds others, or of which only parts are called, has no shapes."""

    name: str
    """Name in the model, as `encoder.layers.0`. Empty for the model itself."""
    kind: str
    """Name of its class."""
    inputs: list[Shape]
    """Shapes of all tensors that its first call was given."""
    outputs: list[Shape]
    """Shapes of all tensors that its first call returned, or left in the residual stream."""
    calls: int
    """Calls in one pass of the model."""
    parameters: int
    """Number of parameters of the module with its parts; a shared one counts once."""
    own: dict[str, Shape]
    """Shapes of the parameters that belong to no part."""
    parts: list["TracedModule"]


def trace_shapes(model: Model, inputs: Mapping[str, Any]) -> TracedModule:
    """Return the tree of a model that scores a batch. Costs one forward pass, which may be on the meta device."""
    calls: Calls = {name: [] for name, _ in model.named_modules()}
    with ExitStack() as listening, torch.inference_mode():
        for name, module in model.named_modules():
            hook = module.register_forward_hook(_listener(calls[name]), with_kwargs=True)
            listening.callback(hook.remove)
        listening.enter_context(_head_calls(model, calls))
        model.scores(**inputs)
    return _tree(model, "", calls)


@contextmanager
def _head_calls(model: Model, calls: Calls) -> Iterator[None]:
    """Record the calls of the head's `scores`, a plain method that runs no forward hook."""
    name = next((name for name, module in model.named_modules() if module is model.head), None)
    project = model.head.scores
    if name is None:
        yield
        return

    def listened(vectors: Any, *others: Any, **named: Any) -> Any:
        scores = project(vectors, *others, **named)
        calls[name].append((list(_shapes(vectors)), list(_shapes(scores))))
        return scores

    model.head.scores = listened  # type: ignore[method-assign]
    try:
        yield
    finally:
        del model.head.scores


def _listener(into: list[tuple[list[Shape], list[Shape]]]) -> Any:
    def listen(module: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any], output: Any) -> None:
        written = inputs[0] if output is None else output  # a layer that returns None writes to its stream
        into.append((list(_shapes((inputs, named))), list(_shapes(written))))

    return listen


def _tree(module: nn.Module, name: str, calls: Calls) -> TracedModule:
    inputs, outputs = calls[name][0] if calls.get(name) else ([], [])
    prefix = f"{name}." if name else ""
    return TracedModule(
        name=name,
        kind=type(module).__name__,
        inputs=inputs,
        outputs=outputs,
        calls=len(calls.get(name, ())),
        parameters=sum(one.numel() for one in module.parameters()),
        own={key: list(one.shape) for key, one in module.named_parameters(recurse=False)},
        parts=[_tree(part, prefix + key, calls) for key, part in module.named_children()],
    )


def _shapes(value: Any) -> Iterator[Shape]:
    """Yield the shapes of all tensors in a value, in their order."""
    if isinstance(value, PackedSequence):
        yield list(value.data.shape)
    elif isinstance(value, Tensor):
        yield list(value.shape)
    elif isinstance(value, dict):
        for one in value.values():
            yield from _shapes(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _shapes(one)
    elif not isinstance(value, nn.Module | type) and hasattr(value, "__dict__"):  # a view, a stream, vectors
        for name, one in vars(value).items():
            if not name.startswith("_"):
                yield from _shapes(one)
