import pytest

from benchmarks.memory import RECIPES, SHORT
from regardant.config.library import recipe
from regardant.tasks import load_recipe


@pytest.mark.parametrize("name", RECIPES)
def test_each_recipe_is_there_bears_a_short_training(name):
    config = load_recipe(recipe(name), [f"training.{field}={value}" for field, value in SHORT.items()])
    assert (config.training.max_minutes, config.training.max_updates) == (None, SHORT["max_updates"])
