"""Comparison of two or more runs in words: which is better, how sure that is, and which settings differ."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query

from regardant import run
from regardant.config.differences import differences
from regardant.config.run_files import METRICS
from regardant.errors import RegardantError
from regardant.run import Record
from regardant.studio.catalogue import Catalogue
from regardant.training.events import last_events

MOST_RUNS = 8
"""Largest number of runs compared at once."""

SIGNIFICANCE_LEVEL = 0.05
"""p-value below which a difference counts as significant."""


def routes(catalogue: Catalogue) -> APIRouter:
    """Return `/api/verdict`."""
    router = APIRouter(prefix="/api")

    @router.get("/verdict")
    def verdict(runs: Annotated[list[str], Query(max_length=MOST_RUNS)]) -> dict[str, Any]:
        return compared(catalogue, runs)

    return router


def compared(catalogue: Catalogue, names: Sequence[str]) -> dict[str, Any]:
    """Return sentences that compare each run with the first, and the settings that differ, by run.

    Raises UnknownRun for a run that is not listed, RunError for one that cannot be read.
    """
    records = {name: Record.read(catalogue.folder(name)) for name in names}
    first = records[names[0]].config
    settings = {
        name: differences(first.model_dump(mode="json"), records[name].config.model_dump(mode="json"))
        for name in names[1:]
    }
    if any(one.config.task != first.task for one in records.values()):
        return {"sentences": ["These runs solve different tasks: they have no score in common."], "settings": settings}
    try:
        tested = run.compare([catalogue.folder(name) for name in names]).as_dict()
        sentences = list(_tested(tested, names))
    except RegardantError:  # a run that was not evaluated, or on other data
        return {"sentences": list(_validated(catalogue, records, names)), "settings": settings}
    if not sentences:  # no paired test for this task: advice to evaluate, the second sentence, would not help
        sentences = list(_validated(catalogue, records, names))[:1]
    return {"sentences": sentences, "settings": settings}


def _tested(report: Mapping[str, Any], names: Sequence[str]) -> Iterator[str]:
    tested = {"against_first": "bleu", "accuracy_from_first": report.get("tested")}  # the score of each paired test
    for name, one in zip(names[1:], report["runs"][1:], strict=True):
        for test, scores in one["tests"].items():
            for key, score in tested.items():
                if found := scores.get(key):
                    yield sentence(name, names[0], f"{score} on {test}", found)


def sentence(name: str, first: str, score: str, found: Mapping[str, Any]) -> str:
    """Return a difference of two runs with its uncertainty, in words."""
    difference, (low, high), p = found["difference"], found["interval"], found["p"]
    digits = 2 if max(abs(low), abs(high)) >= 1 else 3
    way = "above" if difference > 0 else "below" if difference < 0 else "from"
    sure = "significant at the 5% level" if p < SIGNIFICANCE_LEVEL else "not significant at the 5% level"
    return (
        f"{name} is {abs(difference):.{digits}f} {way} {first} in {score} "
        f"(95% interval {low:+.{digits}f} to {high:+.{digits}f}, p {p:.3f}): {sure}."
    )


def _validated(catalogue: Catalogue, records: Mapping[str, Record], names: Sequence[str]) -> Iterator[str]:
    metric = records[names[0]].config.metric
    best = _values(catalogue, names, f"best_{metric.name}")
    known = best if len(best) == len(names) else _values(catalogue, names, metric.name)
    which = "Best" if known == best else "Latest"
    if len(known) < 2:
        yield "Not enough of these runs were validated to compare them yet."
        return
    order = sorted(known, key=lambda name: known[name], reverse=metric.higher_is_better)
    numbers = ", ".join(f"{name} {known[name]:.4g}" for name in order)
    yield f"{which} {metric.name.replace('_', ' ')} on validation data: {numbers}."
    commands = " && ".join(f"regardant evaluate {name}" for name in names)
    yield f"One score per run does not show whether the order is significant. For a paired test, run: {commands}"


def _values(catalogue: Catalogue, names: Sequence[str], number: str) -> dict[str, float]:
    """Return a number of the last validation of each run that has it."""
    validated = {
        name: last_events(catalogue.folder(name) / METRICS).get("validation", {}).get(number) for name in names
    }
    return {name: float(value) for name, value in validated.items() if value is not None}
