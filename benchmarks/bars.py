"""Bars: limits that measurements must meet. This module alone decides which of them are met.

A bar is a promise, and a benchmark whose bar is missed fails. A goal is reported in the same words and fails nothing.
"""

import sys
from collections.abc import Iterable, Iterator
from typing import Any

PASS, MISSED, NOT_MEASURED = "pass", "MISSED", "not measured"


def bar(name: str, value: float | None, limit: float, *, at_least: bool = False, goal: bool = False) -> dict[str, Any]:
    """Return a bar as result files hold it, judged by the value before it is rounded. None was not measured.

    The file holds the rounded value, unless that is on the other side of the limit.
    """
    met = _is_met(value, limit, at_least)
    return {
        "bar": name,
        "value": rounded(value) if _is_met(rounded(value), limit, at_least) == met else value,
        "limit": limit,
        "at_least": at_least,
        **({"goal": True} if goal else {}),
        "pass": met,
    }


def verdict(one: dict[str, Any]) -> str:
    """Return PASS, MISSED or NOT_MEASURED, of a bar or a goal."""
    return {True: PASS, False: MISSED, None: NOT_MEASURED}[one["pass"]]


def missed(bars: Iterable[dict[str, Any]]) -> list[str]:
    """Return the names of the bars that are missed, without goals."""
    return [one["bar"] for one in bars if verdict(one) == MISSED and not one.get("goal")]


def passed(bars: Iterable[dict[str, Any]]) -> bool | None:
    """Return False if any bar is missed, None if any other is not measured or there is none. Goals do not count."""
    verdicts = {verdict(one) for one in bars if not one.get("goal")}
    return False if MISSED in verdicts else True if verdicts == {PASS} else None


def conclude(bars: list[dict[str, Any]]) -> None:
    """Exit with code 1 and the names of the bars that are missed, if any."""
    if names := missed(bars):
        sys.exit(f"{MISSED}: {len(names)} of {sum(not one.get('goal') for one in bars)} bars: {'; '.join(names)}")


def lines(bars: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Format one line for each bar, for the terminal."""
    for one in bars:
        goal = " (goal)" if one.get("goal") else ""
        yield f"{verdict(one):12}  {_value(one):>7} {_sign(one)} {one['limit']:<5} {one['bar']}{goal}"


def markdown(bars: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Format the table of bars that pages show."""
    yield "| bar | measured | limit | |"
    yield "|---|---|---|---|"
    for one in bars:
        word = f"**{MISSED}**" if verdict(one) == MISSED else verdict(one)
        goal = "goal: " if one.get("goal") else ""
        yield f"| {goal}{one['bar']} | {_value(one)} | {_sign(one)} {one['limit']} | {word} |"


def rounded(value: float | None) -> float | None:
    """Return a number with four significant digits, as result files hold it."""
    return None if value is None else float(f"{value:.4g}")


def shown(value: float | None) -> str:
    """Return a number with three significant digits, as people read it."""
    return "-" if value is None else f"{value:.3g}" if value < 100 else f"{value:,.0f}"


def _is_met(value: float | None, limit: float, at_least: bool) -> bool | None:
    return None if value is None else value >= limit if at_least else value <= limit


def _value(one: dict[str, Any]) -> str:
    """Return the value with three digits, or with all where three would be on the other side of the limit."""
    text = shown(one["value"])
    if one["value"] is None:
        return text
    is_met = _is_met(float(text.replace(",", "")), one["limit"], one["at_least"])
    return text if is_met == one["pass"] else str(one["value"])


def _sign(one: dict[str, Any]) -> str:
    return ">=" if one["at_least"] else "<="
