"""The recipe digits-clip as it is shipped: handwritten digits matched with texts that name them."""

import pytest

from regardant import config, run
from regardant.tasks import load_recipe


@pytest.mark.slow
def test_digits_are_matched_with_captions_and_classified_by_prompts(tmp_path):
    given = ["training.precision=float32", "training.attention_kernel=sdpa"]
    recipe = load_recipe(config.recipe("digits-clip"), given, origin="digits-clip")
    assert run.train(recipe, tmp_path / "run", lambda line: None).finished
    found = run.load(tmp_path / "run").evaluate()["test"]
    assert found["class_recall_at_1"] >= 0.95 and found["zero_shot_accuracy"] >= 0.95
