"""Progress of a training: lines on stderr, and a record of every number.

    stderr               a live line on a terminal; elsewhere a plain line every few seconds, for readable logs
    RUN/metrics.jsonl    one JSON object per event, in the order of updates
    RUN/tensorboard/     the same numbers, if `tensorboard` is installed; or the files of other `trackers`

Nothing is written to stdout. The reporter reads no clock: it computes targets per second and the time left from the
seconds that it is given.
"""

import json
import math
import resource
import sys
from collections import deque
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, NamedTuple, Self, TextIO

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
from rich.table import Column

from regardant.config.run_files import METRICS
from regardant.files import write_atomically
from regardant.training.events import read_events
from regardant.training.trackers import DEFAULT, Tracker, open_trackers

_WINDOW = 10.0
"""Seconds over which targets per second are measured."""


class Reporter:
    """Writer of a run's numbers to stderr and to its folder. Use it as a context manager.

    `update` and `seconds` are the position of the run: 0 for a fresh one, the checkpoint's on resuming. Resuming drops
    the events after that update, so that metrics.jsonl is the same with and without an interruption. `unit` is the
    name of a target. If stderr is not a terminal, a line is written every ten seconds. `others` are the process ids
    of the other ranks, whose memory is added; `trackers` the names of programs that record the same numbers.
    """

    every: ClassVar = 10.0
    """Seconds between lines where stderr is not a terminal."""

    def __init__(
        self,
        run: Path,
        *,
        update: int = 0,
        seconds: float = 0.0,
        unit: str = "target",
        console: Console | None = None,
        others: Sequence[int] = (),
        trackers: Sequence[str] = DEFAULT,
    ) -> None:
        self.run = run
        self.unit = unit
        self.others = others
        self.resumed_at = update
        self.seconds = seconds
        self.console = console or Console(stderr=True)
        self.bar = Progress(
            BarColumn(bar_width=20),
            TaskProgressColumn(),
            TextColumn("{task.description}", table_column=Column(ratio=1), markup=False),
            console=self.console,
            redirect_stdout=False,
            disable=not self.console.is_terminal,
            transient=True,
        )
        self.task = self.bar.add_task("starting", total=1.0)
        self.targets = deque([(seconds, 0)])  # (seconds, targets since the start), over the window
        self.first: tuple[float, float] | None = None  # (seconds, progress) at the first report
        self.best: dict[str, float] = {}
        self.line = ""
        self.line_written_at = -math.inf
        self.events: TextIO
        self.named, self.trackers = trackers, list[Tracker]()

    def __enter__(self) -> Self:
        path = self.run / METRICS
        kept = _events_until(path, self.resumed_at)
        write_atomically(path, "".join(json.dumps(event) + "\n" for event in kept))
        for event in kept:
            self._remember_best(event)
        self.events = path.open("a", encoding="utf-8", buffering=1)  # each event is in the file at once
        self.trackers = open_trackers(self.named, self.run, self.resumed_at)
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()
        if self.line:
            self.log(self.line)
        self.events.close()
        for tracker in self.trackers:
            tracker.close()

    def train(
        self, *, update: int, epoch: int, progress: float, seconds: float, targets: int, **numbers: float
    ) -> None:
        """Report training up to `update`.

        `progress` is the spent share of the budget, `seconds` the run's time so far, over all resumes and with its
        validations, and `targets` the number trained on since the last call. `numbers` (loss, learning_rate,
        gradient_norm, ...) go to stderr, the file and trackers alike.
        """
        self.seconds = seconds
        speed, held = self._targets_per_second(targets), memory(self.others)
        where = {"epoch": epoch, "progress": progress}
        used = {"tokens_per_second": speed, "memory_bytes": held.current, "memory_peak_bytes": held.peak}
        self._write("train", update, where | numbers | used)
        shown = _format(numbers | {f"{self.unit}s/s": speed} | self.best)
        status = f"update {update:,} · epoch {epoch} · {shown} · memory {held}{self._left(progress)}"
        self.bar.update(self.task, completed=progress, description=status)
        self.line = f"{progress:.1%} · {status}"
        if not self.console.is_terminal and seconds - self.line_written_at >= self.every:
            self.log(self.line)
            self.line, self.line_written_at = "", seconds

    def validation(self, *, update: int, seconds: float, took: float, **numbers: float) -> None:
        """Report a validation after `update` that ended at `seconds` of the run and lasted `took` seconds.

        Numbers named best_... are shown until the next validation.
        """
        self.seconds = seconds
        self.targets = deque(
            (when + took, count) for when, count in self.targets
        )  # validation does not count for training's speed
        self._write("validation", update, {"took": round(took, 3)} | numbers)
        self._remember_best(numbers)
        self.log(f"validation at update {update:,} · {_format(numbers)}")

    def observation(self, *, update: int, seen: dict[str, Any]) -> None:
        """Write observations of the model to metrics.jsonl. They are not shown on stderr."""
        event = {"event": "observation", "update": update, "time": round(self.seconds, 3)}
        self.events.write(json.dumps(event | seen, allow_nan=False) + "\n")

    def log(self, text: str) -> None:
        """Print a line of text above the live one."""
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _write(self, name: str, update: int, numbers: dict[str, float]) -> None:
        event: dict[str, Any] = {"event": name, "update": update, "time": round(self.seconds, 3)}
        # JSON has no NaN and no infinity.
        finite = {key: value if math.isfinite(value) else None for key, value in numbers.items()}
        self.events.write(json.dumps(event | finite, allow_nan=False) + "\n")
        for tracker in self.trackers:
            tracker.write({f"{name}/{key}": value for key, value in numbers.items()}, update)

    def _targets_per_second(self, targets: int) -> float:
        self.targets.append((self.seconds, self.targets[-1][1] + targets))
        while len(self.targets) > 2 and self.targets[1][0] <= self.seconds - _WINDOW:
            self.targets.popleft()
        (start, before), (end, after) = self.targets[0], self.targets[-1]
        return round((after - before) / (end - start), 1) if end > start else 0.0

    def _left(self, progress: float) -> str:
        if self.first is None:
            self.first = (self.seconds, progress)
        start, progress_then = self.first
        if progress <= progress_then:
            return ""  # one point gives no speed
        seconds = (self.seconds - start) * max(0.0, 1 - progress) / (progress - progress_then)
        return f" · {timedelta(seconds=round(seconds))} left"

    def _remember_best(self, numbers: dict[str, Any]) -> None:
        best = {name: value for name, value in numbers.items() if name.startswith("best_")}
        self.best |= {name: value for name, value in best.items() if value is not None}  # null: it was NaN


class Memory(NamedTuple):
    """Memory of a training in bytes: the accelerator's if it computes on one, else main memory."""

    current: int
    peak: int

    def __str__(self) -> str:
        return f"{self.current / 2**30:.2f} GiB (peak {self.peak / 2**30:.2f})"


def memory(others: Sequence[int] = ()) -> Memory:
    """Return the memory of this process and `others`, now and at the peak. Without /proc, this process's peak alone."""
    if torch.cuda.is_initialized():
        return Memory(torch.cuda.memory_reserved(), torch.cuda.max_memory_reserved())
    held = [one for process in ("self", *map(str, others)) if (one := _memory_of(process)) is not None]
    if not held:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        return Memory(peak, peak)
    return Memory(sum(one.current for one in held), sum(one.peak for one in held))


def _memory_of(process: str) -> Memory | None:
    """Return the memory of a process. None: it has ended, or there is no /proc."""
    try:
        status = Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    kib = dict(line.split(":", 1) for line in status.splitlines() if line.startswith("Vm"))
    if "VmRSS" not in kib:  # a zombie: it has ended, and its exit code was not read
        return None
    return Memory(*(int(kib[field].split()[0]) * 1024 for field in ("VmRSS", "VmHWM")))


def _format(numbers: dict[str, float]) -> str:
    return " · ".join(f"{name.replace('_', ' ')} {_short(value)}" for name, value in numbers.items())


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _events_until(path: Path, update: int) -> list[dict[str, Any]]:
    """Return the events up to and including `update`; none for a run that starts."""
    if update == 0:
        return []
    return [event for event in read_events(path) if event["update"] <= update]
