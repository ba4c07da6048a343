"""The README's table of measured facts quotes results that are kept."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FACTS = {
    "training step beside transformers' Marian model, bfloat16": (
        "training_speed",
        "bfloat16: times transformers Marian",
    ),
    "the same in float32": ("training_speed", "float32: times transformers Marian"),
    "training beside JoeyNMT's own trainer, float32": (
        "training_speed",
        "float32: times JoeyNMT's own trainer on its own batches",
    ),
    "translation beside transformers, beam 5, batches of 32, float32": (
        "decoding_speed",
        "beam 5, batch 32, float32: times transformers",
    ),
}
"""File and name of the measurement of each fact."""


@pytest.mark.parametrize("fact", FACTS)
def test_a_fact_is_the_kept_measurement(fact):
    file, name = FACTS[fact]
    kept = json.loads((ROOT / "benchmarks" / "results" / f"{file}.json").read_text(encoding="utf-8"))
    values = {
        one["value"] for one in [*kept["bars"], *kept.get("goals", [])] if name in (one.get("bar"), one.get("goal"))
    }
    (value,) = values
    assert f"| {fact} | {value:.3g} times as fast |" in README
