"""Labs of the lectures from data to figures: each trains its recipes, compares the runs and draws their attention.

The data come from the embedded grammar, so a lab needs no download.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from regardant.config import recipe as document_of
from regardant.run.comparing import compare
from regardant.run.opened import Run, load
from regardant.run.training import train_in_turn
from regardant.studies.resumed import is_evaluated
from regardant.tasks import load_recipe
from regardant.tasks.base import Log


@dataclass(frozen=True)
class Lab:
    """Trainings of one lab, and the items that their runs translate."""

    about: str
    runs: dict[str, tuple[str, Sequence[str]]]
    """Recipe and overrides of each run, by its name. The others are compared with the first."""
    items: Sequence[str]
    """Items that each run translates in the end."""


GRAMMAR = (
    "data={kind: grammar, train_size: 20000, test_size: 200, heldout_size: 200}",
    "tokenizer={kind: word}",
    "evaluation={tokenize: 13a}",
    "training.validate_every=200",
)
"""Overrides that train a recipe of the ladder on the embedded grammar."""

FRENCH_FIRST = (*GRAMMAR, "data.direction=fr-en")

FRENCH = ("Le chat est assis sur le tapis.", "La vieille femme voit le petit chien.")
ENGLISH = ("The cat sat on the mat.", "The old woman sees the small dog.")

LABS: dict[str, Lab] = {
    "bahdanau": Lab(
        "French to English: a recurrent model without attention, and one with Bahdanau's attention",
        {"plain": ("ladder/gru-cho", FRENCH_FIRST), "attention": ("ladder/gru-bahdanau", FRENCH_FIRST)},
        FRENCH,
    ),
    "transformer": Lab(
        "English to French: a recurrent model with attention, and a Transformer",
        {"recurrent": ("ladder/gru-bahdanau", GRAMMAR), "transformer": ("ladder/transformer", GRAMMAR)},
        ENGLISH,
    ),
    "one-to-one": Lab(
        "English to French: one output for each input, which fails, and an encoder with a decoder",
        {"one-to-one": ("ladder/gru-one-to-one", GRAMMAR), "encoder-decoder": ("ladder/gru-fixed", GRAMMAR)},
        ENGLISH,
    ),
    "luong": Lab(
        "English to French: the attention scores of Bahdanau, and those of Luong",
        {"bahdanau": ("ladder/gru-bahdanau", GRAMMAR), "luong": ("ladder/gru-luong", GRAMMAR)},
        ENGLISH,
    ),
}


def lecture(name: str, folder: Path, minutes: float, log: Log = print) -> list[str]:
    """Run a lab, with about `minutes` of training; return the lines of its comparison, its answers and its files.

    Raises KeyboardInterrupt for an interrupted training; the same call resumes it.
    """
    lab = LABS[name]
    each = minutes / len(lab.runs)
    folders = [folder / run for run in lab.runs]
    for out, (recipe, overrides) in zip(folders, lab.runs.values(), strict=True):
        log(f"{out}: {recipe}, {each:.1f} minutes")
        budget = (f"training.max_minutes={each}", "training.max_updates=null", "training.max_epochs=null")
        config = load_recipe(document_of(recipe), [*overrides, *budget], recipe)
        if not train_in_turn(config, out, log).finished:
            raise KeyboardInterrupt
        if not is_evaluated(out):
            load(out).evaluate()
    page = folder / "comparison.html"
    lines = [lab.about, "", *compare(folders, page).lines(), ""]
    for out in folders:
        run = load(out)
        lines += [
            f"{out.name:16} {item} -> {translation.candidates[0].text}"
            for item, translation in zip(lab.items, run.translate(lab.items), strict=True)
        ]
        lines += _picture(run, out, lab.items[0])
    return [*lines, f"open {page} in a browser"]


def _picture(run: Run, out: Path, item: str) -> list[str]:
    """Draw the attention over an item, if the model has any; return the lines to print."""
    found = run.inspect(item)
    if not found.layers:
        return []
    picture = out / "attention.html"
    found.save(picture)
    return [f"{'':16} attention: {picture}"]
