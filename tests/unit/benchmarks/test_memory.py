import pytest

from benchmarks.memory import FOLDERS, RECIPES, SHORT
from regardant.config.library import recipe
from regardant.tasks import load_recipe


@pytest.mark.parametrize("name", RECIPES)
def test_each_recipe_is_there_bears_a_short_training_and_has_its_folder(name):
    config = load_recipe(recipe(name), [f"training.{field}={value}" for field, value in SHORT.items()])
    assert (config.training.max_minutes, config.training.max_updates) == (None, SHORT["max_updates"])
    brings_its_own = config.data.kind in ("grammar", "reverse") if config.task == "translation" else False
    assert brings_its_own is (name not in FOLDERS)
