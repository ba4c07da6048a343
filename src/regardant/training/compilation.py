"""torch.compile, tried where a recipe asks for it: it fuses what lies between the products. See docs/decisions/0015."""

from collections.abc import Callable

import torch
from torch import nn

from regardant.layers.dropout import Dropout

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


def pays(model: nn.Module, train_step: Callable[[nn.Module], float], say: Callable[[str], None]) -> bool:
    """Whether a step is faster through the compiled model; says so, or why compiling failed.

    `train_step` runs forward and backward and gives the seconds that they took.
    """
    say("torch.compile: compiling, which takes minutes")
    try:
        through = compiled(model)
        first = train_step(through)
        train_step(model)
        seconds = [(train_step(through), train_step(model)) for _ in range(ROUNDS)]
    except Exception as error:  # whatever the compiler raises, training can do without it
        word = str(error).strip().partition("\n")[0]
        say(f"torch.compile failed ({type(error).__name__}: {word}): training goes on without it")
        return False
    fused, plain = map(min, zip(*seconds, strict=True))
    told = f"torch.compile: {1000 * fused:.0f} ms a step for {1000 * plain:.0f} without it, compiled in {first:.0f} s"
    say(told if fused < plain else f"{told}: training goes on without it")
    return fused < plain
