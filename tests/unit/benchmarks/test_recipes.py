"""What is kept of a recipe that is measured."""

from types import SimpleNamespace

import pytest

from benchmarks import headers, recipes
from benchmarks.recipes import Asked
from benchmarks.records import Measurement


@pytest.mark.parametrize("text", ["demo", "multi30k-en-de:2", "ladder/linear@2000", "ladder/linear@2000:3"])
def test_what_to_train_is_written_as_it_is_read(text):
    assert str(Asked.parse(text)) == text


@pytest.mark.parametrize(("recipe", "is_translator"), [("demo", True), ("ladder/linear", True), ("shakespeare", False)])
def test_translators_are_evaluated_in_torch(recipe, is_translator):
    _, evaluate = Asked(recipe).commands()
    assert ("--engine torch" in " ".join(evaluate)) is is_translator


@pytest.mark.parametrize(("recipe", "bleu", "met"), [("demo", 80.0, []), ("multi30k-en-de", 40.996, [False])])
def test_a_result_has_its_command_what_was_announced_and_its_bars(monkeypatch, recipe, bleu, met):
    plan = {"seconds": 60.04, "updates": 400, "parameters": 9}
    record = SimpleNamespace(plan=plan, decided=SimpleNamespace(as_dict=lambda: {"precision": "float32"}))
    kept = {}
    monkeypatch.setattr(recipes, "timed", lambda command: 61.0)
    monkeypatch.setattr(recipes, "json_of", lambda command: {"bleu": bleu, "engine": "torch"})
    monkeypatch.setattr(recipes, "training_numbers", lambda run: {"updates": 390})
    monkeypatch.setattr(recipes, "load", lambda run: SimpleNamespace(record=record))
    monkeypatch.setattr(headers, "score_of", lambda result: "")
    monkeypatch.setattr(Measurement, "keep", lambda self, name, result: kept.update(result))
    judged = recipes.measure(Asked(recipe, seed=2), Measurement(scratch=True))
    assert kept["command"] == f'make bench BENCH="{recipe}:2"'
    assert (kept["updates"], kept["announced_updates"], kept["announced_seconds"]) == (390, 400, 60.0)
    assert kept["settings"] == recipes.settings_of(recipe) and kept["decided"] == {"precision": "float32"}
    assert kept["bars"] == judged and [one["pass"] for one in judged] == met
