"""Files of a user's own with defaults alone: `regardant train TASK --set data.source=FILE` compared with the recipes.

    make bench-own-files                         all six tasks: five minutes
    make bench-own-files BENCH="classification"

Files of the recipes' data are written into runs/bench/own-files as a user would have them. The model trains with all
settings but the files at their defaults; only forecasting also gets the recipe's splits. It is tested on the recipe's
test items; the recipe's mean is that of benchmarks/results/families, so `make bench-families` comes first. If the
budget is chosen in minutes, training ends by the clock, whatever was planned: so the updates made are compared with
those announced, and the announced seconds with the wall time of the whole command. The bar "error of the N seconds
announced" of earlier results is of the seconds of training alone. The result is benchmarks/results/own-files/TASK.json,
and the end of docs/results.md.
"""

import csv
import gzip
import json
import os
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regardant.data.text_files import read_lines

from . import families_page
from .bars import bar, conclude, lines
from .families import trained
from .records import RESULTS, ROOT, Measurement, arguments, set_options

FILES = ROOT / "runs" / "bench" / "own-files"

LEAST_SHARE = 0.97
"""Least share of the tuned recipe's score."""

UPDATES_ERROR = 0.3
"""Largest difference of the updates that were made from those announced, as a share of the latter."""

WALL_ERROR = 0.3
"""Largest difference of the wall time of the command from the seconds announced, as a share of the latter. Starting and
measuring take some five seconds, which are not announced."""

Made = tuple[list[str], list[str]]
"""Overrides of the training, and options of `evaluate`."""


@dataclass(frozen=True)
class Task:
    """A task, and the recipe that it is compared with."""

    recipe: str
    score: str
    make: Callable[[Path, Path], Made]
    """Function that writes the files into the second folder from the data in the first."""
    lower_is_better: bool = False


def texts(data: Path, folder: Path) -> Made:
    """Write tables of film reviews with column names."""
    for name in ("train", "dev"):
        rows = (line.rsplit("\t", 1) for line in read_lines(data / "sst2" / f"{name}.tsv"))
        write_table(folder / f"{name}.csv", [("review", "sentiment"), *rows])
    return [f"data.source={folder / 'train.csv'}"], ["--data", str(folder / "dev.csv")]


def words(data: Path, folder: Path) -> Made:
    """Write the treebanks, decompressed."""
    for name in ("train", "dev"):
        unpack(data / "ud_english_ewt" / f"{name}.conllu.gz", folder / f"{name}.conllu")
    return [f"data.source={folder / 'train.conllu'}"], ["--data", str(folder / "dev.conllu")]


def series(data: Path, folder: Path) -> Made:
    """Write the table of the recipe. Its splits are set, since values are scaled by those of the training rows."""
    unpack(data / "etth1" / "ETTh1.csv.gz", folder / "series.csv")
    splits = ["data.train=8640", "data.validation=2880", "data.test=2880"]
    return [f"data.source={folder / 'series.csv'}", *splits], []


def images(_: Path, folder: Path) -> Made:
    """Write folders of PNG files of digits."""
    import numpy as np
    from PIL import Image

    from regardant.data.digits import DigitsConfig

    sets = DigitsConfig().read(1)
    for name, items in (("train", [*sets["train"], *sets["validation"]]), ("test", sets["test"])):
        for number, (pixels, label) in enumerate(items):
            file = folder / name / label / f"{number}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray((255 * pixels).round().astype(np.uint8)).save(file)
    return [f"data.source={folder / 'train'}"], ["--data", str(folder / "test")]


def recordings(data: Path, folder: Path) -> Made:
    """Write folders of WAV files of digits; those with the indices 5 to 9 are the test set, as in the recipe."""
    with zipfile.ZipFile(data / "free_spoken_digits" / "train.zip") as archive:
        for name in archive.namelist():
            if name.endswith(".wav"):
                label, _, index = Path(name).stem.split("_")
                file = folder / ("test" if 5 <= int(index) < 10 else "train") / label / Path(name).name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(archive.read(name))
    return [f"data.source={folder / 'train'}"], ["--data", str(folder / "test")]


def graph(data: Path, folder: Path) -> Made:
    """Write the tables of nodes and edges."""
    for name, file in (("nodes", "nodes.tsv.gz"), ("edges", "edges.tsv")):
        write_table(folder / f"{name}.csv", (row.split("\t") for row in read_lines(data / "cora" / file)))
    return [f"data.nodes={folder / 'nodes.csv'}", f"data.edges={folder / 'edges.csv'}"], []


TASKS = {
    "classification": Task("sst2", "accuracy", texts),
    "tagging": Task("ud-tagging", "accuracy", words),
    "forecasting": Task("etth1-forecast", "mse", series, lower_is_better=True),
    "image_classification": Task("digits-vit", "accuracy", images),
    "sound_classification": Task("spoken-digits", "accuracy", recordings),
    "node_classification": Task("cora-graph", "accuracy", graph),
}


def main(given: Sequence[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("tasks", nargs="*", choices=[*TASKS, []], help="all by default")
    asked = parser.parse_args(given)
    if "REGARDANT_DATA" not in os.environ:
        sys.exit("this benchmark makes files of the recipes' data: set REGARDANT_DATA to the folder that holds them")
    measurement = Measurement(scratch=asked.scratch)
    names = asked.tasks or list(TASKS)
    if missing := sorted({TASKS[name].recipe for name in names if not result_of(TASKS[name]).is_file()}):
        sys.exit(f'there is no result to compare with: run make bench-families BENCH="{" ".join(missing)}" first')
    bars = []
    for name in names:
        result = measure(name, Path(os.environ["REGARDANT_DATA"]))
        print(*lines(result["bars"]), sep="\n")
        measurement.keep(f"own-files/{name}", result)
        bars += result["bars"]
    if not measurement.scratch:
        families_page.write()
    conclude(bars)


def measure(name: str, data: Path) -> dict[str, Any]:
    """Train on files alone. Compare the score with the recipe's, and updates and time with those announced."""
    task, folder = TASKS[name], FILES / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    settings, options = task.make(data, folder)
    found = trained([name, *set_options(settings)], folder / "run", options)
    kept = json.loads(result_of(task).read_text(encoding="utf-8"))
    tuned = next(iter(kept["models"].values()))["mean"][task.score]
    return {"recipe": task.recipe, "tuned": tuned, **found, "bars": bars_of(task, tuned, found)}


def result_of(task: Task) -> Path:
    """Return the file with the result of a task's recipe."""
    return RESULTS / "families" / f"{task.recipe}.json"


def bars_of(task: Task, tuned: float, found: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the bars of score, updates and time."""
    score = found["scores"][task.score]
    share = tuned / score if task.lower_is_better else score / tuned
    updates, seconds = found["announced_updates"], found["announced_seconds"]
    return [
        bar(f"{task.score} {score:.4f} as a share of {task.recipe}'s {tuned:.4f}", share, LEAST_SHARE, at_least=True),
        bar(f"error of the {updates:,} updates announced", abs(found["updates"] / updates - 1), UPDATES_ERROR),
        bar(
            f"error of the {seconds:.0f} seconds announced, of the wall time of the command",
            abs(found["wall_seconds"] / seconds - 1),
            WALL_ERROR,
        ),
    ]


def write_table(path: Path, rows: Iterable[Sequence[str]]) -> None:
    """Write rows as a CSV file."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)


def unpack(source: Path, target: Path) -> None:
    """Write the decompressed content of a .gz file."""
    with gzip.open(source, "rb") as packed, target.open("wb") as file:
        shutil.copyfileobj(packed, file)


if __name__ == "__main__":
    main()
