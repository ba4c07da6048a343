"""The recipe in-context: a digit is copied from behind its letter in the prompt, and no rule is learned."""

from random import Random

import pytest

from benchmarks.in_context import accuracy, of_a_rule, of_training
from regardant import config, run
from regardant.tasks import load_recipe

FIXED = ["training.precision=float32", "training.attention_kernel=sdpa", "training.processes=1"]


@pytest.mark.slow
def test_examples_in_the_prompt_are_read_and_rules_are_not(tmp_path):
    assert run.train(load_recipe(config.recipe("in-context"), FIXED), tmp_path / "run", lambda line: None).finished
    loaded, random = run.load(tmp_path / "run"), Random(1)
    drawn = [of_training(loaded.config.data, random, 4) for _ in range(300)]
    assert accuracy(loaded, [prompt for prompt in drawn if prompt.known]) > 0.9
    assert accuracy(loaded, [prompt for prompt in drawn if not prompt.known]) < 0.25
    assert accuracy(loaded, [of_a_rule(loaded.config.data, random, 2) for _ in range(300)]) < 0.25
    assert loaded.predict(["a3 c7 b0 c"])[0].answer == "7"
