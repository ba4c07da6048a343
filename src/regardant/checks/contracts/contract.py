"""A contract: a property that every mechanism of attention has, whatever its formula."""

import inspect
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regardant.attention import Attention, View
from regardant.checks.contracts.scenes import SCENES

Make = Callable[[], Attention]
"""Function that builds a mechanism for NUM_HEADS heads of HEAD_SIZE, with the same weights every time."""


class BrokenContract(AssertionError):
    """A property that does not hold."""


@dataclass(frozen=True)
class Contract:
    """A property, and the mechanisms that must have it."""

    name: str
    """The property in words, such as "the future never changes the past"."""
    check: Callable[..., None]
    """Function of (make, scene), or of (make) if there are no scenes. Raises AssertionError."""
    needs: frozenset[str]
    """Fields of a view that a mechanism must honour for the contract to apply."""
    scenes: tuple[str, ...] = ()
    """Names of the scenes of the check."""

    def applies_to(self, attention: Attention) -> bool:
        """Return whether a mechanism honours all fields in `needs`."""
        return self.needs <= attention.honours

    def keep(self, make: Make) -> None:
        """Check the property in every scene that the mechanism honours.

        Raises AssertionError, or any exception of the mechanism, with a note that names the scene.
        """
        if not self.scenes:
            self.check(make)
            return
        honours = make().honours
        for name in self.scenes:
            asked = SCENES[name].view().asked
            if not self.needs <= asked <= honours:
                continue
            try:
                self.check(make, SCENES[name])
            except Exception as error:
                error.add_note(f"scene: {name}")
                raise


CONTRACTS: dict[str, Contract] = {}
"""Contracts by name, in the order of the source."""


def contract(*needs: str, scenes: Collection[str] = SCENES.keys()) -> Callable[[Callable[..., None]], Contract]:
    """Return the decorator that makes a contract of a check, named by the check's name in words.

    A check of (make, scene) runs in those of `scenes` that ask for the fields in `needs`.
    """

    def decorate(check: Callable[..., None]) -> Contract:
        in_scenes = tuple(scenes) if "scene" in inspect.signature(check).parameters else ()
        name = check.__name__.replace("_", " ")
        CONTRACTS[name] = Contract(name, check, frozenset(needs), in_scenes)
        return CONTRACTS[name]

    return decorate


def require(holds: bool | Tensor, otherwise: str) -> None:
    """Raise BrokenContract with the message `otherwise` unless all elements of `holds` are true."""
    if not bool(torch.as_tensor(holds).all()):
        raise BrokenContract(otherwise)


def require_refused(begins: str, function: Callable[..., Any], *arguments: Any) -> None:
    """Raise BrokenContract unless the call raises a ValueError whose message begins with `begins`."""
    try:
        function(*arguments)
    except ValueError as error:
        require(str(error).startswith(begins), f"the error {str(error)!r} does not begin with {begins!r}")
    else:
        raise BrokenContract(f"no ValueError was raised; expected: {begins} ...")


def causal() -> View:
    """Return the causal view of a decoder."""
    return View(causal=True)
