"""One search of several that have come as far as each other.

What a search and its model remember are dataclasses, tuples and lists of tensors, in each of which a row is a sentence
or a beam. Their rows are put one after the other, those of another length padded with zeros.

    field(metadata={"rows": 1})       rows are the second dimension
    field(metadata={"rows": None})    the same for all rows
"""

import copy
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

State = TypeVar("State")


def joined(states: Sequence[State]) -> State:
    """Goes on with what each of `states` holds, in their order. They must be of one kind, after as many steps.

    Of one alone: with what it holds in memory of its own, where it has rows of larger tensors.
    """
    return _join(states, 0, {})


def _join(parts: Sequence[Any], rows: int | None, made: dict[tuple[int, ...], Any]) -> Any:
    first, name = parts[0], tuple(map(id, parts))
    if name not in made:  # what layers share they share afterwards
        made[name] = _joined_once(parts, first, rows, made)
    return made[name]


def _joined_once(parts: Sequence[Any], first: Any, rows: int | None, made: dict[tuple[int, ...], Any]) -> Any:
    shared = len(parts) > 1 and all(part is first for part in parts)
    if rows is None or shared:
        return first
    if isinstance(first, Tensor):
        return _one_after_the_other(parts, rows)
    if is_dataclass(first):
        whole = copy.copy(first)
        for field in fields(first):
            of_field = [getattr(part, field.name) for part in parts]
            object.__setattr__(whole, field.name, _join(of_field, field.metadata.get("rows", 0), made))
        return whole
    if isinstance(first, list | tuple):
        elements = [_join(of_each, rows, made) for of_each in zip(*parts, strict=True)]
        return type(first)(*elements) if hasattr(first, "_fields") else type(first)(elements)
    if isinstance(first, int):
        return max(parts)  # a capacity: all have taken as many steps
    return {} if isinstance(first, dict) else first  # caches begin anew


def _one_after_the_other(parts: Sequence[Tensor], rows: int) -> Tensor:
    shapes = torch.tensor([part.shape for part in parts])
    longest = shapes.amax(0).tolist()
    padded = []
    for part in parts:
        missing = [0 if d == rows else longest[d] - part.shape[d] for d in range(part.dim())]
        padding = [n for d in reversed(range(part.dim())) for n in (0, missing[d])]
        padded.append(F.pad(part, padding) if any(missing) else part)
    return torch.cat(padded, rows)
