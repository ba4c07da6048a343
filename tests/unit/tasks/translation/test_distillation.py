"""Distillation as docs/using.md shows it: a smaller run trains on the translations of a larger one."""

import json
from pathlib import Path

import pytest

from regardant import run
from regardant.data.parallel import Splits
from tests.conftest import TINY

FEW = 60
"""Pairs of the teacher's training text that the student trains on."""


def write(path, texts):
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path


def pairs_of(dataset):
    return [(row["source"], row["target"]) for row in dataset]


@pytest.fixture
def teacher(trained):
    return trained()


@pytest.fixture
def texts(teacher):
    return Splits.load(teacher.folder / "data" / "text")


@pytest.fixture
def distilled(regardant, teacher, texts, tmp_path) -> Path:
    """The teacher's translations of its training sources, in a folder with these and the validation pairs."""
    source = write(tmp_path / "train.en", texts.train["source"][:FEW])
    for name, column in (("validation.en", "source"), ("validation.fr", "target")):
        write(tmp_path / name, texts.validation[column])
    output = tmp_path / "train.distilled.fr"
    assert regardant("translate", teacher.folder, "--engine", "torch", "--input", source, "--output", output).code == 0
    return output


@pytest.fixture
def student(regardant, distilled, tmp_path) -> run.Run:
    recipe = {**TINY, "data": {"kind": "pairs", "root": str(tmp_path), "source": "train.en", "target": distilled.name}}
    (tmp_path / "small.yaml").write_text(json.dumps(recipe), encoding="utf-8")  # JSON is YAML
    held_out = "{source: validation.en, target: validation.fr}"
    settings = [f"data.validation={held_out}", f"data.test={held_out}", "model.d_model=16", "model.d_ff=32"]
    settings += ["training.max_updates=20", "training.validate_every=20"]
    overrides = [word for setting in settings for word in ("--set", setting)]
    assert regardant("train", tmp_path / "small.yaml", *overrides, "--out", tmp_path / "small").code == 0
    return run.load(tmp_path / "small")


def test_a_smaller_run_trains_on_translations_and_validates_on_references(teacher, texts, distilled, student):
    translations = distilled.read_text(encoding="utf-8").splitlines()
    sources = texts.train["source"][:FEW]
    assert len(translations) == FEW and translations != texts.train["target"][:FEW]
    assert translations[:4] == [found.text for found in teacher.translate(sources[:4])]
    read = Splits.load(student.folder / "data" / "text")
    kept = pairs_of(read.train)
    assert len(kept) > 0.8 * FEW and set(kept) <= set(zip(sources, translations, strict=True))
    assert pairs_of(read.validation) == pairs_of(read.tests["test"]) == pairs_of(texts.validation)
    small, large = (sum(p.numel() for p in one.trained.model.parameters()) for one in (student, teacher))
    assert small < 0.6 * large and student.translate(sources[:1])[0].candidates
