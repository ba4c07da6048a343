"""Tables of items of several parts: cells, labels, splits, and what is refused."""

import json

import pytest

from regardant.data.part_tables import PartTableConfig
from regardant.errors import DataError

ROWS = [(f"{number}.png", question, answer) for number in range(10) for question, answer in (("q", "yes"), ("r", "no"))]


@pytest.fixture
def table(tmp_path):
    lines = ["image\tquestion\tanswer", *("\t".join(row) for row in ROWS)]
    (tmp_path / "a.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path / "a.tsv"


def given(table, **fields):
    fields = {"source": table.name, "files": ["image"], "texts": ["question"], "label": "answer", **fields}
    return PartTableConfig.model_validate({"kind": "part_table", "root": str(table.parent), **fields})


def test_a_row_is_an_item_with_a_label(table):
    items = list(given(table).items(table.name))
    assert [(item["image"], item["question"], label) for item, label in items] == [
        (table.parent / name, question, answer) for name, question, answer in ROWS
    ]
    assert given(table).given(table) == items
    texts = list(given(table, files=[], texts=["question", "image"]).items(table.name))
    assert texts[0] == ({"question": "q", "image": "0.png"}, "yes")


def test_labels_may_be_whole_numbers(tmp_path):
    rows = [{"image": name, "question": question, "answer": len(answer)} for name, question, answer in ROWS]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    found = given(tmp_path / "a.jsonl").items("a.jsonl")
    assert [label for _, label in found] == [str(len(answer)) for _, _, answer in ROWS]


def test_items_of_one_file_stay_in_one_split(table):
    sets = given(table, validation_share=0.3).read(1)
    images = {name: {item["image"] for item, _ in items} for name, items in sets.items()}
    assert not images["train"] & images["validation"]
    assert (len(images["train"]), len(images["validation"]), len(sets["train"])) == (7, 3, 14)
    own = given(table, validation="a.tsv", test="a.tsv").read(1)
    assert [len(own[name]) for name in ("train", "validation", "test")] == [20, 20, 20]


def test_copies_of_one_file_stay_in_one_split(table):
    for number in range(10):
        (table.parent / f"{number}.png").write_text(str(number // 2))
    for seed in range(20):
        sets = given(table, validation_share=0.3).read(seed)
        contents = {name: {item["image"].read_text() for item, _ in items} for name, items in sets.items()}
        assert not contents["train"] & contents["validation"]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"files": [], "texts": []}, "the table has no parts: name their columns in texts or files"),
        ({"texts": ["question", "image"]}, r"a column is named twice \(image, question, image, answer\)"),
        ({"label": "image"}, "a column is named twice"),
    ],
)
def test_columns_that_cannot_be_right_are_refused(table, fields, told):
    with pytest.raises(ValueError, match=told):
        given(table, **fields)


def test_a_blank_cell_is_told_with_its_line(table):
    table.write_text("image\tquestion\tanswer\n1.png\tq\tyes\n2.png\t \tno\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"a\.tsv line 3: question is blank or cannot be read: give one"):
        given(table).read(1)
    with pytest.raises(DataError, match="sound"):
        given(table, files=["sound"]).read(1)
