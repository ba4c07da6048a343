"""The page docs/results.md: a table for each measured family, written from results alone."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import bars
from .headers import mean_and_deviation, words
from .records import RESULTS, ROOT

PAGE = ROOT / "docs" / "results.md"
FOLDER, OWN_FILES = RESULTS / "families", RESULTS / "own-files"

TOP = """# Results by recipe

`make bench-families` writes this page: the model of each recipe beside the simple models that one would try first, on
the same data. Numbers are means over seeds, ± standard deviation, with the weights that were best on validation data;
minutes are the wall time of a training. The results in `benchmarks/results/families` have every run, its command, the
machine and the commit.
"""

OWN_FILES_TOP = """## Files of your own

`make bench-own-files`: `regardant train TASK --set data.source=FILE` on the data of a recipe, with all else at its
defaults, beside the mean of that recipe; a graph has two files, and forecasting is given the recipe's splits. The
tables also compare the training with what it announced. "Error of the N seconds announced", of earlier results, is of
the time of training alone, which ends by the clock where the budget is in minutes; the benchmark now compares the
updates, and the wall time of the whole command.
"""


def write() -> None:
    """Write the page from all kept results."""
    PAGE.write_text(page(kept(), kept(OWN_FILES)), encoding="utf-8")


def kept(folder: Path = FOLDER) -> dict[str, dict[str, Any]]:
    """Return the kept results by recipe or task, in the order of their names."""
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))}


def page(results: Mapping[str, Mapping[str, Any]], own_files: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the page, from results by recipe and from results of a user's own files by task."""
    parts = [TOP]
    for result in results.values():
        measured = _measured(result, _precisions(result))
        if result.get("disturbed"):
            measured += " Minutes were taken beside other programs: they are upper limits."
        judged = ["", *bars.markdown(result["bars"])] if result["bars"] else []
        parts.append("\n".join([*section(result), *judged, "", measured, ""]))
    if own_files:
        parts.append("\n".join(_of_own_files(own_files)))
    return "\n".join(parts)


def _measured(result: Mapping[str, Any], precisions: str = "") -> str:
    cpu = result["machine"]
    return f"Measured on {cpu['cores']} cores of {cpu['cpu']} at commit {result['commit']}{precisions}."


def _precisions(result: Mapping[str, Any]) -> str:
    runs = [run for model in result["models"].values() for run in model["runs"]]
    chosen = sorted({run["decided"]["precision"] for run in runs})
    return f", in {chosen[0]}" if len(chosen) == 1 else f", in {' or '.join(chosen)}, as each run chose"


def _of_own_files(results: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the section on tasks that are trained on a user's own file with defaults."""
    yield OWN_FILES_TOP
    named = [{**one, "bar": f"{task}: {one['bar']}"} for task, result in results.items() for one in result["bars"]]
    yield from bars.markdown(named)
    yield ""
    yield from dict.fromkeys(_measured(result) for result in results.values())
    yield ""


def section(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield the heading and the table of a family."""
    scores = result["scores"]
    yield f"## {result['recipe']}"
    yield ""
    yield f"Tested on {result['test']}."
    if result["published"]:
        yield f"Published: {result['published']}."
    yield ""
    yield f"| model | {' | '.join(map(words, scores))} | parameters | minutes | seeds |"
    yield "|---" * (len(scores) + 4) + "|"
    for name, model in result["models"].items():
        cells = [mean_and_deviation(model, score) for score in scores]
        runs = model["runs"]
        cells += [parameters_of(runs), f"{model['mean']['minutes']:.1f}", str(len(runs))]
        yield f"| {' | '.join([name, *cells])} |"
    for name, found in result["baselines"].items():
        cells = [f"{found[score]:.4f}" if score in found else "-" for score in scores]
        yield f"| {' | '.join([name, *cells, '-', '-', '-'])} |"


def parameters_of(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return the number of parameters of a model, or its range if each seed has a vocabulary of its own."""
    counts = [run["parameters"] for run in runs]
    least, most = min(counts), max(counts)
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"
