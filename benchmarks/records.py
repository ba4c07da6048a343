"""Results of benchmarks: numbers with the machine and the commit they come from, and figures.

A kept result names a commit that holds the code it was measured with, so measuring needs a clean tree.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from .bars import passed

ROOT = Path(__file__).parent.parent
REGARDANT = ROOT / ".venv" / "bin" / "regardant"
"""The command that users type, of the environment that make installs."""
RESULTS = ROOT / "benchmarks" / "results"
FIGURES = ROOT / "docs" / "experiments"
SCRATCH = ROOT / "runs" / "scratch"
"""Results and figures of quick tries and of uncommitted code."""

WRITTEN = ("benchmarks/results", "docs/experiments")
"""Folders that benchmarks write to. Changes there leave the code as it is, so several can be measured in a row."""


DIRTY = "-dirty"
"""End of the name of a commit that does not hold the code that was measured."""

CODE = ("src", "benchmarks", ":(exclude)benchmarks/results", ":(exclude)src/regardant/recipes")
"""Paths of what a benchmark measures. It writes its results, and the first lines of recipes."""

OF_MACHINE = ("cpu", "cores", "instructions", "bfloat16")
"""Properties of a machine on which equal minutes depend. A CPU's name does not tell whether it has bfloat16."""


class Measurement:
    """One run of a benchmark: the commit it measures, and the folders for its results.

    Without `scratch` it exits, before anything is measured, if the tree has uncommitted changes.
    """

    def __init__(self, *, scratch: bool) -> None:
        changed = uncommitted()
        if changed and not scratch:
            sys.exit(
                f"uncommitted changes in {changed[0]}{f' and {len(changed) - 1} more' * (len(changed) > 1)}: a result "
                f"names the commit it is measured at, so commit or stash them, or use --scratch, which writes to "
                f"{_relative(SCRATCH)}"
            )
        self.scratch = scratch
        self._commit = commit() + DIRTY * bool(changed)
        self.begun = time.perf_counter()

    @property
    def commit(self) -> str:
        """The commit that is measured, with "-dirty" at its end if it does not hold the code, or no longer does."""
        if not self._commit.endswith(DIRTY) and _git("diff", "--name-only", self._commit, "--", *CODE).strip():
            self._commit += DIRTY
        return self._commit

    def path(self, name: str) -> Path:
        """Return the file of a result."""
        return (SCRATCH if self.scratch else RESULTS) / f"{name}.json"

    def keep(self, name: str, result: dict[str, Any]) -> None:
        """Write a result with its machine and commit and, if it has bars, whether all are met. Print its path."""
        judged = {"pass": passed(result["bars"])} if result.get("bars") else {}
        _write(
            self.path(name),
            json.dumps({**result, **judged, "machine": machine(), "commit": self.commit}, indent=2) + "\n",
        )

    def draw(self, name: str, chart: str) -> None:
        """Write a chart as NAME.svg and print its path."""
        draw(name, chart, SCRATCH if self.scratch else FIGURES)


def draw(name: str, chart: str, folder: Path = FIGURES) -> None:
    """Write a chart as NAME.svg of a folder and print its path."""
    from regardant.pictures import alone

    _write(folder / f"{name}.svg", alone(chart))


def set_options(fields: Iterable[str]) -> list[str]:
    """Return the options of a command that set recipe keys, as `training.max_updates=2`."""
    return [word for field in fields for word in ("--set", field)]


def arguments(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options that all benchmarks have. `doc` is the module's docstring."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--scratch",
        action="store_true",
        help=f"measure uncommitted code, too, and write to {_relative(SCRATCH)} in place of {WRITTEN[0]}",
    )
    return parser


def uncommitted() -> list[str]:
    """Return the changed files that may change a measurement: tracked ones, and new ones in src and benchmarks."""
    kept_out = [f":(exclude){folder}" for folder in WRITTEN]
    status = _git("status", "--porcelain", "--untracked-files=all", "--", ".", *kept_out).splitlines()
    changes = [(line[:2], line[3:]) for line in status]
    return [path for state, path in changes if state != "??" or path.startswith(("src/", "benchmarks/"))]


def commit() -> str:
    """Return the abbreviated hash of the commit that is checked out."""
    return _git("rev-parse", "--short", "HEAD").strip()


def commit_of(checkout: Path) -> str | None:
    """Return the commit that is checked out in a folder, None if the folder is no git checkout."""
    if not (checkout / ".git").exists():  # git would answer for a repository around the folder
        return None
    done = subprocess.run(["git", "-C", checkout, "rev-parse", "HEAD"], capture_output=True, text=True)
    return None if done.returncode else done.stdout.strip()


def versions(*packages: str) -> dict[str, str | None]:
    """Return the versions of packages, None for one that is not installed."""
    return {package: _version(package) for package in packages}


def machine() -> dict[str, Any]:
    """Return the CPU, the accelerator and the versions that results depend on."""
    import torch

    listed = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    core = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in listed)}
    # Processors with one name may differ: one may multiply twice as fast as another.
    kind = "".join(f", {name.removeprefix('cpu ')} {core[name]}" for name in ("cpu family", "model") if name in core)
    return {
        "cpu": core.get("model name", platform.processor()) + kind,
        "cores": os.cpu_count(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "bfloat16": "avx512_bf16" in core.get("flags", "").split(),
        "accelerator": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
    }


def kind_of(measured: dict[str, Any]) -> tuple[Any, ...]:
    """Return the properties of a machine of `machine` that the numbers of two machines must share to be compared."""
    return tuple(measured[part] for part in OF_MACHINE)


def precisions() -> tuple[str, ...]:
    """Return the precisions to measure on this CPU.

    Without instructions for bfloat16, large products of torch in it take hundreds of times as long as in float32.
    """
    import torch

    from regardant.training.devices import multiplies_bfloat16

    return ("float32", "bfloat16") if multiplies_bfloat16(torch.device("cpu")) else ("float32",)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _git(*words: str) -> str:
    try:
        return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        sys.exit(f"{ROOT} is not a git checkout: results name the commit they are measured at, so clone the repository")


def _write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    print(_relative(path))


def _relative(path: Path) -> Path:
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
