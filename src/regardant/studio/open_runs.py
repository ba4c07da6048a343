"""Trained runs that pages inspect: loaded at the first request, and used by one request at a time, with the worker
thread and queue of the server."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, Field, field_validator

from regardant import run
from regardant.config.run_files import WEIGHTS
from regardant.errors import RunError
from regardant.inspection import ScaleHead, intervene
from regardant.server.limits import Limits
from regardant.server.metrics import Metrics
from regardant.server.service import Asking
from regardant.server.worker import ModelCall, Worker
from regardant.studio.catalogue import Catalogue
from regardant.tasks.base import Trained

Answer = TypeVar("Answer")

MOST_OPEN = 3
"""Largest number of runs kept in memory."""

MOST_OFF = 1000
"""Largest number of heads that may be switched off."""

LIMITS = Limits(max_queue=8, timeout=120.0, max_beam_size=16)
"""Limits of the server, for one user who may request long answers: a few requests wait, others are refused."""


class AttentionHead(BaseModel):
    """An attention head, by the name of its attention and its index."""

    attention: str
    head: int


class Asked(BaseModel):
    """Request to run a model on an item, with some heads switched off."""

    run: str
    text: str = Field(max_length=LIMITS.max_characters)
    target: str | None = Field(None, max_length=LIMITS.max_characters)
    """Text that the model is forced to write. None: the model's own output."""
    beam_size: int | None = Field(None, ge=1, le=LIMITS.max_beam_size)
    off: list[AttentionHead] = Field([], max_length=MOST_OFF)

    @field_validator("text")
    @classmethod
    def text_is_not_blank(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("the text is blank: type a sentence")
        return text

    @property
    def options(self) -> dict[str, Any]:
        """Options of `Trained.inspect` that were given."""
        given = {"target": self.target, "beam_size": self.beam_size}
        return {name: value for name, value in given.items() if value is not None}


class OpenRuns:
    """The trained runs of a catalogue."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self.runs: OrderedDict[tuple[Path, int], Trained] = OrderedDict()
        # One thread for all runs: hooks are on a model, so two inspections at once would record each other.
        self.worker = Worker("the studio", self, LIMITS, Metrics())

    async def answer(
        self, request: Request, name: str, compute: Callable[[Trained], Answer], off: Sequence[AttentionHead] = ()
    ) -> Answer:
        """Return the result of `compute` on the current weights of a run, with the heads `off` switched off.

        Raises:
            UnknownRun: a name that is not listed.
            RunError: a run without weights, or a head that its model does not have.
            Refusal: too many requests wait, or the answer takes too long.
            ClientLeft: the client has disconnected; its request is dropped.
        """

        def computed(runs: OpenRuns, rows: list[str]) -> list[Answer]:
            with runs._trained(rows[0], off) as trained:
                return [compute(trained)]

        (found,) = await Asking(self.worker, request).answer(ModelCall(computed, [name]))
        answer: Answer = found
        return answer

    @contextmanager
    def _trained(self, name: str, off: Sequence[AttentionHead] = ()) -> Iterator[Trained]:
        """Yield a run, opened in the worker's thread. Raises UnknownRun and RunError as `answer` does."""
        trained = self._open(self.catalogue.folder(name))
        try:
            with intervene(trained.model, *(ScaleHead(one.attention, one.head) for one in off)):
                yield trained
        except ValueError as error:
            raise RunError(str(error)) from error

    def _open(self, folder: Path) -> Trained:
        weights = folder / WEIGHTS
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
