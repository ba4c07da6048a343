"""Translators that are looked into: opened when first asked for, one at a time at work."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from pydantic import BaseModel, Field, field_validator

from regardant import run
from regardant.errors import RunError
from regardant.inspection import ScaleHead, intervene
from regardant.studio.catalogue import Catalogue
from regardant.tasks.translation.trained import TrainedTranslator

MOST_OPEN = 3
"""Translators kept in memory."""

LONGEST_TEXT = 4000
"""Characters."""


class Head(BaseModel):
    """A head of attention, by the name of its place."""

    attention: str
    head: int


class Asked(BaseModel):
    """What is to be looked at: a sentence that a run translates, with some heads switched off."""

    run: str
    text: str = Field(max_length=LONGEST_TEXT)
    target: str | None = Field(None, max_length=LONGEST_TEXT)
    """Its translation; the run's own where none is given."""
    beam_size: int | None = Field(None, ge=1, le=16)
    off: list[Head] = []

    @field_validator("text")
    @classmethod
    def says_something(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("the text is blank: type a sentence")
        return text


class Opened:
    """The translators of a catalogue's runs."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self.translators: OrderedDict[tuple[Path, int], TrainedTranslator] = OrderedDict()
        self.lock = Lock()  # hooks are on the model, so that two that look at once would see each other

    @contextmanager
    def translator(self, name: str, off: Sequence[Head] = ()) -> Iterator[TrainedTranslator]:
        """The translator of a run as it is now, for one at a time, with heads switched off.

        Raises UnknownRun for a name that is not listed, RunError for a run that does not translate or has no weights
        yet, or for a head that its model does not have.
        """
        folder = self.catalogue.folder(name)
        with self.lock:
            translator = self._open(folder)
            try:
                with intervene(translator.model, *(ScaleHead(one.attention, one.head) for one in off)):
                    yield translator
            except ValueError as error:
                raise RunError(str(error)) from error

    def _open(self, folder: Path) -> TrainedTranslator:
        weights = folder / "model.safetensors"
        key = (folder, weights.stat().st_mtime_ns if weights.is_file() else 0)
        if key not in self.translators:
            loaded = run.load(folder)
            trained = loaded.trained if "inspect" in loaded.config.verbs else None
            if not isinstance(trained, TrainedTranslator):
                raise RunError(f"{folder} is a run of {loaded.config.task}, which has no translations to look at")
            for known in [known for known in self.translators if known[0] == folder]:
                del self.translators[known]
            self.translators[key] = trained
        self.translators.move_to_end(key)
        while len(self.translators) > MOST_OPEN:
            self.translators.popitem(last=False)
        return self.translators[key]
