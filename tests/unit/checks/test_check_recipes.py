"""The model of every recipe computes the same in every way, after two updates on its own data."""

import os

import pytest

from regardant import config, run
from regardant.errors import ConfigError, DataError
from regardant.tasks import load_recipe
from tests.runs import make_earlier

BRIEF = (
    *("training.max_minutes=null", "training.max_epochs=null", "training.max_updates=2", "training.validate_every=2"),
    *("training.precision=float32", "training.attention_kernel=auto", "training.processes=1"),
)

NEED_A_FILE = {
    *("classification", "forecasting", "image_classification", "language_modelling", "node_classification"),
    *("sound_classification", "tagging", "translation"),
}
"""Recipes for files of the user: their models are those of others."""


def test_recipes_that_need_a_file_are_known():
    for name in NEED_A_FILE:
        with pytest.raises(ConfigError, match="missing"):
            load_recipe(config.recipe(name), BRIEF, origin=name)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(config.recipes()) - NEED_A_FILE))
def test_the_ways_of_every_recipe_s_model_agree(name, tmp_path):
    if "REGARDANT_DATA" not in os.environ:
        pytest.skip("no folder of data: set REGARDANT_DATA")

    def train(name, folder):
        recipe = config.recipe(name)
        asked = [*BRIEF, *make_earlier(recipe, tmp_path, train)]
        assert run.train(load_recipe(recipe, asked, origin=name), folder, log=lambda line: None).finished

    try:
        train(name, tmp_path / "run")
    except (ConfigError, DataError) as error:
        if "there is no" in str(error) or "not installed" in str(error) or "missing" in str(error):
            pytest.skip(str(error))
        raise
    found = run.load(tmp_path / "run").check()
    assert not found.failed, "\n".join(found.lines())
    assert len(found.compared) >= 4
