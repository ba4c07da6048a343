"""The ladder on the embedded grammar: all rungs, two minutes each, without a download.

    make ladder-demo                                 all: some 35 minutes
    make ladder-demo RUNG="gru-fixed transformer"    these alone

Runs are kept in runs/ladder-demo; a run that is finished is not trained again, so an interrupted ladder can be
continued. The comparison of all is runs/ladder-demo/comparison.html. Two minutes are too short for a measurement, so no
result is written.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from regardant import config
from regardant.run import compare, load, train
from regardant.studies.lectures import GRAMMAR
from regardant.tasks import load_recipe

FIRST, MINUTES = "gru-fixed", 2.0
FOLDER = Path("runs/ladder-demo")


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rungs", nargs="*", help="rungs without `ladder/`; default: all")
    parser.add_argument("--minutes", type=float, default=MINUTES, help=f"of training, each [{MINUTES:g}]")
    parser.add_argument("--folder", type=Path, default=FOLDER, help=f"of the runs [{FOLDER}]")
    asked = parser.parse_args(given)
    known = rungs()
    if unknown := [rung for rung in asked.rungs if rung not in known]:
        sys.exit(f"there is no rung {', '.join(unknown)}: take of {', '.join(known)}")
    folders = [climb(rung, asked.folder / rung, asked.minutes) for rung in asked.rungs or known]
    if len(folders) > 1:
        page = asked.folder / "comparison.html"
        print("\n".join(compare(folders, page).lines()))
        print(f"open {page}")


def rungs() -> list[str]:
    """Return the rungs, the one without attention first."""
    found = sorted(name.removeprefix("ladder/") for name in config.recipes() if name.startswith("ladder/"))
    return [FIRST, *(rung for rung in found if rung != FIRST)]


def climb(rung: str, out: Path, minutes: float) -> Path:
    """Train and evaluate one rung; return its run folder."""
    recipe = f"ladder/{rung}"
    settings = load_recipe(config.recipe(recipe), [*GRAMMAR, f"training.max_minutes={minutes}"], recipe)
    if not train(settings, out).finished:
        sys.exit(f"stopped in {out}; the same command continues")
    if not (out / "evaluation").is_dir():
        load(out).evaluate()
    return out


if __name__ == "__main__":
    main()
