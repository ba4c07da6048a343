"""A full disk, a read-only one, and two trainings in one folder, at every phase of a training.

Each trial ends in one line, and nothing is lost: the training is resumed afterwards and ends bit-equal to an
undisturbed one. Disks are file systems in memory, which need the right to mount: `main` runs in a namespace of its own,
where the kernel gives this right to everybody.
"""

import contextlib
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .damage import files_of
from .trainings import OFTEN, command, is_one_line, quietly, weights

SHARES = (0.02, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9)
"""Sizes of a full disk, as shares of what a training needs."""

IN_NAMESPACE = ("unshare", "--map-root-user", "--mount")

FULL = "is the disk full or read-only?"

PHASES: dict[str, Callable[[Path], bool]] = {
    "start": lambda folder: any(lock.stat().st_size for lock in folder.glob(".regardant-lock")),  # names its holder
    "preparation": lambda folder: (folder / "data").is_dir(),
    "training": lambda folder: (folder / "run.yaml").is_file(),
    "checkpoint": lambda folder: any(folder.glob("checkpoints/*")),
    "validation": lambda folder: (folder / "model.safetensors").is_file(),
}
"""Phases of a training, each with a test on the run folder that is true once the phase has begun."""


def two_at_once(folder: Path, whole: Path) -> dict[str, bool]:
    """Return for each phase of a training whether a second one into its folder is refused by a line, and whether the
    first one ended bit-equal. The first is stopped meanwhile, so that the second meets this very phase."""
    words, run = command("toy", folder / "two", 40, OFTEN), folder / "two"
    found = {}
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as first:
        try:
            for name, has_begun in PHASES.items():
                while not has_begun(run) and first.poll() is None:
                    time.sleep(0.002)
                first.send_signal(signal.SIGSTOP)
                second = quietly(words)
                found[name] = is_one_line(second, f"process {first.pid} is training into it")
                first.send_signal(signal.SIGCONT)
            found["first ended bit-equal"] = first.wait(300) == 0 and weights(run) == weights(whole)
        finally:
            first.kill()
    return found


def full_disk(folder: Path, whole: Path) -> dict[str, bool]:
    """Return for each size of a disk whether a training that fills it ends in a line, and is resumed bit-equal when
    there is room."""
    needed = sum(path.stat().st_size for path in whole.rglob("*") if path.is_file())
    found = {}
    for share in SHARES:
        with _disk(folder / "disk", int(share * needed)) as (disk, enlarge):
            words = command("toy", disk / "run", 40, OFTEN)
            refused = is_one_line(quietly(words), FULL)
            enlarge(4 * needed)
            found[f"{share:.0%} of the room"] = (
                refused and quietly(words).returncode == 0 and weights(disk / "run") == weights(whole)
            )
    return found


def read_only(folder: Path, whole: Path) -> dict[str, bool]:
    """Return for each state of a run whether training into it on a read-only disk ends in a line and changes nothing,
    and whether a finished one still answers."""
    begun, empty = folder / "begun", folder / "empty"
    quietly(command("toy", begun, 20, OFTEN))
    empty.mkdir()
    found = {}
    for name, run, updates in (("empty", empty, 40), ("begun", begun, 40), ("finished", whole, 60)):
        before = _contents(run)
        with _made_read_only(run):
            found[name] = is_one_line(quietly(command("toy", run, updates)), "cannot be written")
            if name == "finished":
                done = quietly([sys.executable, "-m", "regardant", "translate", str(run), "3 1 4"])
                found["answers"] = done.returncode == 0 and bool(done.stdout.strip())
        found[name] &= _contents(run) == before
    return found


def _contents(folder: Path) -> dict[Path, bytes]:
    return {path: (folder / path).read_bytes() for path in files_of(folder)}


@contextlib.contextmanager
def _disk(folder: Path, size: int) -> Iterator[tuple[Path, Callable[[int], None]]]:
    """Mount a file system of a size in bytes. Yield its folder, and a function that changes the size."""
    folder.mkdir(exist_ok=True)
    _run("mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder))
    try:
        yield folder, lambda size: _run("mount", "-o", f"remount,size={size}", str(folder))
    finally:
        _run("umount", str(folder))


@contextlib.contextmanager
def _made_read_only(folder: Path) -> Iterator[None]:
    _run("mount", "--bind", str(folder), str(folder))
    _run("mount", "-o", "remount,bind,ro", str(folder))
    try:
        yield
    finally:
        _run("umount", str(folder))


def _run(*words: str) -> None:
    subprocess.run(words, check=True)


def refusals(folder: Path) -> dict[str, dict[str, bool] | None]:
    """Run all trials and return their outcomes by name; None for those that mount if the kernel does not allow it."""
    folder.mkdir(parents=True, exist_ok=True)
    done = quietly(command("toy", folder / "whole", 40, OFTEN))
    assert done.returncode == 0, done.stderr
    may_mount = shutil.which("unshare") and quietly([*IN_NAMESPACE, "true"]).returncode == 0
    found: dict[str, dict[str, bool] | None] = {"two trainings": two_at_once(folder, folder / "whole")}
    for name in TRIALS:
        found[name] = None
        if may_mount:
            words = [*IN_NAMESPACE, sys.executable, "-m", "benchmarks.refusals", name, str(folder)]
            done = quietly(words)
            assert done.returncode == 0, done.stderr
            found[name] = json.loads(done.stdout)
    return found


TRIALS: dict[str, Callable[[Path, Path], dict[str, bool]]] = {"full disk": full_disk, "read-only": read_only}


def main(words: Any) -> None:
    name, folder = words
    print(json.dumps(TRIALS[name](Path(folder), Path(folder) / "whole")))


if __name__ == "__main__":
    main(sys.argv[1:])
