"""docs/interop.md shows the kept comparison of exports, with every bar's verdict."""

import json
from pathlib import Path

from benchmarks.bars import markdown, missed
from benchmarks.exports import bars, table
from benchmarks.records import RESULTS

PAGE = (Path(__file__).parents[3] / "docs" / "interop.md").read_text(encoding="utf-8")
KEPT = json.loads((RESULTS / "exports.json").read_text(encoding="utf-8"))


def test_the_page_shows_what_was_measured():
    assert "\n".join(table(KEPT["rows"])) in PAGE
    assert "\n".join(markdown(KEPT["bars"])) in PAGE


def test_bars_are_the_bounds_of_exports():
    assert list(bars(KEPT["rows"])) == KEPT["bars"]
    assert missed(bars([{**KEPT["rows"][0], "identical": 0.98, "bleu": {"run": 30.0, "export": 29.8}}])) == [
        "ctranslate2 in float32: identical translations",
        "ctranslate2 in float32: difference in BLEU",
    ]
