"""torch.compile, tried if a recipe asks for it: it fuses operations between matmuls. See docs/decisions/0015."""

from typing import Protocol

import torch
from torch import nn

from regardant.errors import first_line
from regardant.layers import dropout
from regardant.planning.probes import Decisions, threads_of_one
from regardant.tasks.base import Log

ROUNDS = 3
"""Timed steps with and without compilation."""


class TrainStep(Protocol):
    """Callable that runs forward and backward on one process's part of a batch and returns the seconds it took."""

    def __call__(self, processes: int, through: nn.Module | None = None) -> float: ...


def compiled(model: nn.Module) -> nn.Module:
    """Return the model with its forward and backward pass compiled for all lengths, on the same weights.

    Dropout masks are drawn outside compiled code: their key changes in each update, and would cause a recompilation
    each time.
    """
    _set_draw(model, torch.compiler.disable(dropout.draw))
    through = torch.compile(model, dynamic=True)
    assert isinstance(through, nn.Module)
    return through


def compiling_pays(
    model: nn.Module, train_step: TrainStep, decisions: Decisions, device: torch.device, log: Log
) -> bool:
    """Return whether a step with the given settings is faster through the compiled model. If compiling fails, log why
    and return False."""
    decisions.apply(model)
    processes = decisions.processes
    log("torch.compile: compiling, which takes minutes")
    try:
        with decisions.autocast(device), threads_of_one(processes):
            through = compiled(model)
            first = train_step(processes, through)
            train_step(processes)
            seconds = [(train_step(processes, through), train_step(processes)) for _ in range(ROUNDS)]
    except Exception as error:  # any error of the compiler: training does not need it
        message = first_line(error)
        log(f"torch.compile failed ({type(error).__name__}: {message}): training goes on without it")
        _set_draw(model, dropout.draw)
        return False
    fused, plain = map(min, zip(*seconds, strict=True))
    line = f"torch.compile: {1000 * fused:.0f} ms a step for {1000 * plain:.0f} without it, compiled in {first:.0f} s"
    if fused < plain:
        log(line)
        return True
    log(f"{line}: training goes on without it")
    _set_draw(model, dropout.draw)
    return False


def _set_draw(model: nn.Module, draw: dropout.Draw) -> None:
    for module in model.modules():
        if isinstance(module, dropout.Dropout):
            module.draw = draw
