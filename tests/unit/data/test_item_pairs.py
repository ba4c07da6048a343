"""Pairs from tables and digits with captions: their splits and labels, and what is refused."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from regardant.data.captioned_digits import PROMPT, TEMPLATES, CaptionedDigitsConfig, caption
from regardant.data.digit_words import WORDS
from regardant.data.item_pairs import ItemPair, PairTableConfig
from regardant.errors import DataError

TEXTS = (False, False)


def write(path, rows):
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def table(tmp_path):
    """Sixty pairs of thirty first items, two for each."""
    rows = [(f"first {n // 2}", f"second {n}", f"class {n // 2 % 3}") for n in range(60)]
    return write(tmp_path / "a.tsv", [("first", "second", "label"), *rows])


def read(path, seed=1, files=TEXTS, **fields):
    return PairTableConfig(source=path.name, root=str(path.parent), **fields).read(seed, files=files)


def test_labels_may_be_whole_numbers(tmp_path):
    rows = [json.dumps({"first": f"a{n}", "second": "b", "label": n % 2}) + "\n" for n in range(4)]
    (tmp_path / "a.jsonl").write_text("".join(rows), encoding="utf-8")
    pairs = PairTableConfig(source="a.jsonl", root=str(tmp_path), label="label").items("a.jsonl", TEXTS)
    assert [pair.label for pair in pairs] == ["0", "1", "0", "1"]


def test_pairs_of_one_first_item_stay_in_one_split(table):
    sets = read(table)
    first = {name: Counter(pair.first for pair in pairs) for name, pairs in sets.items()}
    assert {name: len(pairs) for name, pairs in sets.items()} == {"train": 54, "validation": 6}
    assert not first["train"].keys() & first["validation"].keys()
    assert set(first["train"].values()) == {2}
    assert read(table) == sets and read(table, seed=2) != sets


def test_pairs_of_copies_of_one_file_stay_in_one_split(tmp_path):
    for number in range(20):
        (tmp_path / f"{number}.png").write_text(str(number // 2))
    path = write(tmp_path / "a.tsv", [("first", "second"), *((f"{n}.png", f"text {n}") for n in range(20))])
    for seed in range(20):
        sets = read(path, seed, files=(True, False), validation_share=0.3)
        contents = {name: {Path(pair.first).read_text() for pair in pairs} for name, pairs in sets.items()}
        assert not contents["train"] & contents["validation"]


def test_columns_that_are_named_by_numbers_keep_their_labels(tmp_path):
    path = write(tmp_path / "a.tsv", [("1", "2", "label"), *((f"a{n}", f"b{n}", f"c{n}") for n in range(3))])
    pairs = PairTableConfig(source=path.name, root=str(tmp_path), first="1", second="2", label="label")
    assert list(pairs.items(path.name, TEXTS)) == [ItemPair(f"a{n}", f"b{n}", f"c{n}") for n in range(3)]


def test_labels_are_read_from_their_column(table):
    assert {pair.label for pair in read(table)["train"]} == {None}
    for pair in read(table, label="label")["train"]:
        assert pair.label == f"class {int(pair.first.split()[1]) % 3}"


def test_files_are_looked_for_beside_the_table(tmp_path):
    (tmp_path / "below").mkdir()
    path = write(tmp_path / "below" / "a.tsv", [("x.png", "an x"), ("y.png", "a y")])
    (pair,) = PairTableConfig(source="below/a.tsv", root=str(tmp_path), first="1", second="2").read(
        1, files=(True, False)
    )["validation"]
    assert pair in (ItemPair(str(path.parent / "x.png"), "an x"), ItemPair(str(path.parent / "y.png"), "a y"))


def test_a_given_set_is_read_whole_and_blank_rows_are_left_out(table):
    write(table.parent / "b.tsv", [("first", "second"), ("p", "q"), ("", "r"), ("s", " ")])
    sets = read(table, validation="b.tsv", test="b.tsv")
    assert sets["validation"] == sets["test"] == [ItemPair("p", "q")]
    assert len(sets["train"]) == 60
    said = []
    PairTableConfig(root=str(table.parent), source=table.name, test="b.tsv").log_left_out(said.append)
    assert said == ["b.tsv: rows with a blank cell are left out: 2, first at line 3"]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"second": "caption"}, "a.tsv has no column caption; it has first, second, label"),
        ({"label": "class"}, "a.tsv has no column class"),
        ({"test": "b.tsv"}, "no file"),
        ({"test": "short.tsv"}, "short.tsv line 2: a cell is missing: complete the line or leave it out"),
        ({"test": "empty.tsv"}, "is left of empty.tsv: give more"),
    ],
)
def test_a_table_that_cannot_be_read_is_one_line(table, fields, told):
    write(table.parent / "short.tsv", [("first", "second"), ("alone",)])
    write(table.parent / "empty.tsv", [("first", "second")])
    with pytest.raises(DataError, match=re.escape(told)) as refusal:
        read(table, **fields)
    assert "\n" not in str(refusal.value)


# digits with captions


def test_captions_name_the_digit_of_their_image():
    sets = CaptionedDigitsConfig().read(1, files=(True, False))
    assert {name: len(pairs) for name, pairs in sets.items()} == {"train": 1293, "validation": 144, "test": 360}
    for pair in sets["train"]:
        assert pair.first.shape == (8, 8)
        assert pair.second in {caption(int(pair.label), template) for template in TEMPLATES}
        assert re.search(rf"\b({pair.label}|{WORDS[int(pair.label)]})$", pair.second)
    assert len({pair.second for pair in sets["train"]}) == 10 * len(TEMPLATES)


def test_the_seed_decides_captions_and_splits():
    def keys(seed):
        pairs = CaptionedDigitsConfig().read(seed, files=(True, False))["test"]
        return [(pair.first.tobytes(), pair.second) for pair in pairs]

    assert keys(1) == keys(1) != keys(2)


def test_articles_fit_and_no_caption_is_a_prompt():
    assert caption(8, TEMPLATES[0]) == "an eight" and caption(3, TEMPLATES[0]) == "a three"
    prompts = CaptionedDigitsConfig().prompts
    assert prompts["7"] == "the digit seven" and len(prompts) == 10
    assert not set(prompts.values()) & {caption(digit, template) for digit in range(10) for template in TEMPLATES}
    assert PROMPT not in TEMPLATES
