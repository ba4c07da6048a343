"""Which columns of a table hold texts and labels, where nobody says it."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from regardant.data.columns import find_columns
from regardant.data.labelled import TableConfig
from regardant.errors import DataError

ROWS = [("the cat sat", "good"), ("a dog ran home", "bad"), ("birds sing", "good"), ("it is late", "bad")]


def table(folder, *names, rows=ROWS, name="a.csv"):
    cells = [",".join(names)] * bool(names) + [",".join(row) for row in rows]
    (folder / name).write_text("\n".join(cells) + "\n", encoding="utf-8")
    return folder / name


@pytest.mark.parametrize("names", [("text", "label"), ("Review", "Sentiment"), ("comment", "class")])
def test_columns_are_known_by_their_names(tmp_path, names):
    assert find_columns(table(tmp_path, *names), None, None) == names


def test_columns_of_other_names_are_known_by_their_cells(tmp_path):
    rows = [(str(number), label, text) for number, (text, label) in enumerate(ROWS)]
    assert find_columns(table(tmp_path, "id", "mood", "said", rows=rows), None, None) == ("said", "mood")


def test_a_table_without_names_gives_numbers(tmp_path):
    assert find_columns(table(tmp_path), None, None) == ("1", "2")
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress("".join(f"{b}\t{a}\n" for a, b in ROWS).encode()))
    assert find_columns(tmp_path / "a.tsv.gz", None, None) == ("2", "1")


def test_columns_that_are_given_are_kept(tmp_path):
    rows = [(label, text, label) for text, label in ROWS]
    path = table(tmp_path, "label", "said", "mood", rows=rows)
    assert find_columns(path, None, "mood") == ("said", "mood")
    assert find_columns(path, "label", "said") == ("label", "said")
    assert find_columns(tmp_path / "a.jsonl", None, "mood") == ("text", "mood")


@pytest.mark.parametrize(
    ("names", "rows"),
    [
        (("title", "body", "mood"), [(text, text, label) for text, label in ROWS]),
        (("said", "mood", "size"), [(text, label, "big") for text, label in ROWS[:2]] * 2),
        (("said", "number"), [(text, str(number)) for number, (text, _) in enumerate(ROWS)]),
    ],
    ids=["two texts", "two labels", "no labels"],
)
def test_columns_that_cannot_be_told_are_asked_for_by_name(tmp_path, names, rows):
    rows = [(*row[:2], f"{row[2]}{at % 2}") if len(row) == 3 else row for at, row in enumerate(rows)]
    with pytest.raises(DataError, match=f"has the columns {', '.join(names)}: set data.text to the column of texts"):
        find_columns(table(tmp_path, *names, rows=rows), None, None)


@pytest.mark.parametrize(("split", "use"), [("validation", "validate"), ("test", "test"), ("source", "train")])
def test_a_table_of_a_split_without_rows_is_one_line(tmp_path, split, use):
    table(tmp_path, "text", "label")
    table(tmp_path, "text", "label", rows=[("", "good")], name="empty.csv")
    fields = {"source": "a.csv", "text": "text", "label": "label", split: "empty.csv"}
    with pytest.raises(DataError, match=rf"^nothing to {use} on is left of empty\.csv: give more$"):
        TableConfig(root=str(tmp_path), **fields).read(1)


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_labels_may_be_whole_numbers(tmp_path, name):
    rows = [{"text": text, "label": number % 2} for number, (text, _) in enumerate(ROWS)]
    if name == "a.jsonl":
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    else:
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / name)
    config = TableConfig(source=name, root=str(tmp_path)).chosen(lambda line: None)
    assert list(config.items(name)) == [(text, str(number % 2)) for number, (text, _) in enumerate(ROWS)]
    with pytest.raises(DataError, match=r"column label holds .*, not text: .*, or name another column$"):
        TableConfig(source=name, root=str(tmp_path), text="label", label="text").read(1)


def test_what_is_chosen_and_left_out_is_logged(tmp_path):
    table(tmp_path, "said", "mood", rows=[*ROWS, ("no mood here", "")])
    said = []
    chosen = TableConfig(source="a.csv", root=str(tmp_path)).chosen(said.append)
    assert (chosen.text, chosen.label) == ("said", "mood")
    assert said == [
        "a.csv: texts in column said, labels in column mood",
        "rows without a text or a label are left out: 1, first at line 6",
    ]
    assert [label for _, label in chosen.items("a.csv")] == [label for _, label in ROWS]
