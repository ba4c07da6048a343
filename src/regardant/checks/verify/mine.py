"""A learner's own attention, callable as the project's is."""

import importlib
import inspect
import os
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

import torch
from torch import Tensor

from regardant.config.did_you_mean import did_you_mean
from regardant.errors import ConfigError


class MaskNotTaken(Exception):
    """Reason to leave out a check that needs a mask: the learner's function has no parameter `mask`."""


class Mine:
    """A learner's `module:function` as a `check.Attend`. The module is in the working directory or installed.

    The function's output to stdout goes to stderr. Raises ConfigError if there is no such function, if it raises, or if
    it returns anything but a tensor of the right shape.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.function = _function(name)
        self.mask = _mask_parameter(self.function)

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        given = {}
        if mask is not None:
            if self.mask is None:
                raise MaskNotTaken
            given["mask"] = mask.clone()
        elif self.mask is not None and self.mask.default is inspect.Parameter.empty:
            given["mask"] = torch.ones(len(q), len(k), dtype=torch.bool)
        shapes = f"q {list(q.shape)}, k {list(k.shape)}, v {list(v.shape)}"
        try:
            with redirect_stdout(sys.stderr):
                mixed = self.function(q.clone(), k.clone(), v.clone(), **given)
        except (Exception, SystemExit) as error:
            raise ConfigError(f"--mine {self.name} raised {_error_summary(error)}, given {shapes}; fix it") from error
        wanted = [len(q), v.shape[-1]]
        if not isinstance(mixed, Tensor):
            kind = type(mixed).__name__
            raise ConfigError(f"--mine {self.name} returned {kind}, given {shapes}; must be a tensor {wanted}")
        if list(mixed.shape) != wanted:
            raise ConfigError(
                f"--mine {self.name} returned a tensor {list(mixed.shape)}, given {shapes}; must be {wanted}, "
                "a mixed value for each query"
            )
        return mixed.detach().cpu().double()


def _function(name: str) -> Callable[..., Any]:
    module_name, _, function_name = name.partition(":")
    if not module_name or not function_name:
        raise ConfigError(f"--mine {name}: write MODULE:FUNCTION, as in my_attention:attention for my_attention.py")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    importlib.invalidate_caches()
    try:
        with redirect_stdout(sys.stderr):
            module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        raise ConfigError(
            f"--mine {name}: importing {module_name} raised {_error_summary(error)}; give a module that Python finds "
            "from here, without .py"
        ) from error
    function = getattr(module, function_name, None)
    if not callable(function):
        known = [name for name, value in vars(module).items() if inspect.isfunction(value)]
        raise ConfigError(
            f"--mine {name}: no function {function_name!r} in {module_name}{did_you_mean(function_name, known)}; its "
            f"functions: {', '.join(known) or 'none'}"
        )
    return function


def _mask_parameter(function: Callable[..., Any]) -> inspect.Parameter | None:
    try:
        return inspect.signature(function).parameters.get("mask")
    except (TypeError, ValueError):  # a function written in C may have no signature
        return None


def _error_summary(error: BaseException) -> str:
    """Return the type of an error and the first line of its message."""
    first, *_ = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
