"""The recipe digit-streams, shortened: images that are written for captions show their digits."""

import pytest

from benchmarks.digit_streams import measure
from regardant import config, run
from regardant.tasks import load_recipe

BRIEF = [
    "data.codes=16",
    "data.train_size=6000",
    "data.validation_size=100",
    "data.test_size=100",
    "model.d_model=64",
    "model.num_layers=2",
    "model.d_ff=128",
    "model.dropout=0",
    "training.max_updates=500",
    "training.validate_every=250",
    "training.batch_tokens=1024",
    "training.schedule.learning_rate=1e-2",
    "training.precision=float32",
    "training.attention_kernel=sdpa",
    "training.processes=1",
]


@pytest.mark.slow
def test_images_written_for_captions_are_recognised(tmp_path):
    recipe = load_recipe(config.recipe("digit-streams"), BRIEF)
    assert run.train(recipe, tmp_path / "run", lambda line: None).finished
    found = measure(run.load(tmp_path / "run"), samples=3, images=10)
    assert found["images"] == 210 and found["images_broken"] < 0.2
    assert found["images_recognised"] > 0.2  # chance is 0.1
    assert found["test_images_in_codes_recognised"] > 0.9
