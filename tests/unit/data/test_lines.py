import gzip
from pathlib import Path

import pytest

from regardant.data.lines import LinesConfig
from regardant.data.text_files import place
from regardant.errors import DataError

TREEBANK = """# text = I don't know.
1\tI\t_\t_\t_\t_\t4\tnsubj\t_\t_
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
2\tdo\t_\t_\t_\t_\t4\taux\t_\t_
3\tn't\t_\t_\t_\t_\t4\tadvmod\t_\t_
4\tknow\t_\t_\t_\t_\t0\troot\t_\tSpaceAfter=No
5\t.\t_\t_\t_\t_\t4\tpunct\t_\t_

"""


@pytest.fixture
def folder(tmp_path):
    """A text, a table without names and a treebank, each with blank lines where it can have some."""
    (tmp_path / "a.txt").write_text("one cat\n\n  \ntwo cats\n", encoding="utf-8")
    (tmp_path / "b.tsv").write_text("0\tthree cats\n1\t \n1\tfour cats\n", encoding="utf-8")
    (tmp_path / "c.conllu.gz").write_bytes(gzip.compress(TREEBANK.encode()))
    return tmp_path


def test_an_item_is_a_line_a_row_or_a_sentence(folder):
    data = LinesConfig(root=str(folder), source=("a.txt", "b.tsv", "c.conllu.gz"), text="2", validation="a.txt")
    sets = data.read(seed=1)
    assert sets["train"] == ["one cat", "two cats", "three cats", "four cats", "I do n't know ."]
    assert sets["validation"] == ["one cat", "two cats"]
    assert sets.keys() == {"train", "validation"}


def test_a_share_drawn_by_the_seed_is_split_off_to_validate_on(folder):
    texts = [f"text {number}" for number in range(100)]
    (folder / "long.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    data = LinesConfig(root=str(folder), source="long.txt", validation_share=0.2, test="a.txt")
    sets, again, other = data.read(1), data.read(1), data.read(2)
    assert sets == again and sets["validation"] != other["validation"]
    assert (len(sets["train"]), len(sets["validation"]), len(sets["test"])) == (80, 20, 2)
    assert sorted(sets["train"] + sets["validation"]) == sorted(texts)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"source": "d.txt"}, "there is no file .*d.txt; did you mean a.txt"),
        ({"source": "b.tsv"}, "no column text"),
        ({"source": "empty.txt"}, "nothing to validate on is left of empty.txt: give more|nothing to train on"),
        ({"source": "one.txt"}, "nothing to train on is left of one.txt: give more"),
        ({"source": "a.txt", "test": "empty.txt"}, "nothing to test on is left"),
    ],
)
def test_texts_that_cannot_be_had_are_one_line(folder, fields, told):
    (folder / "empty.txt").write_text("\n", encoding="utf-8")
    (folder / "one.txt").write_text("one\n", encoding="utf-8")
    with pytest.raises(DataError, match=told) as refusal:
        LinesConfig(root=str(folder), **fields).read(seed=1)
    assert "\n" not in str(refusal.value)


def test_a_whole_path_needs_no_root(monkeypatch):
    monkeypatch.delenv("NOWHERE", raising=False)
    assert place("${NOWHERE}", "/a/b.txt") == Path("/a/b.txt")
    with pytest.raises(DataError, match=r"data\.root names NOWHERE, which is not set"):
        place("${NOWHERE}", "b.txt")
