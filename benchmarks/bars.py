"""Bars: what was promised beside what was measured, and numbers as people read them."""

from collections.abc import Iterable, Iterator
from typing import Any

WORDS = {
    False: {True: "pass", False: "FAIL", None: "not measured"},
    True: {True: "met", False: "not met", None: "not measured"},
}
"""By whether it is a goal, which nobody promised, and by whether it holds."""


def bar(name: str, value: float | None, limit: float, *, at_least: bool = False, goal: bool = False) -> dict[str, Any]:
    """One promise. A value of None was not measured."""
    kept = None if value is None else value >= limit if at_least else value <= limit
    return {
        "bar": name,
        "value": rounded(value),
        "limit": limit,
        "at_least": at_least,
        **({"goal": True} if goal else {}),
        "pass": kept,
    }


def told(bars: Iterable[dict[str, Any]]) -> Iterator[str]:
    """A line a bar."""
    for one in bars:
        sign = ">=" if one["at_least"] else "<="
        word = WORDS[one.get("goal", False)][one["pass"]]
        yield f"{word:12}  {shown(one['value']):>7} {sign} {one['limit']:<5} {one['bar']}"


def rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if value < 100 else f"{value:,.0f}"
