"""Sets too large to list that can still be counted, drawn from and searched: the language is one of them.

Only `Random.random` is drawn from: it alone is promised to give the same numbers in every version of Python.
"""

from bisect import bisect
from collections.abc import Callable, Sequence
from itertools import accumulate
from random import Random
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Space(Protocol[T_co]):
    size: int

    def draw(self, random: Random) -> T_co: ...

    def __contains__(self, item: object) -> bool: ...


class Choice(Generic[T]):
    """Space of options, which are drawn in proportion to their weights."""

    def __init__(self, options: Sequence[T], weights: Sequence[float] | None = None) -> None:
        self.options = options
        self.size = len(options)
        self.bounds = cumulative(weights or [1.0] * len(options))

    def draw(self, random: Random) -> T:
        return self.options[bisect(self.bounds, random.random())]

    def __contains__(self, item: object) -> bool:
        return item in self.options


class Union(Generic[T]):
    """Union of disjoint spaces; items in two of them would be counted twice."""

    def __init__(self, spaces: Sequence[Space[T]], weights: Sequence[float] | None = None) -> None:
        self.spaces = spaces
        self.size = sum(space.size for space in spaces)
        self.bounds = cumulative(weights or [1.0] * len(spaces))

    def draw(self, random: Random) -> T:
        return self.spaces[bisect(self.bounds, random.random())].draw(random)

    def __contains__(self, item: object) -> bool:
        return any(item in space for space in self.spaces)


class Product(Generic[T]):
    """Space of all `make(field=...)` with each field from its space; the fields left out keep their defaults."""

    def __init__(self, make: Callable[..., T], **fields: Space[Any]) -> None:
        self.make = make
        self.fields = tuple(fields.items())
        self.size = 1
        for space in fields.values():
            self.size *= space.size

    def draw(self, random: Random) -> T:
        return self.make(**{name: space.draw(random) for name, space in self.fields})

    def __contains__(self, item: object) -> bool:
        try:
            values = {name: getattr(item, name) for name, _ in self.fields}
        except AttributeError:
            return False
        return item == self.make(**values) and all(values[name] in space for name, space in self.fields)


def only(item: T) -> Choice[T]:
    return Choice((item,))


def cumulative(weights: Sequence[float]) -> list[float]:
    """Return the upper bounds of all shares of [0, 1) but the last, so that no rounding falls beyond the last."""
    total = sum(weights)
    return [bound / total for bound in accumulate(weights)][:-1]
