import gzip
import os
from pathlib import Path

import pytest

from regardant.data.treebank import ROOT, read_treebank
from regardant.errors import DataError


def row(number, form, governor="_", relation="_", misc="_"):
    return "\t".join([str(number), form, "_", "_", "_", "_", str(governor), relation, "_", misc])


DONT = [
    "# sent_id = 1",
    row("1-2", "Don't", misc="_"),
    row(1, "Do", 3, "aux"),
    row(2, "n't", 3, "advmod"),
    row(3, "go", 0, "root", "SpaceAfter=No"),
    row("3.1", "away"),
    row(4, "!", 3, "punct", "Lang=en|SpaceAfter=No"),
]
DU = [
    row(1, "Vient", 0, "root"),
    row("2-3", "du"),
    row(2, "de", 4, "case"),
    row(3, "le", 4, "det"),
    row(4, "sud", 1, "obl"),
]


def written(path: Path, *sentences):
    path.write_text("\n\n".join("\n".join(lines) for lines in sentences) + "\n\n", encoding="utf-8")
    return path


def test_words_have_their_places_in_the_text_and_their_governors(tmp_path):
    one, other = read_treebank(written(tmp_path / "a.conllu", DONT, DU))
    assert one.text == "Don't go!"
    assert one.words == [one.text[start:end] for start, end in one.spans] == ["Do", "n't", "go", "!"]
    assert one.governors == [2, 2, ROOT, 2]
    assert one.relations == ["aux", "advmod", "root", "punct"]
    assert other.text == "Vient du sud"
    assert other.words == ["Vient", "de", "le", "sud"]
    assert other.spans == [(0, 5), (6, 8), (6, 8), (9, 12)]


def test_a_compressed_treebank_and_one_without_an_empty_line_at_its_end_are_read(tmp_path):
    path = tmp_path / "a.conllu.gz"
    path.write_bytes(gzip.compress("\n".join(DU).encode()))
    (sentence,) = read_treebank(path)
    assert sentence.relations == ["root", "case", "det", "obl"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["The cat sat."], r"a\.conllu line 1 has 1 tab-separated columns, CoNLL-U has 10: give a treebank"),
        (
            [*DU, row(5, "!", 9, "punct")],
            r"a\.conllu line 6: the governor is '9': give the number of one of the 5 words, or 0",
        ),
        ([row(1, "a", "x", "root")], r"a\.conllu line 1: the governor is 'x': give the number of one of the 1 words"),
        ([row(1, "a", "\u00b2", "root")], r"a\.conllu line 1: the governor is '\u00b2': give the number of one"),
        (
            [row("a-b", "a"), row(1, "a", 0)],
            r"a\.conllu line 1: the id is 'a-b': write a word's as 3, a contraction's as 3-4",
        ),
        ([row("\u00b2", "a", 0)], r"a\.conllu line 1: the id is '\u00b2' and not 1: number the words"),
        (
            [*DU, *DU],
            r"a\.conllu line 6: the id is '1' and not 5: number the words of a sentence from 1 on, and leave a line",
        ),
        ([row("1-3", "ab"), row(1, "a", 0), row(2, "b", 1)], r"line 1: the contraction 1-3 stands before word 1 of 2"),
        ([row("2-1", "ab"), row(1, "a", 0), row(2, "b", 1)], r"line 1: the contraction 2-1 stands before word 1 of 2"),
        (
            [row("1-2", "ab"), row(1, "a", 0), row("2-2", "b"), row(2, "b", 1)],
            r"line 3: the contraction 2-2 stands before word 2 of 2: write the numbers of its first and its last word",
        ),
    ],
)
def test_what_is_no_treebank_is_one_line(tmp_path, lines, message):
    with pytest.raises(DataError, match=message):
        list(read_treebank(written(tmp_path / "a.conllu", lines)))


def test_a_file_that_is_not_there_is_told_at_once(tmp_path):
    with pytest.raises(DataError, match="there is no file"):
        next(read_treebank(tmp_path / "a.conllu"))


@pytest.mark.skipif("REGARDANT_DATA" not in os.environ, reason="REGARDANT_DATA names no folder of data sets")
def test_the_text_of_real_sentences_is_put_together_of_their_words():
    path = Path(os.environ["REGARDANT_DATA"]) / "ud_english_ewt" / "dev.conllu.gz"
    texts = [
        line.removeprefix("# text = ")
        for line in gzip.decompress(path.read_bytes()).decode().split("\n")
        if line.startswith("# text = ")
    ]
    sentences = list(read_treebank(path))
    assert [sentence.text for sentence in sentences] == texts
    assert len(texts) == 2001
    assert all(len(s.words) == len(s.spans) == len(s.governors) == len(s.relations) for s in sentences)
    assert all(s.governors.count(ROOT) == 1 for s in sentences)
