"""Plant the listed bugs one at a time and run the test that has to catch each: `make mutants`.

A bug is planted in a copy of the package; the tests of this working tree import the copy. First all named tests run on
an unchanged copy, where they have to pass. Exit status 1 if a bug survives, or its text or its test is gone. A bug
whose test is skipped on this machine is not tried.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from .planted import PACKAGE, ROOT, Mutant, read_mutants

TIMEOUT = 300
"""Seconds for one test with a bug planted."""


@dataclass(frozen=True)
class Outcome:
    """The result of one planted bug."""

    mutant: Mutant
    caught: bool | None
    """None: the test was skipped."""
    file: str
    """The changed file, relative to the package."""
    detail: str
    """The failed test, or the reason why none failed."""
    seconds: float


def main() -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help="plant the bugs of this room, such as attention")
    asked = parser.parse_args().rooms
    mutants = read_mutants()
    rooms = sorted({mutant.room for mutant in mutants})
    if unknown := sorted(set(asked) - set(rooms)):
        print(f"no bugs are listed for {', '.join(unknown)}: choose from {', '.join(rooms)}")
        return 2
    chosen = [mutant for mutant in mutants if not asked or mutant.room in asked]
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        original = Path(folder) / "original"
        shutil.copytree(PACKAGE, original / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
        passed = _pytest(original, ["-n", str(_processes()), *sorted({mutant.node for mutant in chosen})])
        if passed.returncode:
            print(passed.stdout, passed.stderr, "tests fail without a planted bug: fix them first", sep="\n")
            return 1
        with ThreadPoolExecutor(_processes()) as pool:
            outcomes = [_show(outcome) for outcome in pool.map(lambda mutant: _try(mutant, original), chosen)]
    _show_table(outcomes)
    survivors = [outcome for outcome in outcomes if outcome.caught is False]
    caught = sum(outcome.caught is True for outcome in outcomes)
    print(f"{caught} of {len(chosen)} caught in {time.monotonic() - began:,.0f} s")
    for outcome in survivors:
        print(f"SURVIVED ({outcome.mutant.room}) {outcome.mutant.bug}\n{outcome.detail}")
    return 1 if survivors else 0


def _try(mutant: Mutant, original: Path) -> Outcome:
    began, file = time.monotonic(), ""
    with tempfile.TemporaryDirectory(dir=original.parent) as folder:
        shutil.copytree(original, folder, dirs_exist_ok=True)  # with the bytecode of the first run
        package = Path(folder) / PACKAGE.name
        try:
            file = str(mutant.plant(package).relative_to(package))
            done = _pytest(Path(folder), ["-x", mutant.node], timeout=TIMEOUT)
        except (ValueError, subprocess.TimeoutExpired) as error:
            return Outcome(mutant, False, file, str(error), time.monotonic() - began)
    lines = done.stdout.splitlines()
    failed = [line.removeprefix("FAILED ").partition(" - ")[0] for line in lines if line.startswith("FAILED ")]
    caught = None if _all_were_skipped(done) else done.returncode == 1 and bool(failed)
    detail = failed[0] if caught else f"{mutant.node} ended with {done.returncode}:\n{done.stdout[-2000:]}"
    return Outcome(mutant, caught, file, detail, time.monotonic() - began)


def _all_were_skipped(done: subprocess.CompletedProcess[str]) -> bool:
    summary = done.stdout.strip().rpartition("\n")[2]
    return done.returncode == 0 and " skipped" in summary and " passed" not in summary


def _pytest(path: Path, arguments: Sequence[str], *, timeout: float | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--tb=line", "-rf", *arguments]
    environment = os.environ | {"PYTHONPATH": str(path), "COLUMNS": "400"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=timeout)


def _processes() -> int:
    return os.cpu_count() or 1


def _show(outcome: Outcome) -> Outcome:
    word = {True: "caught", False: "SURVIVED", None: "not tried"}[outcome.caught]
    print(f"{word:9}  {outcome.file}: {outcome.mutant.bug}\n           {outcome.detail}", flush=True)
    return outcome


def _show_table(outcomes: Sequence[Outcome]) -> None:
    planted = Counter(outcome.mutant.room for outcome in outcomes)
    caught = Counter(outcome.mutant.room for outcome in outcomes if outcome.caught)
    print(f"\n{'room':12}  {'planted':>7}  {'caught':>6}  {'seconds':>7}")
    for room, count in planted.items():
        seconds = sum(outcome.seconds for outcome in outcomes if outcome.mutant.room == room)
        print(f"{room:12}  {count:7}  {caught[room]:6}  {seconds:7.0f}")


if __name__ == "__main__":
    sys.exit(main())
