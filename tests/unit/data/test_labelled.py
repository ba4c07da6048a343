"""Labels that few items have, in a random split."""

import pytest

from regardant.data.labelled import TableConfig, train_all_labels
from regardant.errors import DataError
from regardant.tasks import load_recipe, task_named

RECIPE = {
    "task": "classification",
    "input": {"kind": "text"},
    "model": {"kind": "encoder_only", "d_model": 8, "num_heads": 2, "d_ff": 8, "num_layers": 1},
    "training": {"max_updates": 1},
}


def prepared(folder, rows, *overrides):
    """Return the lines that the preparation of a table logs."""
    (folder / "a.tsv").write_text("text\tlabel\n" + "".join(f"{a}\t{b}\n" for a, b in rows), encoding="utf-8")
    recipe = RECIPE | {"data": {"kind": "table", "root": str(folder), "source": "a.tsv"}}
    lines = []
    task_named("classification").prepare(load_recipe(recipe, overrides), folder / "run", lines.append)
    return lines


def seed_that_validates_on(folder, rows, text):
    (folder / "a.tsv").write_text("text\tlabel\n" + "".join(f"{a}\t{b}\n" for a, b in rows), encoding="utf-8")
    data = TableConfig(root=str(folder), source="a.tsv")
    return next(seed for seed in range(1000) if text in dict(data.read(seed)["validation"]))


ROWS = [(f"text {number}", "ab"[number % 2]) for number in range(39)]


@pytest.mark.parametrize("rare", [[("odd", "c")], [("odd", "c"), ("odd", "c")], [("odd", "c"), ("odd", "a")]])
def test_a_label_of_one_row_is_trained_on_whatever_the_seed_is(tmp_path, rare):
    seed = seed_that_validates_on(tmp_path, ROWS + rare, "odd")
    lines = prepared(tmp_path, ROWS + rare, f"seed={seed}")
    assert "3 labels: a, b, c" in lines
    assert any(line.startswith(f"{35 + len(rare)} to train on, 4 to validate on; ") for line in lines)


def test_groups_are_exchanged_whole_and_splits_of_known_labels_stay_as_they_are():
    sets = {"train": [("1", "a"), ("2", "a"), ("3", "b"), ("4", "b")], "validation": [("5", "a"), ("6", "b")]}
    assert train_all_labels(sets, lambda one: one[0]) is sets
    sets["validation"] = [("5", "a"), ("5", "c"), ("6", "b")]
    assert train_all_labels(sets, lambda one: one[0]) == {
        "train": [("2", "a"), ("3", "b"), ("4", "b"), ("5", "a"), ("5", "c")],
        "validation": [("6", "b"), ("1", "a")],
    }


def test_items_of_as_many_labels_are_one_line():
    sets = {"train": [("1", "a"), ("2", "b")], "validation": [("3", "c")]}
    with pytest.raises(
        DataError, match=r"^no label is in two different items, so none can be validated on: give more items"
    ):
        train_all_labels(sets, lambda one: one[0])


def test_a_label_of_the_test_set_alone_is_one_line_with_ten_of_the_others(tmp_path):
    (tmp_path / "b.tsv").write_text("text\tlabel\nlate\tnone\n", encoding="utf-8")
    rows = [(f"text {number}", f"label {number % 12:02}") for number in range(60)]
    with pytest.raises(DataError) as refusal:
        prepared(tmp_path, rows, "data.test=b.tsv")
    others = ", ".join(f"label {number:02}" for number in range(10))
    assert str(refusal.value) == (
        f"the test set: label 'none' is in no training item (there are: {others}, ..., 12 in all): correct the label, "
        "leave its items out, or train on items with it"
    )


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", "text\tlabel\na b\tx\n\nc d\ty\n"),
        ("a.jsonl", '{"text": "a b", "label": "x"}\n{"text": "", "label": null}\n{"text": "c d", "label": "y"}\n'),
    ],
)
def test_a_row_that_is_told_as_left_out_is_left_out(tmp_path, name, content):
    (tmp_path / name).write_text(content, encoding="utf-8")
    said = []
    data = TableConfig(root=str(tmp_path), source=name).chosen(said.append)
    assert any("rows without a text or a label are left out: 1, first at line" in line for line in said)
    assert list(data.items(name)) == [("a b", "x"), ("c d", "y")]
