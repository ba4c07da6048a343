"""What differs between two configurations, as plain values, by dotted path."""

from collections.abc import Set
from typing import Any


def differences(before: Any, now: Any, *, but: Set[str] = frozenset(), path: str = "") -> list[str]:
    """A phrase for each value that differs, those at the paths `but` aside."""
    if isinstance(before, dict) and isinstance(now, dict):
        return [
            found
            for name in sorted(before.keys() | now.keys())
            for found in differences(
                before.get(name), now.get(name), but=but, path=f"{path}.{name}" if path else str(name)
            )
        ]
    return [] if before == now or path in but else [f"{path} was {before!r}, is {now!r}"]


def as_told(whole: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """Of a configuration what another one tells too."""
    return {
        name: as_told(kept, told) if isinstance(told, dict) and isinstance(kept, dict) else kept
        for name, told in part.items()
        for kept in [whole.get(name)]
    }
