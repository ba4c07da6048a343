"""The random split of items of files: equal items are in one split, and distinct ones are split as ever."""

import json
from random import Random

import pytest

from regardant.data.item_pairs import PairTableConfig
from regardant.data.labelled import TableConfig
from regardant.data.labelled_graphs import GraphLinesConfig
from regardant.data.lines import LinesConfig
from regardant.data.tagged import TaggedConfig


def table(folder, texts):
    rows = "".join(f"{text}\t{number % 2}\n" for number, text in enumerate(texts))
    (folder / "a.tsv").write_text("text\tlabel\n" + rows, encoding="utf-8")
    sets = TableConfig(root=str(folder), source="a.tsv").read(1)
    return {name: [text for text, _ in items] for name, items in sets.items()}


def lines(folder, texts):
    (folder / "a.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    return LinesConfig(root=str(folder), source="a.txt", validation_share=0.1).read(1)


def tagged(folder, texts):
    words = ("\n".join(f"{word} X" for word in text.split()) for text in texts)
    (folder / "a.txt").write_text("\n\n".join(words) + "\n", encoding="utf-8")
    sets = TaggedConfig(root=str(folder), source="a.txt").read(1)
    return {name: [" ".join(one.words) for one in items] for name, items in sets.items()}


def graphs(folder, texts):
    rows = [{"nodes": [[int(text.split()[1])]], "label": "a"} for text in texts]
    (folder / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    sets = GraphLinesConfig(root=str(folder), source="a.jsonl").read(1)
    return {name: [f"text {graph.features[0, 0]:g}" for graph, _ in items] for name, items in sets.items()}


SOURCES = pytest.mark.parametrize("source", [table, lines, tagged, graphs])


@SOURCES
def test_equal_texts_are_in_one_split(tmp_path, source):
    sets = source(tmp_path, [f"text {number % 20}" for number in range(60)])
    assert {name: len(texts) for name, texts in sets.items()} == {"train": 54, "validation": 6}
    assert not set(sets["train"]) & set(sets["validation"])


@SOURCES
def test_distinct_texts_are_shuffled_one_by_one(tmp_path, source):
    texts = [f"text {number}" for number in range(60)]
    sets = source(tmp_path, texts)
    Random(1).shuffle(texts)
    assert sets == {"train": texts[6:], "validation": texts[:6]}


def test_one_second_item_may_be_in_both_splits(tmp_path):
    rows = "".join(f"first {number}\tsecond {number % 2}\n" for number in range(20))
    (tmp_path / "a.tsv").write_text("first\tsecond\n" + rows, encoding="utf-8")
    sets = PairTableConfig(root=str(tmp_path), source="a.tsv").read(1, files=(False, False))
    assert {pair.second for pair in sets["validation"]} <= {pair.second for pair in sets["train"]}
