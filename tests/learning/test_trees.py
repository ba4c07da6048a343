"""The recipe parse-demo, shortened: trees of sentences with combinations of words that were never trained on."""

import pytest

from regardant import config, run
from regardant.tasks import load_recipe

BRIEF = [
    "data.train_size=4000",
    "data.test_size=50",
    "data.heldout_size=100",
    "model.d_model=64",
    "model.num_heads=2",
    "model.d_ff=128",
    "model.dropout=0",
    "model.encoder.num_layers=1",
    "model.decoder.num_layers=1",
    "training.max_updates=250",
    "training.validate_every=250",
    "training.schedule.learning_rate=1e-2",
    "training.precision=float32",
    "training.attention_kernel=sdpa",
    "training.processes=1",
    "evaluation.bootstrap_samples=10",
]


@pytest.mark.slow
def test_trees_of_unseen_combinations_are_found(tmp_path):
    recipe = load_recipe(config.recipe("parse-demo"), BRIEF)
    assert run.train(recipe, tmp_path / "run", lambda line: None).finished
    loaded = run.load(tmp_path / "run")
    scores = loaded.evaluate()["heldout"]
    assert scores["bracket_f1"] > 0.3 and scores["well_formed"] == 1
    assert any("bracket f1" in line for line in loaded.trained.summary("heldout", scores))
    (found,) = loaded.predict(["The cat slept."])
    assert found.answer.startswith("(S (NP The")
