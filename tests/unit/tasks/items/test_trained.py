"""Scores of items that are longer than the model."""

import json
import shutil

from regardant import run


def test_items_that_are_cut_are_counted(trained_on_labels, tmp_path):
    opened = run.load(shutil.copytree(trained_on_labels().folder, tmp_path / "run"))
    rows = [f"{'the cat sees the dog ' * times}.\tcat first\n" for times in (1, 2, 4, 5)]  # the model reads 16 tokens
    (tmp_path / "long.tsv").write_text("".join(rows), encoding="utf-8")
    scores = opened.evaluate(data=[tmp_path / "long.tsv"])["long.tsv"]
    assert (scores["items"], scores["cut"]) == (4, 2)
    assert json.loads((opened.folder / "evaluation" / "long.tsv.json").read_text("utf-8"))["cut"] == 2
    (line,) = opened.trained.summary("long.tsv", scores)
    assert line.endswith(", 4 items; items cut to the model's length: 2")
    own = opened.evaluate()["test"]
    assert own["cut"] == 0 and opened.trained.summary("test", own)[0].endswith(" 60 items")
