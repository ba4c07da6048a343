"""Tiny models of transformers, and the runs that they are imported to."""

import functools
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from regardant import run
from regardant.run.importing import import_model
from tests.runs import MadeOnce


class Pair(NamedTuple):
    """A model there and here."""

    theirs: Any
    tokenizer: Any
    """Or processor of images."""
    folder: Path
    run: run.Run


@pytest.fixture(scope="session")
def pair(made_once: MadeOnce) -> Callable[[str], Pair]:
    """The tiny model of a name, imported. Its folders are shared: copy them to change them."""
    with warnings.catch_warnings():  # of the library's own imports
        warnings.simplefilter("ignore")
        from tests.unit.interop.huggingface import models

    @functools.cache
    def make(name: str) -> Pair:
        made: list[Any] = []

        def fill(folder: Path) -> None:
            made.extend(models.save(name, folder / "theirs"))
            import_model(folder / "theirs", folder / "run", log=lambda line: None)

        folder = made_once(f"transformers-{name}", fill)
        theirs, tokenizer = made or models.load(name, folder / "theirs")
        return Pair(theirs, tokenizer, folder / "theirs", run.load(folder / "run"))

    return make
