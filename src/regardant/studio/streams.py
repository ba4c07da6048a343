"""What passes the layers: at every place a vector a token, what each sublayer writes, what a normalisation makes of it,
states and gates of recurrent cells.

Shape legend: T tokens, M numbers of a vector, R of a state.
"""

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from regardant.data.vocabulary import SOS, SPECIAL_TOKENS
from regardant.errors import RunError
from regardant.inspection.calls import GATES
from regardant.inspection.places import kind_of
from regardant.studio.numbers import plain
from regardant.studio.opened import Asked
from regardant.tasks.translation.trained import TrainedTranslator

OF_STREAMS = frozenset({"written", "before", "after", "state", *(gate for gates in GATES.values() for gate in gates)})
"""Quantities that are a vector a token."""

DIRECTIONS = ("forwards", "backwards")
DIGITS = 4


class AskedPlace(Asked):
    """Whose vectors are shown."""

    place: str | None = None
    """The name of a module; the last that writes, where none is given."""


def streams(trained: TrainedTranslator, asked: AskedPlace) -> dict[str, Any]:
    """How long the vectors of every place are, and all numbers of one. Raises RunError where there is no such place."""
    found = trained.inspect(asked.text, asked.target)
    quantities: dict[str, list[str]] = {}
    for name in found.records:
        place, _, quantity = name.rpartition(".")
        if quantity in OF_STREAMS:
            quantities.setdefault(place, []).append(quantity)
    if not quantities:
        raise RunError("this model has no place where a vector a token could be seen")
    chosen = asked.place or list(quantities)[-1]
    if chosen not in quantities:
        raise RunError(f"this model has no place {chosen!r}: choose one of {', '.join(quantities)}")
    taken_in = [SPECIAL_TOKENS[SOS], *found.written.tokens[:-1]]
    read: dict[str, Any] = {"name": "Source", "tokens": found.read.tokens, "places": []}
    written: dict[str, Any] = {"name": "Target", "tokens": taken_in, "places": []}
    for place, (first, *_) in quantities.items():
        lengths = found.records.whole(f"{place}.{first}")[0].norm(dim=-1)
        lengths = lengths.mean(0) if lengths.dim() == 2 else lengths  # of both directions
        side = read if _reads(place) else written
        side["places"].append({"place": place, "quantity": first, "lengths": plain(lengths, DIGITS)})
    vectors = {
        name: plain(values, DIGITS)
        for quantity in quantities[chosen]
        for name, values in _by_direction(quantity, found.records.whole(f"{chosen}.{quantity}")[0])
    }
    return {
        "source": found.source,
        "target": found.target,
        "sides": [side for side in (read, written) if side["places"]],
        "place": chosen,
        "tokens": (read if _reads(chosen) else written)["tokens"],
        "vectors": vectors,
    }


def _reads(place: str) -> bool:
    """Whether what passes there is of the source."""
    return kind_of(place).startswith(("encoder", "source"))


def _by_direction(quantity: str, values: Tensor) -> Iterator[tuple[str, Tensor]]:
    """[T, M] by name; of a cell, [directions, T, R], each direction by its own."""
    if values.dim() == 2:
        yield quantity, values
    elif len(values) == 1:
        yield quantity, values[0]
    else:
        yield from ((f"{quantity}, {way}", one) for way, one in zip(DIRECTIONS, values, strict=True))
