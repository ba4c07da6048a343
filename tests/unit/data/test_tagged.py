import gzip
import os
from pathlib import Path

import pytest

from regardant import config
from regardant.data.tagged import TaggedConfig
from regardant.errors import ConfigError, DataError


def row(number, form, upos="_", xpos="_", deprel="_"):
    return "\t".join([str(number), form, "_", upos, xpos, "_", "_", deprel, "_", "_"])


DONT = [
    "# text = Don't go!",
    row("1-2", "Don't"),
    row(1, "Do", "AUX", "VB", "aux"),
    row(2, "n't", "PART", "RB", "advmod"),
    row(3, "go", "VERB", "VB", "root"),
    row("3.1", "away", "ADV", "RB"),
    row(4, "!", "PUNCT", ".", "punct"),
]
SOUTH = [row(1, "Go", "VERB", "VB", "root"), row(2, "south", "ADV", "RB", "advmod")]

NAMES = """-DOCSTART- -X- O O

# a comment
U.N. NNP I-NP B-ORG
official NN I-NP O

Ekeus NNP I-NP B-PER
# SYM I-NP O
. . O O
"""


def written(path, text):
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def treebank(tmp_path):
    return written(tmp_path / "a.conllu", "\n\n".join("\n".join(lines) for lines in (DONT, SOUTH)) + "\n\n")


def pairs(text):
    return list(zip(text.words, text.labels, strict=True))


@pytest.mark.parametrize(
    ("label", "labels"),
    [
        (None, [["AUX", "PART", "VERB", "PUNCT"], ["VERB", "ADV"]]),
        ("upos", [["AUX", "PART", "VERB", "PUNCT"], ["VERB", "ADV"]]),
        ("xpos", [["VB", "RB", "VB", "."], ["VB", "RB"]]),
        ("deprel", [["aux", "advmod", "root", "punct"], ["root", "advmod"]]),
    ],
)
def test_a_treebank_gives_its_words_without_contractions_and_empty_nodes(treebank, label, labels):
    texts = list(TaggedConfig(source="", label=label).items(str(treebank)))
    assert [text.words for text in texts] == [["Do", "n't", "go", "!"], ["Go", "south"]]
    assert [text.labels for text in texts] == labels
    assert texts[0].lines == [3, 4, 5, 7] and texts[1].lines == [9, 10]


def test_a_compressed_treebank_is_read(treebank):
    packed = treebank.with_suffix(".conllu.gz")
    packed.write_bytes(gzip.compress(treebank.read_bytes()))
    found, expected = ([pairs(one) for one in TaggedConfig(source="").items(str(path))] for path in (packed, treebank))
    assert found == expected and len(found) == 2


@pytest.mark.parametrize("separator", [" ", "\t"])
def test_columns_give_the_first_as_the_word_and_the_last_as_its_label(tmp_path, separator):
    lines = [line if line.startswith("# a") else line.replace(" ", separator) for line in NAMES.split("\n")]
    path = written(tmp_path / "a.txt", "\n".join(lines))
    first, second = TaggedConfig(source="").items(str(path))
    assert pairs(first) == [("U.N.", "B-ORG"), ("official", "O")] and first.lines == [4, 5]
    assert pairs(second) == [("Ekeus", "B-PER"), ("#", "O"), (".", "O")]


def test_other_columns_are_read_by_number(tmp_path):
    path = written(tmp_path / "a.txt", "1 U.N. NNP O\n2 official NN O\n")
    (text,) = TaggedConfig(source="", word=2, label="3").items(str(path))
    assert pairs(text) == [("U.N.", "NNP"), ("official", "NN")]


def test_a_share_of_the_texts_is_validated_on_and_the_seed_chooses_it(tmp_path):
    path = written(tmp_path / "a.txt", "".join(f"word{number} X\n\n" for number in range(50)))
    settings = TaggedConfig(source=str(path), validation_share=0.2)
    sets = settings.read(seed=1)
    train, validation = ({text.words[0] for text in sets[name]} for name in ("train", "validation"))
    assert len(validation) == 10 and len(train) == 40 and not train & validation
    again, other = ({text.words[0] for text in settings.read(seed)["validation"]} for seed in (1, 2))
    assert again == validation != other


def test_files_of_their_own_are_validated_and_tested_on(tmp_path):
    for name in ("train", "validation", "test"):
        written(tmp_path / f"{name}.txt", f"{name} X\n")
    given = {name: f"{name}.txt" for name in ("validation", "test")}
    sets = TaggedConfig(source="train.txt", root=str(tmp_path), **given).read(seed=1)
    assert {name: [text.words for text in texts] for name, texts in sets.items()} == {
        name: [[name]] for name in ("train", "validation", "test")
    }


@pytest.mark.parametrize(
    ("name", "text", "given", "message"),
    [
        ("a.txt", "a X\nb\n", {}, r"a\.txt line 2 has 1 columns, others 2: correct the line"),
        ("a.txt", "a\nb\n", {}, r"a\.txt line 1: column 1 is data\.word and data\.label: add a column of labels"),
        ("a.txt", "a X\n", {"label": "4"}, r"a\.txt line 1 has 2 columns: set data\.label \(4\) to one of them"),
        ("a.txt", "a X\n", {"word": 3}, r"a\.txt line 1 has 2 columns: set data\.word \(3\) to one of them"),
        ("a.txt", "a\tX\nb\t\n", {}, r"a\.txt line 2 is blank in column 2: correct the line"),
        (
            "a.txt",
            "a X\n",
            {"label": "upos"},
            r"a\.txt is not a treebank \(\.conllu\), and data\.label is 'upos': give a column number",
        ),
        ("a.conllu", "a X\n", {}, r"a\.conllu line 1 has 1 tab-separated columns, CoNLL-U has 10"),
        ("a.conllu", row(1, "a"), {}, r"a\.conllu line 1: 'a' has no upos: give one, or set data\.label"),
        ("a.conllu", row(1, "a", "X"), {"label": "xpos"}, r"a\.conllu line 1: 'a' has no xpos"),
        ("a.conllu", row(1, " ", "X"), {}, r"a\.conllu line 1 has a blank word: write the word in column 2"),
        (
            "a.conllu",
            row(1, "a", "X"),
            {"label": "4"},
            r"a\.conllu is a treebank, and data\.label is '4': give upos, xpos, deprel",
        ),
        ("a.txt", "\n", {}, r"nothing to train on is left of .*a\.txt: give more"),
    ],
)
def test_wrong_data_is_one_line(tmp_path, name, text, given, message):
    path = written(tmp_path / name, text)
    with pytest.raises(DataError, match=message) as refusal:
        TaggedConfig(source=str(path), validation=str(path), **given).read(seed=1)
    assert "\n" not in str(refusal.value)


def test_a_file_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(DataError, match="there is no file"):
        TaggedConfig(source=str(tmp_path / "a.txt")).read(seed=1)


@pytest.mark.parametrize("label", ["pos", "0"])
def test_a_column_that_no_file_has_is_one_line(label):
    with pytest.raises(ConfigError, match=rf"given '{label}'; allowed: upos, xpos, deprel, or a number from 1"):
        config.load(TaggedConfig, {"source": "a.txt", "label": label})


@pytest.mark.skipif("REGARDANT_DATA" not in os.environ, reason="REGARDANT_DATA names no folder of data sets")
def test_the_words_of_a_real_treebank_are_counted():
    path = Path(os.environ["REGARDANT_DATA"]) / "ud_english_ewt" / "dev.conllu.gz"
    texts = list(TaggedConfig(source="").items(str(path)))
    assert len(texts) == 2001 and sum(len(text.words) for text in texts) == 25_147
    assert len({label for text in texts for label in text.labels}) == 17
