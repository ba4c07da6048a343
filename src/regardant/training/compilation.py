"""torch.compile, tried where a recipe asks for it: it fuses what lies between the products. See docs/decisions/0015."""

from collections.abc import Callable
from typing import Protocol

import torch
from torch import nn

from regardant.layers.dropout import Dropout
from regardant.training.probes import Decisions, as_one_of

ROUNDS = 3
"""Timed steps each way, in turn."""


def compiled(model: nn.Module) -> nn.Module:
    """The model with its forward and backward pass compiled for all lengths at once, on the same weights."""
    for module in model.modules():
        if isinstance(module, Dropout):  # its key is another number each update, for which all would be compiled anew
            module.forward = torch.compiler.disable(module.forward)  # type: ignore[method-assign]
    through = torch.compile(model, dynamic=True)
    assert isinstance(through, nn.Module)
    return through


class TrainStep(Protocol):
    """Forward and backward of one process's part of a batch; the seconds that they took."""

    def __call__(self, processes: int, through: nn.Module | None = None) -> float: ...


def pays(
    model: nn.Module, train_step: TrainStep, decisions: Decisions, device: torch.device, say: Callable[[str], None]
) -> bool:
    """Whether a step as it was decided is faster through the compiled model; says so, or why compiling failed."""
    decisions.apply(model)
    processes = decisions.processes
    narrow = torch.autocast(device.type, torch.bfloat16, enabled=decisions.precision == "bfloat16")
    say("torch.compile: compiling, which takes minutes")
    try:
        with narrow, as_one_of(processes):
            through = compiled(model)
            first = train_step(processes, through)
            train_step(processes)
            seconds = [(train_step(processes, through), train_step(processes)) for _ in range(ROUNDS)]
    except Exception as error:  # whatever the compiler raises, training can do without it
        word = str(error).strip().partition("\n")[0]
        say(f"torch.compile failed ({type(error).__name__}: {word}): training goes on without it")
        _undo(model)
        return False
    fused, plain = map(min, zip(*seconds, strict=True))
    told = f"torch.compile: {1000 * fused:.0f} ms a step for {1000 * plain:.0f} without it, compiled in {first:.0f} s"
    if fused < plain:
        say(told)
        return True
    say(f"{told}: training goes on without it")
    _undo(model)
    return False


def _undo(model: nn.Module) -> None:
    """Take back what `compiled` has done to the model itself."""
    for module in model.modules():
        if isinstance(module, Dropout):
            module.__dict__.pop("forward", None)
