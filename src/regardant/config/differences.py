"""Differences between two configurations, given as plain values, by dotted path."""

from collections.abc import Set
from typing import Any


def differences(before: Any, now: Any, *, but: Set[str] = frozenset(), path: str = "") -> list[str]:
    """Return a phrase for each value that differs, except at the paths `but`."""
    if isinstance(before, dict) and isinstance(now, dict):
        return [
            found
            for name in sorted(before.keys() | now.keys())
            for found in differences(
                before.get(name), now.get(name), but=but, path=f"{path}.{name}" if path else str(name)
            )
        ]
    return [] if before == now or path in but else [f"{path} was {before!r}, is {now!r}"]


def restricted(whole: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a configuration at the keys of a part, nested likewise; None for a missing key."""
    return {
        name: restricted(whole[name], below)
        if isinstance(below, dict) and isinstance(whole.get(name), dict)
        else whole.get(name)
        for name, below in part.items()
    }
