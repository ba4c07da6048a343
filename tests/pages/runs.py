"""Runs that pages name before they train them: trained once, by the program, and copied into the folder of a page."""

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.pages.commands import Command
from tests.pages.files import FILES
from tests.pages.shell import run
from tests.pages.shortened import shortened
from tests.runs import MadeOnce

TRAINED = {
    "translator": "train demo",
    "reviews": "train sst2",
    "letters": "train shakespeare",
    "text": "train language_modelling --set data.source=a.txt",
    "digits": "train digits-vit",
    "sounds": "train sound_classification --set data.source=recordings",
    "minilm": "import path/to/all-MiniLM-L6-v2",
}
"""Commands that make the runs which pages share."""

RUNS = {
    "RUN": "translator",
    "runs/demo": "translator",
    "runs/mine": "translator",
    "runs/large": "translator",
    "runs/multi30k-en-de": "translator",
    "runs/sst2": "reviews",
    "runs/shakespeare": "letters",
    "runs/text": "text",
    "runs/digits": "digits",
    "runs/spoken-digits": "sounds",
    "runs/minilm": "minilm",
}
"""Runs by the names that pages have for them."""


@dataclass(frozen=True)
class Maker:
    """What makes the files and runs that commands name."""

    made_once: MadeOnce
    variables: Mapping[str, str]

    def make(self, folder: Path, text: str) -> None:
        """Make what a text names and a folder lacks."""
        for name, write in FILES.items():
            if named(text, name) and not (folder / name).exists():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                write(folder / name)
        for name, kind in RUNS.items():
            if named(text, name) and not (folder / name).exists():
                made = self.made_once(f"pages-{kind}", partial(self.train, kind))
                shutil.copytree(made / "run", folder / name)
        if named(text, "runs/other"):
            shutil.copytree(folder / "runs/mine", folder / "runs/other")

    def train(self, kind: str, folder: Path) -> None:
        """Make a run that pages share."""
        text = TRAINED[kind]
        self.make(folder, text)
        run(Command("shared", 0, text), f"regardant {shortened(text)} --out run", folder, self.variables)


def named(text: str, name: str) -> bool:
    """Return whether a text names a file, other than as one to write."""
    read = re.sub(r"--(out|output|page) \S+", "", text)
    return re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w.-])", read) is not None
