"""Trained runs that pages inspect: opened at the first question, used by one question at a time."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import BoundedSemaphore, Lock
from typing import Any

from pydantic import BaseModel, Field, field_validator

from regardant import run
from regardant.errors import RunError
from regardant.inspection import ScaleHead, intervene
from regardant.studio.catalogue import Catalogue
from regardant.tasks.base import Trained

MOST_OPEN = 3
"""Runs kept in memory."""

MOST_OFF = 1000
"""Heads that may be switched off."""

MOST_WAITING = 8
"""Questions that wait for a model at once. The others are refused, or they would hold the threads of every page."""

LONGEST_TEXT = 4000
"""Characters of a text."""


class Busy(RunError):
    """Error of too many requests at once."""


class Head(BaseModel):
    """A head of attention, by the name of its place."""

    attention: str
    head: int


class Asked(BaseModel):
    """An item that a run reads, with some heads switched off."""

    run: str
    text: str = Field(max_length=LONGEST_TEXT)
    target: str | None = Field(None, max_length=LONGEST_TEXT)
    """The text that the model is made to write. None: its own."""
    beam_size: int | None = Field(None, ge=1, le=16)
    off: list[Head] = Field([], max_length=MOST_OFF)

    @field_validator("text")
    @classmethod
    def text_is_not_blank(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("the text is blank: type a sentence")
        return text

    @property
    def options(self) -> dict[str, Any]:
        """The options of `Trained.inspect` that are given."""
        given = {"target": self.target, "beam_size": self.beam_size}
        return {name: value for name, value in given.items() if value is not None}


class OpenRuns:
    """The trained runs of a catalogue."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self.runs: OrderedDict[tuple[Path, int], Trained] = OrderedDict()
        self.places = BoundedSemaphore(MOST_WAITING)
        self.lock = Lock()  # hooks are on the model, so two inspections at once would record each other

    @contextmanager
    def trained(self, name: str, off: Sequence[Head] = ()) -> Iterator[Trained]:
        """Open a run as it is now, for one at a time, with heads switched off.

        Raises:
            UnknownRun: a name that is not listed.
            RunError: a run without weights, or a head that its model does not have.
        """
        folder = self.catalogue.folder(name)
        with self._place(), self.lock:
            trained = self._open(folder)
            try:
                with intervene(trained.model, *(ScaleHead(one.attention, one.head) for one in off)):
                    yield trained
            except ValueError as error:
                raise RunError(str(error)) from error

    @contextmanager
    def _place(self) -> Iterator[None]:
        """Hold one of the places of those who wait. Raises Busy if all are taken."""
        if not self.places.acquire(blocking=False):
            raise Busy(f"{MOST_WAITING} questions are waiting for a model already: ask again when they are answered")
        try:
            yield
        finally:
            self.places.release()

    def view(self, name: str, asked: Asked) -> dict[str, Any]:
        """Return a view of an item by its name. Raises RunError where the run's task has no such view."""
        with self.trained(asked.run, asked.off) as trained:
            if name not in trained.views:
                allowed = f": it has {', '.join(trained.views)}" if trained.views else " or any other view"
                raise RunError(f"{asked.run} has no {name} to look at{allowed}")
            return trained.views[name](asked.text, **asked.options)

    def _open(self, folder: Path) -> Trained:
        weights = folder / "model.safetensors"
        key = (folder, weights.stat().st_mtime_ns if weights.is_file() else 0)
        if key not in self.runs:
            trained = run.load(folder).trained
            for known in [known for known in self.runs if known[0] == folder]:
                del self.runs[known]
            self.runs[key] = trained
        self.runs.move_to_end(key)
        while len(self.runs) > MOST_OPEN:
            self.runs.popitem(last=False)
        return self.runs[key]
