"""Events of a training, the lines of metrics.jsonl, read by every tool alike.

A line that is no event is skipped: one cut short by a kill, one of other text, one with text in place of a number.
Numbers that JSON does not have (NaN, Infinity) become null, as the reporter writes them.
"""

import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

OF_NUMBERS = ("train", "validation")
"""Names of events whose values are numbers alone."""

LARGEST = 2**63
"""Bound of an integer. A larger one is damage, and may be too large for a float."""

LAST_EVENTS = 65_536
"""Bytes at the end of a file in which the last events are looked for first."""


def read_events(path: Path) -> list[dict[str, Any]]:
    """Return the events of a metrics.jsonl; none if there is no file."""
    return parse_events(path.read_bytes().split(b"\n")) if path.is_file() else []


def last_events(path: Path) -> dict[str, dict[str, Any]]:
    """Return the last event of each name of OF_NUMBERS, and of others near the end. Empty for a run without events."""
    if not path.is_file():
        return {}
    found: dict[str, dict[str, Any]] = {}
    with path.open("rb") as file:
        size, read = file.seek(0, os.SEEK_END), LAST_EVENTS
        while not found.keys() >= {*OF_NUMBERS}:
            file.seek(max(0, size - read))
            found = {event["event"]: event for event in parse_events(file.read().split(b"\n"))}
            if read >= size:
                break
            read *= 4
    return found


def parse_events(lines: Iterable[bytes]) -> list[dict[str, Any]]:
    """Return the events among lines, in their order."""
    return [event for line in lines if (event := _parsed(line)) is not None]


def named(events: Iterable[Mapping[str, Any]], name: str, *numbers: str) -> list[Mapping[str, Any]]:
    """Return the events called `name` that have a value for each of `numbers`."""
    return [
        event for event in events if event["event"] == name and all(event.get(number) is not None for number in numbers)
    ]


def peak_bytes(updates: Iterable[Mapping[str, Any]]) -> int:
    """Return the peak memory of a training in bytes, given its `train` events, at least one.

    Runs of earlier versions have the memory between updates alone, which is less.
    """
    return max(int(event.get("memory_peak_bytes") or event["memory_bytes"]) for event in updates)


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        event = json.loads(line.decode(), parse_constant=lambda name: None, parse_float=_finite)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and _is_whole(event) else None


def _finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


def _is_whole(event: dict[str, Any]) -> bool:
    name = event.get("event")
    if not isinstance(name, str) or type(event.get("update")) is not int or event.get("time") is None:
        return False
    fields = event.keys() - {"event"} if name in OF_NUMBERS else ("update", "time")
    return all(event[field] is None or _is_number(event[field]) for field in fields)


def _is_number(value: Any) -> bool:
    return type(value) is float or (type(value) is int and abs(value) < LARGEST)
