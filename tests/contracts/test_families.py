"""The table of docs/families.md: its recipes are of their cells, and what works by configuration is trained."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from regardant import config, run
from regardant.data.recordings import Recording, write_recording
from regardant.errors import ConfigError, DataError
from regardant.modalities import ModalityConfig
from regardant.tasks import MODULES, load_recipe

PAGE = (Path(__file__).parents[2] / "docs" / "families.md").read_text(encoding="utf-8")
HEAD, _, *ROWS = [
    [cell.strip().strip("`") for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("|")
]
CELLS = {(task, column): cell for task, *cells in ROWS for column, cell in zip(HEAD[1:], cells, strict=True)}
BY_CONFIGURATION = [place for place, cell in CELLS.items() if cell == "by configuration"]
REFUSED = [place for place, cell in CELLS.items() if cell.isdigit()]

KINDS = {
    "text": {"kind": "text", "tokenizer": {"kind": "word"}},
    "image": {"kind": "image", "patch_size": 4},
    "video": {"kind": "video", "patch_size": 4, "tubelet_frames": 2},
    "sound": {"kind": "sound"},
    "series": {"kind": "series", "history": 8, "patch_length": 4, "stride": 2},
    "graph": {"kind": "graphs"},
    "several parts": {
        "kind": "joined",
        "parts": {"question": {"kind": "text"}, "image": {"kind": "image", "patch_size": 4}},
    },
}
"""The input of a recipe by column."""

SIZES = {"d_model": 16, "num_heads": 2, "d_ff": 32, "max_length": 64, "dropout": 0.0}
BRIEF = {"max_updates": 2, "validate_every": 1, "batch_tokens": 512, "precision": "float32", "processes": 1}
SEQUENCE_TO_SEQUENCE = {
    "task": "sequence_to_sequence",
    "tokenizer": {"kind": "word"},
    "model": {"preset": None, **SIZES, "encoder": {"num_layers": 1}, "decoder": {"num_layers": 1}},
    "training": BRIEF,
}


def data(column: str, folder: Path) -> dict:
    """A small source of items of a kind, with labels that are texts."""
    if column == "graph":
        lines = [
            {
                "nodes": [[1.0], [2.0], [0.0]],
                "edges": [[0, 1], [1, 2]][: 1 + number % 2],
                "label": f"{1 + number % 2} edges",
            }
            for number in range(20)
        ]
        (folder / "graphs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        return {"kind": "graphs", "source": str(folder / "graphs.jsonl")}
    if column == "video":
        return {"kind": "moving_digits", "train_size": 20, "validation_size": 4, "test_size": 4}
    return {"kind": "digit_questions", "train_size": 20, "validation_size": 4, "test_size": 4}


def pairs(column: str, folder: Path) -> dict:
    """A table of pairs, the first item of a kind."""
    rows = []
    for number in range(20):
        first = " ".join(["red", "cat", "dog"][number % 3 :])
        if column == "sound":
            first = f"{number}.wav"
            samples = np.random.default_rng(number).integers(-99, 99, 2000 + 10 * number).astype(np.int16)
            write_recording(folder / first, Recording(samples, 8000))
        rows.append(f"{first}\tnumber {number}\n")
    (folder / "pairs.tsv").write_text("first\tsecond\n" + "".join(rows), encoding="utf-8")
    return {"source": str(folder / "pairs.tsv")}


def recipe(task: str, column: str, folder: Path) -> dict:
    """A recipe of a task over a kind of item."""
    if task == "sequence_to_sequence":
        model = SEQUENCE_TO_SEQUENCE["model"] | ({"positions": {"kind": "none"}} if column == "graph" else {})
        return {**SEQUENCE_TO_SEQUENCE, "model": model, "data": data(column, folder), "input": KINDS[column]}
    tower = {"kind": "encoder_only", **SIZES, "num_layers": 1}
    return {
        "task": "matching",
        "data": pairs(column, folder),
        "first": KINDS[column],
        "second": KINDS["text"],
        "model": {"kind": "dual_encoder", "size": 8, "first": tower, "second": tower},
        "training": BRIEF,
    }


def test_every_task_and_every_kind_of_item_is_in_the_table():
    own = {kind for kind, made in ModalityConfig.kinds().items() if made.__module__.startswith("regardant.")}
    assert {*MODULES} - {"node_classification", "sentence_embedding"} == {task for task, *_ in ROWS}
    assert own - {"graph", "waveform"} == {fields["kind"] for fields in KINDS.values()}
    assert [*KINDS] == HEAD[1:]


@pytest.mark.parametrize(
    ("place", "name"), [(place, cell) for place, cell in CELLS.items() if cell in config.recipes()]
)
def test_a_recipe_is_of_its_cell(place, name):
    task, column = place
    document = config.recipe(name)
    kinds = {part.get("kind") for section in ("input", "first", "second") if (part := document.get(section))}
    assert document["task"] == task
    assert KINDS[column]["kind"] in kinds | {"text"} or name in ("digit-streams", "digit-questions")


@pytest.mark.parametrize(("task", "column"), BY_CONFIGURATION)
def test_what_works_by_configuration_trains_and_answers(task, column, tmp_path):
    loaded = load_recipe(recipe(task, column, tmp_path))
    assert run.train(loaded, tmp_path / "run", lambda line: None).finished
    trained = run.load(tmp_path / "run")
    (example, *_) = trained.trained.examples(1, tmp_path)
    (answer,) = trained.predict([example.item])
    assert answer.item == example.item and answer.details


@pytest.mark.parametrize(("task", "column"), BY_CONFIGURATION)
def test_a_task_knows_its_sources_without_other_tasks(task, column, tmp_path):
    document = recipe(task, column, tmp_path)
    code = f"from regardant.tasks import load_recipe; load_recipe({document!r})"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(("task", "column"), REFUSED)
def test_what_is_no_cell_is_refused(task, column, tmp_path):
    own = {"classification": "digits-vit", "sequence_to_sequence": "digits-captions", "matching": "digits-clip"}
    first = next(cell for place, cell in CELLS.items() if place[0] == task and cell in config.recipes())
    document = config.recipe(own.get(task, first))
    document["first" if task == "matching" else "input"] = KINDS[column]
    with pytest.raises((ConfigError, DataError)) as refused:
        run.train(load_recipe(document), tmp_path / "run", lambda line: None)
    assert "input" in str(refused.value) or "first" in str(refused.value) or column in str(refused.value)


def test_every_cell_is_a_recipe_a_configuration_or_a_reason():
    reasons = re.findall(r"^(\d)\. ", PAGE, re.MULTILINE)
    used = {cell for cell in CELLS.values() if cell.isdigit()}
    assert used == {*reasons}
    assert all(cell in config.recipes() or cell == "by configuration" or cell.isdigit() for cell in CELLS.values())
