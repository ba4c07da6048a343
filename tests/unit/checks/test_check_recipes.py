"""The model of every recipe computes the same in every way, after two updates on its own data."""

import gzip
import json
import os
from pathlib import Path

import pytest

from regardant import config, run
from regardant.errors import ConfigError
from regardant.tasks import load_recipe
from tests.runs import make_earlier

BRIEF = (
    *("training.max_minutes=null", "training.max_epochs=null", "training.max_updates=2", "training.validate_every=2"),
    *("training.precision=float32", "training.attention_kernel=auto", "training.processes=1"),
)

NEED_A_FILE = {
    *("classification", "forecasting", "image_classification", "language_modelling", "node_classification"),
    *("sound_classification", "tagging", "translation"),
}
"""Recipes for files of the user: their models are those of others."""


def test_recipes_that_need_a_file_are_known():
    for name in NEED_A_FILE:
        with pytest.raises(ConfigError, match="missing"):
            load_recipe(config.recipe(name), BRIEF, origin=name)


def lines_of(file: Path) -> list[str]:
    return gzip.decompress(file.read_bytes()).decode().split("\n")


def brief_data(name: str, folder: Path) -> list[str]:
    """Return overrides for few sentences of validation: translating all of them takes most of the time."""
    texts = Path(os.environ["REGARDANT_DATA"]) / "multi30k"
    if name == "multi30k-en-de-hub":
        return made_dataset(texts, folder)
    data = config.recipe(name)["data"]
    files = data.get("validation", {}) if data.get("root") == "${REGARDANT_DATA}/multi30k" else {}
    for side, file in files.items():
        (folder / side).write_text("\n".join(lines_of(texts / file)[:20]), encoding="utf-8")
    return [f"data.validation.{side}={folder / side}" for side in files]


def made_dataset(texts: Path, folder: Path) -> list[str]:
    """Write a dataset as the hub has it. Return the overrides that name it."""
    for split, part in {"train": "train", "validation": "val", "test": "test2016"}.items():
        pairs = zip(*(lines_of(texts / f"{part}.{language}.gz") for language in ("en", "de")), strict=True)
        rows = [json.dumps({"en": english, "de": german}) for english, german in pairs]
        rows = rows[:20] if split == "validation" else rows
        (folder / f"{split}.jsonl").write_text("\n".join(rows), encoding="utf-8")
    return [f"{key}={folder}" for key in ("data.table", "data.validation.table", "data.test.table")]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(config.recipes()) - NEED_A_FILE))
def test_the_ways_of_every_recipe_s_model_agree(name, tmp_path):
    if "REGARDANT_DATA" not in os.environ:
        pytest.skip("no folder of data: set REGARDANT_DATA")

    def train(name, folder):
        recipe = config.recipe(name)
        asked = [*BRIEF, *brief_data(name, tmp_path), *make_earlier(recipe, tmp_path, train)]
        assert run.train(load_recipe(recipe, asked, origin=name), folder, log=lambda line: None).finished

    train(name, tmp_path / "run")
    found = run.load(tmp_path / "run").check()
    assert not found.failed, "\n".join(found.lines())
    assert len(found.compared) >= 4
