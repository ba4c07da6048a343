"""The recipe graph-families, shortened: families of random graphs, with and without the structure of each graph."""

import pytest

from regardant import config, run
from regardant.tasks import load_recipe
from tests.runs import STEADY

BLIND = ("input.degree=false", "input.random_walk=0", "input.distance_bias=0")


@pytest.mark.parametrize(
    ("overrides", "least", "most"),
    [
        pytest.param((), 0.55, 1.0, id="structure"),
        # All nodes are the same then, and four families are equally frequent.
        pytest.param((*BLIND, "training.max_epochs=1"), 0.1, 0.4, id="no structure"),
    ],
)
def test_families_are_told_apart_by_their_structure(tmp_path, overrides, least, most):
    given = ["data.size=1000", "data.test_size=200", "training.max_epochs=8"]
    given += [f"training.{name}={value}" for name, value in STEADY.items()]
    given += ["training.validate_every=40", "training.schedule.learning_rate=3e-3", "model.num_layers=2"]
    recipe = load_recipe(config.recipe("graph-families"), [*given, *overrides])
    assert run.train(recipe, tmp_path / "run", lambda line: None).finished
    assert least <= run.load(tmp_path / "run").evaluate()["test"]["accuracy"] <= most
