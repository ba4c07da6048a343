"""The recipe digit-streams, shortened: images written for captions, and captions written for images."""

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
    "training.max_updates=300",
    "training.validate_every=300",
    "training.batch_tokens=1024",
    "training.schedule.learning_rate=1e-2",
    "training.precision=float32",
    "training.attention_kernel=sdpa",
    "training.processes=1",
]


@pytest.mark.slow
def test_images_are_written_for_captions_and_captions_for_images(tmp_path):
    recipe = load_recipe(config.recipe("digit-streams"), BRIEF)
    assert run.train(recipe, tmp_path / "run", lambda line: None).finished
    loaded = run.load(tmp_path / "run")
    found = measure(loaded, samples=1, images=60)
    assert found["images_recognised"] > 0.3 and found["images_broken"] < 0.1
    assert found["captions_right"] > 0.3
