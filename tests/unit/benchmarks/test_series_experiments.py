"""Experiments over seeds: each runs, names what its chart needs, and its task can be learned."""

import pytest
import torch

from benchmarks.experiments import (
    architectures,
    coreference,
    depth,
    efficient_attention,
    explanations,
    functions,
    head_size,
    induction,
    longer,
    norm_and_warmup,
    one_to_one,
    reach,
    reader,
    specialised_heads,
    varying_distance,
    warmup_and_clipping,
    word_sense,
)
from benchmarks.experiments.__main__ import EXPERIMENTS

TRAINED = [
    architectures, coreference, depth, efficient_attention, explanations, functions, head_size, induction, longer,
    norm_and_warmup, one_to_one, specialised_heads, varying_distance, warmup_and_clipping, word_sense,
]  # fmt: skip

BY_UPDATES = (depth, efficient_attention, head_size, norm_and_warmup, one_to_one, warmup_and_clipping)
"""Those whose curves have a number for every 20 updates."""


@pytest.mark.parametrize("module", TRAINED, ids=lambda module: module.__name__.rpartition(".")[2])
def test_an_experiment_runs_and_is_drawn(module, monkeypatch):
    monkeypatch.setattr(module, "STEPS", 20 if module in BY_UPDATES else 2)
    monkeypatch.setattr(module, "SEEDS", 1)
    for name, kept in (("KINDS", ("window", "rotary", "learned")), ("FUNCTIONS", ("mean of all (equivariant)",))):
        if found := getattr(module, name, None):
            monkeypatch.setattr(module, name, {one: found[one] for one in found if one in kept})
    for name in ("SENTENCES", "PERMUTATIONS"):
        if hasattr(module, name):
            monkeypatch.setattr(module, name, 3)
    for name in ("RATES", "SIZES", "DEPTHS"):
        if found := getattr(module, name, None):
            monkeypatch.setattr(module, name, found[:1])
    getattr(module, "_FOUND", {}).clear() if isinstance(getattr(module, "_FOUND", None), dict) else None
    found = module.measure()
    getattr(module, "_FOUND", {}).clear() if isinstance(getattr(module, "_FOUND", None), dict) else None
    assert found["claim"] and found["seeds"] == 1
    assert all(len(values["median"]) == len(found["x"]) for values in found["series"].values())
    _, draw = EXPERIMENTS[module.__name__.rpartition(".")[2]]
    assert draw(found).startswith("<svg")


def test_a_spread_is_over_seeds_point_by_point():
    assert reader.spread(lambda seed: [seed, 10.0 - seed], 3) == {
        "median": [1, 9], "least": [0, 8], "largest": [2, 10]
    }  # fmt: skip


def test_the_median_of_an_even_number_of_seeds_is_the_mean_of_the_middle_two():
    assert reader.spread(lambda seed: [2.0**seed, 5], 4)["median"] == [3, 5]


def test_each_seed_is_measured_once_for_all_series():
    asked = []
    found = reader.spreads(lambda seed: asked.append(seed) or {"a": [seed], "b": [-seed]}, 3)
    assert found["a"]["median"] == [1] and found["b"] == {"median": [-1], "least": [-2], "largest": [0]}
    assert asked == [0, 1, 2]


def test_the_answer_stands_as_far_back_as_the_last_token_says():
    tokens, answers = varying_distance.draw(torch.Generator().manual_seed(0), None, 50)
    for row, answer in zip(tokens, answers, strict=True):
        far = int(row[-1]) - varying_distance.SYMBOLS
        assert answer[-1] == row[len(row) - 1 - far] and (answer[:-1] == -1).all()


def test_the_cue_decides_the_sense():
    tokens, answers = word_sense.draw(torch.Generator().manual_seed(0), 50)
    for row, answer in zip(tokens, answers, strict=True):
        (place,) = (row == word_sense.BANK).nonzero()[0]
        (cue,) = row[(row >= 1) & (row < 1 + 2 * word_sense.CUES)]
        assert answer[place] == (cue - 1) // word_sense.CUES and (answer >= 0).sum() == 1


def test_a_reader_learns_the_sense_of_a_word_from_its_cue():
    model = reader.Reader(
        0, vocab_size=word_sense.VOCAB, classes=2, max_length=word_sense.LENGTH, encoder={"num_layers": 1}
    )
    test = word_sense.draw(torch.Generator().manual_seed(9), 200)
    reader.fit(model, word_sense.draw, steps=150, rate=3e-3)
    assert reader.accuracy(model, *test) > 0.9


def test_what_a_position_reads_is_counted():
    found = {name: values["median"] for name, values in reach.measure()["series"].items()}
    assert found["convolution, kernel 3"] == [3, 5, 7, 9]
    assert found["convolution, kernel 3, dilation tripled"][:3] == [3, 9, 27]
    assert found["attention"] == [reach.LENGTH] * 4 and found["feed-forward alone"] == [1] * 4
    assert found["attention, window of 4"][0] == 9
    assert found["recurrence"] == [reach.LENGTH // 2 + 1] * 4
