"""The recipe in-context, shortened: a digit is copied from behind its letter in the prompt, and no rule is learned."""

from random import Random

import pytest

from benchmarks.in_context import accuracy, of_a_rule, of_training
from regardant import config, run
from regardant.tasks import load_recipe

BRIEF = [
    "data.letters=3",
    "data.examples=11",
    "data.lines=15000",
    "model.max_length=32",
    "model.positions.max_distance=4",
    "training.max_updates=500",
    "training.validate_every=500",
    "training.batch_tokens=1280",
    "training.precision=float32",
    "training.attention_kernel=sdpa",
    "training.processes=1",
    "training.schedule.warmup_steps=30",
    "training.averaging.decay=0.95",
]


@pytest.mark.slow
def test_examples_in_the_prompt_are_read_and_rules_are_not(tmp_path):
    assert run.train(load_recipe(config.recipe("in-context"), BRIEF), tmp_path / "run", lambda line: None).finished
    loaded, random = run.load(tmp_path / "run"), Random(1)
    drawn = [of_training(loaded.config.data, random, 4) for _ in range(300)]
    assert accuracy(loaded, [prompt for prompt in drawn if prompt.known]) > 0.9
    assert accuracy(loaded, [prompt for prompt in drawn if not prompt.known]) < 0.25
    assert accuracy(loaded, [of_a_rule(loaded.config.data, random, 2) for _ in range(300)]) < 0.25
    assert loaded.predict(["a3 c7 b0 c"])[0].answer == "7"
