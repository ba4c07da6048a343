"""Loop of a peer that translates: answers have the seconds and the ids of every translation. Standard library only."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from serve import Clock, Driver

Translate = Callable[[list[list[int]], dict[str, Any]], list[list[int]]]
"""Function from the sources of one batch, with EOS, and the driver's request to targets without SOS and EOS."""


def answer_requests(driver: Driver, translate: Translate) -> None:
    """Answer requests {"batches": indices, "beam_size": N}, with other fields for the peer."""
    sources = sentences()
    for request in driver.requests():
        clock = Clock()
        written = [translate([sources[index] for index in batch], request) for batch in request["batches"]]
        taken = clock.read()
        order = [index for batch in request["batches"] for index in batch]
        targets = [ids for batch in written for ids in batch]
        driver.answer(
            targets=dict(zip(order, targets, strict=True)),
            tokens=sum(len(ids) + 1 for ids in targets),  # with EOS
            sentences=len(targets),
            **taken,
        )


def folder() -> Path:
    """Return the run folder of the model."""
    return Path(sys.argv[1])


def sentences() -> list[list[int]]:
    """Return the ids of the sources to translate."""
    found: list[list[int]] = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))["sources"]
    return found


def most_tokens() -> int:
    """Return the largest number of tokens of a target."""
    found: int = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))["most_tokens"]
    return found


def shape() -> dict[str, Any]:
    """Return the shape of the model."""
    found: dict[str, Any] = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))["shape"]
    return found
