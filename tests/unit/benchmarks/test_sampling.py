"""Both libraries continue one prompt, and speeds are compared in equal precision."""

import pytest
import regardant_models
import torch
import transformers_models
from random_batches import PROMPT, prompt_of

from benchmarks.sampling import CASES, MODEL, OURS, SHAPES, THEIRS, bars, table

SPEEDS = {"float32": {OURS: 200.0, THEIRS: 100.0}, "bfloat16": {OURS: 300.0, THEIRS: 100.0}}


def test_both_models_can_read_the_prompt():
    shape = {**SHAPES[MODEL], "num_layers": 1}
    prompt = prompt_of(shape)
    assert prompt.shape == (PROMPT,)
    ours, theirs = regardant_models.build(shape).eval(), transformers_models.build(shape).eval()
    with torch.inference_mode():
        assert ours.step(prompt[None], ours.start(1, shape["length"])).shape == (1, shape["vocab_size"])
        assert theirs(prompt[None]).logits.shape == (1, PROMPT, shape["vocab_size"])


@pytest.mark.parametrize("precision", SPEEDS)
def test_a_bar_is_missed_by_its_own_precision_alone(precision):
    cases = {name: {one: dict(speeds) for one, speeds in SPEEDS.items()} for name in CASES}
    assert all(one["pass"] for one in bars(cases))
    cases["one text"][precision][THEIRS] = 151.0
    assert [one["bar"] for one in bars(cases) if not one["pass"]] == [f"one text, {precision}: times transformers"]


def test_the_table_shows_both_speeds_and_their_ratio():
    cases = {"one text": SPEEDS}
    lines = list(table({"tokens_per_second": cases, "bars": list(bars(cases)), "versions": {}}))
    assert lines[1].split() == ["one", "text,", "float32", "200", "100", "2", "3"]
