"""Fixtures that many tests share: one thread, and small models trained by `regardant.run.train`."""

import copy
import math
import os
import shutil
import zlib
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from filelock import FileLock
from PIL import Image

from regardant import config as configuration
from regardant import run
from regardant.data.digits import DigitsConfig
from regardant.data.parallel import Splits
from regardant.tasks import load_recipe
from regardant.tasks.base import TaskConfig
from regardant.tasks.classification.task import ClassificationConfig
from regardant.tasks.forecasting.task import ForecastingConfig
from regardant.tasks.language_modelling.config import LanguageModellingConfig
from regardant.tasks.translation.config import TranslationConfig
from regardant.tasks.translation.evaluate.evaluation import TestSet, test_sets
from tests.runs import MadeOnce, runs_of

os.environ["REGARDANT_CACHE"] = ""  # each test times its own steps, and the user's cache is left alone
torch.set_num_threads(1)  # sums have one order, and parallel test processes do not compete for cores


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    seed(item)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    seed(item)


def seed(item: pytest.Item) -> None:
    """Seed torch by the name of the test, so that it draws the same whatever ran before it in its process."""
    file, _, name = item.location  # xdist appends the group of a test to its nodeid
    torch.manual_seed(zlib.crc32(f"{file}::{name}".encode()))


TINY: dict[str, Any] = {
    "data": {
        "kind": "grammar",
        "train_size": 1000,
        "validation_size": 40,
        "test_size": 110,
        "heldout_size": 10,
    },
    "tokenizer": {"kind": "word", "vocab_size": 250},
    "model": {
        "preset": None,
        "d_model": 32,
        "num_heads": 2,
        "d_ff": 64,
        "dropout": 0.0,
        "max_length": 48,
        "encoder": {"num_layers": 1},
        "decoder": {"num_layers": 1},
    },
    "training": {
        "max_updates": 300,
        "batch_tokens": 400,
        "validate_every": 150,
        "precision": "float32",
        "attention_kernel": "sdpa",
        "best_by": "loss",
        "schedule": {"kind": "linear", "learning_rate": 1e-2, "warmup_steps": 20},
        "averaging": {"kind": "ema", "decay": 0.9},
    },
    "evaluation": {"bootstrap_samples": 10},
}
"""Recipe of a translator from English to French, trained for two seconds, with equal results on all machines. Its
translations are wrong, but differ between sources."""


TINY_TEXT: dict[str, Any] = {
    "task": "language_modelling",
    "data": {"source": "a.txt"},
    "model": {"d_model": 32, "num_heads": 2, "num_layers": 1, "d_ff": 64, "max_length": 16},
    "training": {
        "max_updates": 200,
        "batch_tokens": 256,
        "validate_every": 100,
        "precision": "float32",
        "attention_kernel": "sdpa",
        "schedule": {"kind": "linear", "learning_rate": 1e-2, "warmup_steps": 20},
        "averaging": {"kind": "ema", "decay": 0.9},
    },
}
"""Recipe of a language model over characters, trained for a second on sentences over a vocabulary of twelve words."""

TINY_LABELS: dict[str, Any] = {
    "task": "classification",
    "data": {"source": "train.tsv", "test": "test.tsv", "text": "1", "label": "2"},
    "input": {"kind": "text", "tokenizer": {"kind": "word", "vocab_size": 300}},
    "model": {"d_model": 32, "num_heads": 2, "num_layers": 2, "d_ff": 64, "max_length": 16, "dropout": 0.0},
    "head": {"kind": "sequence_class", "dropout": 0.0},
    "training": {
        "max_updates": 300,
        "batch_tokens": 256,
        "validate_every": 100,
        "precision": "float32",
        "attention_kernel": "sdpa",
        "schedule": {"kind": "linear", "learning_rate": 3e-3, "warmup_steps": 20},
    },
}
"""Recipe of a classifier, trained for seconds, that tells whether a sentence has a cat before a dog: order matters."""

TINY_SERIES: dict[str, Any] = {
    "task": "forecasting",
    "data": {"source": "waves.csv", "train": 400, "validation": 100, "test": 100},
    "input": {"kind": "series", "history": 48, "patch_length": 8, "stride": 4},
    "model": {"d_model": 16, "num_heads": 2, "num_layers": 2, "d_ff": 32, "max_length": 16, "dropout": 0.0},
    "head": {"kind": "forecast", "horizon": 12, "pooling": "flatten"},
    "training": {
        "max_updates": 200,
        "batch_tokens": 704,
        "validate_every": 100,
        "precision": "float32",
        "attention_kernel": "sdpa",
        "processes": 1,
        "schedule": {"kind": "linear", "learning_rate": 5e-3, "warmup_steps": 10},
        "averaging": {"kind": "ema", "decay": 0.9},
    },
}
"""Recipe of a forecaster, trained for a second or two on two waves with periods of 24 and 36 hours."""

WORDS = ["the", "a", "cat", "dog", "bird", "sees", "likes", "old", "red", "tree", "and", "then"]


@pytest.fixture(scope="session")
def made_once(tmp_path_factory) -> MadeOnce:
    """Return a function that returns the folder of a name, filled by the first test process that asks for it.

    All processes share the folder: copy it before changing it.
    """
    base: Path = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "made-once"
    shared.mkdir(exist_ok=True)

    def make(name: str, fill: Callable[[Path], object]) -> Path:
        folder, filled = shared / name, shared / f"{name}.filled"
        with FileLock(shared / f"{name}.lock"):
            if not filled.exists():
                shutil.rmtree(folder, ignore_errors=True)  # left by a test process that failed
                folder.mkdir()
                fill(folder)
                filled.touch()
        return folder

    return make


@pytest.fixture(scope="session")
def text_file(made_once) -> Path:
    """Return a file with lines of random words and every kind of white space between them."""

    def fill(folder: Path) -> None:
        random = Random(4)
        lines = [" ".join(random.choices(WORDS, k=random.randint(2, 7))) for _ in range(400)]
        text = "".join(line + random.choice([".\n", "!\r\n", ",  \n\n", "\t\n"]) for line in lines)
        (folder / "a.txt").write_bytes(text.encode())

    return made_once("text", fill) / "a.txt"


@pytest.fixture(scope="session")
def tiny_text_config(text_file) -> Callable[..., LanguageModellingConfig]:
    """Return a function that loads the recipe TINY_TEXT with overrides as of --set."""

    def load(*overrides: str) -> LanguageModellingConfig:
        given = (f"data.root={text_file.parent}", *overrides)
        return configuration.load(LanguageModellingConfig, copy.deepcopy(TINY_TEXT), given, origin="tiny-text")

    return load


@pytest.fixture(scope="session")
def trained_on_text(made_once, tiny_text_config) -> Callable[..., run.Run]:
    """Return a function that returns the run of TINY_TEXT with overrides."""
    return runs_of("tiny-text", tiny_text_config, made_once)


@pytest.fixture(scope="session")
def labelled_files(made_once) -> Path:
    """Return a folder with train.tsv and test.tsv: sentences with a cat and a dog, labelled by the first of the two."""

    def fill(folder: Path) -> None:
        random = Random(5)
        for name, size in (("train", 600), ("test", 60)):
            lines = []
            for _ in range(size):
                words = random.choices([word for word in WORDS if word not in ("cat", "dog")], k=random.randint(1, 7))
                for animal in random.sample(["cat", "dog"], 2):
                    words.insert(random.randint(0, len(words)), animal)
                first = "cat" if words.index("cat") < words.index("dog") else "dog"
                lines.append(f"{' '.join(words)} .\t{first} first\n")
            (folder / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")

    return made_once("labels", fill)


@pytest.fixture(scope="session")
def tiny_labels_config(labelled_files) -> Callable[..., ClassificationConfig]:
    """Return a function that loads the recipe TINY_LABELS with overrides as of --set."""

    def load(*overrides: str) -> ClassificationConfig:
        given = (f"data.root={labelled_files}", *overrides)
        return configuration.load(ClassificationConfig, copy.deepcopy(TINY_LABELS), given, origin="tiny-labels")

    return load


@pytest.fixture(scope="session")
def trained_on_labels(made_once, tiny_labels_config) -> Callable[..., run.Run]:
    """Return a function that returns the run of TINY_LABELS with overrides."""
    return runs_of("tiny-labels", tiny_labels_config, made_once)


@pytest.fixture(scope="session")
def waves(made_once) -> Path:
    """Return waves.csv: 620 hours of two sines with a little noise, around 20 and around -3."""

    def fill(folder: Path) -> None:
        random = Random(6)
        lines = ["date,warm,cold"]
        for hour in range(620):
            day, slow = (math.sin(2 * math.pi * hour / length) + random.gauss(0, 0.02) for length in (24, 36))
            time = datetime(2026, 1, 1) + timedelta(hours=hour)
            lines.append(f"{time:%Y-%m-%d %H:%M},{20 + 5 * day:.4f},{-3 + slow:.4f}")
        (folder / "waves.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")

    return made_once("waves", fill) / "waves.csv"


@pytest.fixture(scope="session")
def tiny_series_config(waves) -> Callable[..., ForecastingConfig]:
    """Return a function that loads the recipe TINY_SERIES with overrides as of --set."""

    def load(*overrides: str) -> ForecastingConfig:
        given = (f"data.root={waves.parent}", *overrides)
        return configuration.load(ForecastingConfig, copy.deepcopy(TINY_SERIES), given, origin="tiny-series")

    return load


@pytest.fixture(scope="session")
def trained_on_series(made_once, tiny_series_config) -> Callable[..., run.Run]:
    """Return a function that returns the run of TINY_SERIES with overrides."""
    return runs_of("tiny-series", tiny_series_config, made_once)


@pytest.fixture(scope="session")
def trained_on_digits(made_once) -> Callable[..., run.Run]:
    """Return a function that returns the run of a small `digits-vit` with overrides."""
    small = ["model.d_model=32", "model.num_heads=2", "model.d_ff=64", "model.dropout=0", "training.max_epochs=null"]
    small += ["training.max_updates=60", "training.validate_every=30", "training.batch_tokens=256"]
    small += ["training.precision=float32", "training.attention_kernel=sdpa", "training.processes=1"]

    def load(*overrides: str) -> TaskConfig:
        return load_recipe(configuration.recipe("digits-vit"), [*small, *overrides], origin="digits-vit")

    return runs_of("tiny-digits", load, made_once)


@pytest.fixture(scope="session")
def digit(tmp_path_factory) -> Path:
    """Return a PNG file of a handwritten digit, 8 x 8 pixels."""
    path: Path = tmp_path_factory.mktemp("items") / "digit.png"
    image, _ = DigitsConfig().read(1)["test"][0]
    Image.fromarray((image * 255).round().astype("uint8")).save(path)
    return path


@pytest.fixture(scope="session")
def tiny_config() -> Callable[..., TranslationConfig]:
    """Return a function that loads the recipe TINY with overrides as of --set."""

    def load(*overrides: str) -> TranslationConfig:
        return configuration.load(TranslationConfig, copy.deepcopy(TINY), overrides, origin="tiny")

    return load


@pytest.fixture(scope="session")
def trained(made_once, tiny_config) -> Callable[..., run.Run]:
    """Return a function that returns the run of TINY with overrides."""
    return runs_of("tiny", tiny_config, made_once)


@pytest.fixture(scope="session")
def test_set(trained) -> TestSet:
    """Return the test set of TINY: 110 unseen sentences with references and gold alignments."""
    text = trained().folder / "data" / "text"
    return test_sets(text, Splits.load(text))[0]
