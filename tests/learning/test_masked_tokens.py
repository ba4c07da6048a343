"""A word that is masked is found by the words around it: in a text of one rule the loss falls to what masking hides."""

from random import Random

import pytest

from regardant import run
from regardant.tasks import load_recipe
from tests.runs import STEADY

NAMES = ["ann", "bob", "cleo", "dan", "eve", "finn"]

VERBS = ["sees", "hears", "likes"]

RECIPE = {
    "task": "masked_language_modelling",
    "data": {"source": "a.txt"},
    "input": {"tokenizer": {"kind": "word"}},
    "model": {"d_model": 32, "num_heads": 2, "d_ff": 64, "num_layers": 2, "max_length": 16, "dropout": 0.0},
    "training": {
        "max_updates": 400,
        "batch_tokens": 512,
        "validate_every": 400,
        **STEADY,
        "schedule": {"kind": "linear", "learning_rate": 1e-2, "warmup_steps": 40},
    },
}


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A run over sentences whose second half is their first one turned round: "ann sees bob and bob sees ann"."""
    random, folder = Random(1), tmp_path_factory.mktemp("mirror")
    sentences = []
    for _ in range(600):
        (one, other), verb = random.sample(NAMES, 2), random.choice(VERBS)
        sentences.append(f"{one} {verb} {other} and {other} {verb} {one}\n")
    (folder / "a.txt").write_text("".join(sentences), encoding="utf-8")
    assert run.train(load_recipe(RECIPE, [f"data.root={folder}"]), folder / "run", lambda line: None).finished
    return run.load(folder / "run")


def test_masked_words_are_found_by_their_twins(learned):
    scores = learned.evaluate()["validation"]  # 1.5 nats without the twin; a replaced token leaves a doubt
    assert scores["loss"] < 0.4 and scores["accuracy"] > 0.85


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("ann [MASK] bob and bob sees ann", "ann sees bob and bob sees ann"),
        ("[MASK] hears dan and dan hears cleo", "cleo hears dan and dan hears cleo"),
        ("eve likes finn [MASK] finn likes eve", "eve likes finn and finn likes eve"),
    ],
)
def test_blanks_are_filled_by_the_rule_of_the_text(learned, text, filled):
    found = learned.predict([text])[0]
    assert found.answer == filled and found.details["blanks"][0][0]["probability"] > 0.5
