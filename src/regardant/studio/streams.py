"""Vectors of each token at every place: outputs of sublayers and normalisations, and states and gates of recurrent
cells.

Shape legend: T tokens, M numbers of a vector, R of a state.
"""

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from regardant.errors import RunError
from regardant.inspection.places import GATES
from regardant.studio.numbers import plain
from regardant.studio.open_runs import Asked
from regardant.tasks.base import Trained
from regardant.tasks.inspection import Inspection

OF_STREAMS = frozenset({"written", "before", "after", "state", *(gate for gates in GATES.values() for gate in gates)})
"""Quantities with one vector per token."""

DIRECTIONS = ("forwards", "backwards")
DIGITS = 4


class AskedPlace(Asked):
    """Request for the vectors at a place."""

    place: str | None = None
    """Name of a module. None: the last one with a vector per token."""


def streams(trained: Trained, asked: AskedPlace) -> dict[str, Any]:
    """Return the norms of the vectors at every place, and all numbers of one. Raises RunError for an unknown place."""
    found = trained.inspect(asked.text, **asked.options)
    quantities: dict[str, list[str]] = {}
    for name in found.records:
        place, _, quantity = name.rpartition(".")
        if quantity in OF_STREAMS:
            quantities.setdefault(place, []).append(quantity)
    quantities = {place: names for place, names in quantities.items() if _of_elements(found, place, names[0])}
    if not quantities:
        raise RunError(f"{asked.run} has no place with a vector for each element: see Shapes")
    chosen = asked.place or list(quantities)[-1]
    if chosen not in quantities:
        raise RunError(f"this model has no place {chosen!r}: choose one of {', '.join(quantities)}")
    sides: dict[str, dict[str, Any]] = {
        name: {"name": name.capitalize(), "tokens": one.labels, "places": []} for name, one in found.inputs.items()
    }
    for place, (first, *_) in quantities.items():
        lengths = found.records.whole(f"{place}.{first}")[0].norm(dim=-1)
        lengths = lengths.mean(0) if lengths.dim() == 2 else lengths  # of both directions
        shown = {"place": place, "quantity": first, "lengths": plain(lengths, DIGITS)}
        sides[input_of(found, place)]["places"].append(shown)
    vectors = {
        name: plain(values, DIGITS)
        for quantity in quantities[chosen]
        for name, values in _by_direction(quantity, found.records.whole(f"{chosen}.{quantity}")[0])
    }
    return {
        "item": found.item,
        "answer": found.answer,
        "sides": [side for side in sides.values() if side["places"]],
        "place": chosen,
        "tokens": sides[input_of(found, chosen)]["tokens"],
        "vectors": vectors,
    }


def input_of(found: Inspection, place: str) -> str:
    """Return the input whose elements pass a place. The first part of a place's name is an input or a stack.

    A stack reads the input that gives the queries of its attention. A stack without attention, such as a recurrent
    encoder, reads an input that gives no queries.
    """
    part = place.partition(".")[0]
    if part in found.inputs:
        return part
    for kind, sides in found.sides.items():
        if kind.partition(".")[0] == part:
            return sides.queries
    asking = {sides.queries for sides in found.sides.values()}
    return next((name for name in found.inputs if name not in asking), next(iter(found.inputs)))


def _of_elements(found: Inspection, place: str, quantity: str) -> bool:
    """Return whether a place has a vector for each element of its input, not only for a part of them."""
    count: int = found.records.whole(f"{place}.{quantity}")[0].shape[-2]
    return count == len(found.inputs[input_of(found, place)].labels)


def _by_direction(quantity: str, values: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Yield name and vectors of values [T, M], or of each direction of a cell's values [directions, T, R]."""
    if values.dim() == 2:
        yield quantity, values
    elif len(values) == 1:
        yield quantity, values[0]
    else:
        yield from ((f"{quantity}, {way}", one) for way, one in zip(DIRECTIONS, values, strict=True))
