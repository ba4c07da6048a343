"""CONTRIBUTING.md has a row for every target that measures."""

import re

import pytest

from benchmarks.records import ROOT

TABLES = "\n".join(line for line in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines() if "|" in line)
PHONY = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
PARTS = {"bench-accelerator-training", "bench-accelerator-translation"}
"""Halves of `make bench-accelerator`."""
MEASURING = sorted({target for line in PHONY for target in line.split() if target.startswith("bench")} - PARTS)


@pytest.mark.parametrize("target", MEASURING)
def test_a_target_has_a_row(target):
    assert re.search(rf"^\| `make {target}[` ]", TABLES, re.MULTILINE)
