"""What training shows while it works, and what it leaves behind to be drawn.

    stderr               a live line on a terminal; elsewhere a plain line now and then, for readable logs
    RUN/metrics.jsonl    one JSON object an event, in the order of updates
    RUN/tensorboard/     the same numbers, where `tensorboard` is installed

Nothing goes to stdout. The reporter reads no clock: it reckons tokens per second and the time left from the
seconds it is told.
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
from typing import Any, NamedTuple, Self, TextIO

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
from rich.table import Column

from regardant.training.checkpoints import write_atomically

_WINDOW = 10.0  # seconds over which tokens per second are measured


class Reporter:
    """Tells a run's numbers to whoever watches, and writes them to its folder. Use as a context manager.

    `update` and `seconds` are where the run stands: 0 for a fresh one, the checkpoint's on resuming, when the
    events after that update are dropped, so that metrics.jsonl comes out as if nothing had been interrupted.
    Where stderr is no terminal, a line is written every `every` seconds. `others` are processes that train along.
    """

    def __init__(
        self,
        run: Path,
        *,
        update: int = 0,
        seconds: float = 0.0,
        every: float = 10.0,
        console: Console | None = None,
        others: Sequence[int] = (),
    ) -> None:
        self.run = run
        self.others = others
        self.resumed_at = update
        self.seconds = seconds
        self.every = every
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
        self.tokens = deque([(seconds, 0)])  # (when, tokens since the start), over the window
        self.first: tuple[float, float] | None = None  # (seconds, progress) at the first update told
        self.best: dict[str, float] = {}
        self.line = ""
        self.line_written_at = -math.inf
        self.events: TextIO
        self.tensorboard: Any = None

    def __enter__(self) -> Self:
        path = self.run / "metrics.jsonl"
        kept = _events_until(path, self.resumed_at)
        write_atomically(path, "".join(json.dumps(event) + "\n" for event in kept))
        for event in kept:
            self._remember_best(event)
        self.events = path.open("a", encoding="utf-8", buffering=1)  # each event is in the file at once
        self.tensorboard = _tensorboard(self.run / "tensorboard", self.resumed_at)
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()
        if self.line:
            self.say(self.line)
        self.events.close()
        if self.tensorboard is not None:
            self.tensorboard.close()

    def train(self, *, update: int, epoch: int, progress: float, seconds: float, tokens: int, **numbers: float) -> None:
        """Tell of training up to `update`.

        `progress` is the share of the budget that is spent, `seconds` the run's time so far, over all resumes
        and with its validations, and `tokens` how many were trained on since the last call. `numbers` (loss,
        learning_rate, gradient_norm, ...) go to people, the file and TensorBoard alike.
        """
        self.seconds = seconds
        speed, held = self._tokens_per_second(tokens), memory(self.others)
        where = {"epoch": epoch, "progress": progress}
        self._write("train", update, where | numbers | {"tokens_per_second": speed, "memory_bytes": held.current})
        shown = _told(numbers | {"tokens/s": speed} | self.best)
        status = f"update {update:,} · epoch {epoch} · {shown} · memory {held}{self._left(progress)}"
        self.bar.update(self.task, completed=progress, description=status)
        self.line = f"{progress:.1%} · {status}"
        if not self.console.is_terminal and seconds - self.line_written_at >= self.every:
            self.say(self.line)
            self.line, self.line_written_at = "", seconds

    def validation(self, *, update: int, seconds: float, took: float, **numbers: float) -> None:
        """Tell of a validation after `update`, over at `seconds`, which took that many of them.

        Numbers named best_... stay in view until the next one.
        """
        self.seconds = seconds
        self.tokens = deque((when + took, count) for when, count in self.tokens)  # no part of training's speed
        self._write("validation", update, {"took": round(took, 3)} | numbers)
        self._remember_best(numbers)
        self.say(f"validation at update {update:,} · {_told(numbers)}")

    def observation(self, *, update: int, seen: dict[str, Any]) -> None:
        """Keep what was seen of the model in metrics.jsonl, for those who look: it is no number to tell people."""
        event = {"event": "observation", "update": update, "time": round(self.seconds, 3)}
        self.events.write(json.dumps(event | seen, allow_nan=False) + "\n")

    def say(self, text: str) -> None:
        """Print a line of text above the live one."""
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _write(self, name: str, update: int, numbers: dict[str, float]) -> None:
        event: dict[str, Any] = {"event": name, "update": update, "time": round(self.seconds, 3)}
        # JSON has no NaN and no infinity.
        finite = {key: value if math.isfinite(value) else None for key, value in numbers.items()}
        self.events.write(json.dumps(event | finite, allow_nan=False) + "\n")
        if self.tensorboard is not None:
            for key, value in numbers.items():
                self.tensorboard.add_scalar(f"{name}/{key}", value, update)

    def _tokens_per_second(self, tokens: int) -> float:
        self.tokens.append((self.seconds, self.tokens[-1][1] + tokens))
        while len(self.tokens) > 2 and self.tokens[1][0] <= self.seconds - _WINDOW:
            self.tokens.popleft()
        (start, before), (end, after) = self.tokens[0], self.tokens[-1]
        return round((after - before) / (end - start), 1) if end > start else 0.0

    def _left(self, progress: float) -> str:
        if self.first is None:
            self.first = (self.seconds, progress)
        start, progress_then = self.first
        if progress <= progress_then:
            return ""  # one point makes no speed
        seconds = (self.seconds - start) * max(0.0, 1 - progress) / (progress - progress_then)
        return f" · {timedelta(seconds=round(seconds))} left"

    def _remember_best(self, numbers: dict[str, Any]) -> None:
        best = {name: value for name, value in numbers.items() if name.startswith("best_")}
        self.best |= {name: value for name, value in best.items() if value is not None}  # null: it was NaN


class Memory(NamedTuple):
    """What training takes, in bytes: of the accelerator where it computes on one, else of main memory."""

    current: int
    peak: int

    def __str__(self) -> str:
        return f"{self.current / 2**30:.2f} GiB (peak {self.peak / 2**30:.2f})"


def memory(others: Sequence[int] = ()) -> Memory:
    """What this process, and others with it, hold now and held at most. Without a /proc the peak of this one alone."""
    if torch.cuda.is_initialized():
        return Memory(torch.cuda.memory_reserved(), torch.cuda.max_memory_reserved())
    try:
        held = [_memory_of(process) for process in map(str, ("self", *others))]
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        return Memory(peak, peak)
    return Memory(sum(one.current for one in held), sum(one.peak for one in held))


def _memory_of(process: str) -> Memory:
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace")
    kib = dict(line.split(":", 1) for line in status.splitlines() if line.startswith("Vm"))
    return Memory(*(int(kib[field].split()[0]) * 1024 for field in ("VmRSS", "VmHWM")))


def read_events(path: Path) -> list[dict[str, Any]]:
    """All events of a metrics.jsonl, none where there is no file. A line cut off by a kill is not one."""
    events: list[dict[str, Any]] = []
    if not path.is_file():
        return events
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            events.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return events


def _told(numbers: dict[str, float]) -> str:
    return " · ".join(f"{name.replace('_', ' ')} {_short(value)}" for name, value in numbers.items())


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _events_until(path: Path, update: int) -> list[dict[str, Any]]:
    """The events up to and with `update`; none for a run that starts."""
    if update == 0:
        return []
    return [event for event in read_events(path) if event["update"] <= update]


def _tensorboard(folder: Path, update: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter  # takes a second, and is optional
    except ImportError:
        return None
    return SummaryWriter(folder, purge_step=update + 1)
