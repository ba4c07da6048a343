"""Random changes of training images: which they are, that they are replayed, and that training alone makes them."""

import builtins
import re

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from regardant import run
from regardant.config import recipe
from regardant.errors import ConfigError
from regardant.modalities import ImageModalityConfig, augmentation
from regardant.modalities.augmentation import augmented
from regardant.tasks import load_recipe, task_named
from regardant.tasks.items.data import Planned
from regardant.training.checkpoints import latest_checkpoint, load_checkpoint

CHANGES = ["flip", "shift", "rotate", "crop", "brightness"]

SHORT = ["model.d_model=16", "model.num_heads=2", "model.d_ff=16", "model.num_layers=1", "training.max_epochs=null"]
SHORT += ["training.max_updates=12", "training.validate_every=6", "training.precision=float32"]
SHORT += ["training.attention_kernel=sdpa", "training.processes=1"]


def image(*shape):
    return np.random.default_rng(0).random(shape, dtype=np.float32)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_keeps_size_and_range_and_follows_its_seed(change, channels):
    before = image(9, 12, channels)
    found = [augmented(before, [change], [1, 2, number]) for number in range(8)]
    assert all(one.shape == before.shape and one.dtype == np.float32 for one in found)
    assert all(one.min() >= 0 and one.max() <= 1 for one in found)
    assert len({one.tobytes() for one in found}) > 1
    again = [augmented(before, [change], [1, 2, number]) for number in range(8)]
    assert all(np.array_equal(one, other) for one, other in zip(found, again, strict=True))
    assert_allclose(before, image(9, 12, channels))


def test_half_of_the_images_are_flipped_from_left_to_right():
    before = image(4, 6, 1)
    found = [augmented(before, ["flip"], [0, 0, number]) for number in range(60)]
    flipped = [np.array_equal(one, before[:, ::-1]) for one in found]
    assert 15 < sum(flipped) < 45
    assert all(np.array_equal(one, before) for one, was in zip(found, flipped, strict=True) if not was)


@pytest.mark.parametrize("size", [8, 64])
def test_images_are_shifted_by_up_to_an_eighth_of_their_side(size):
    dot = np.zeros((size, size, 1), np.float32)
    dot[size // 2, size // 2] = 1
    places = [np.argwhere(augmented(dot, ["shift"], [number]) > 0.5)[0, :2] - size // 2 for number in range(200)]
    assert_allclose([np.min(places, 0), np.max(places, 0)], [[-size // 8] * 2, [size // 8] * 2])


def test_images_are_rotated_by_up_to_15_degrees():
    dot = np.zeros((65, 65, 1), np.float32)
    dot[31:34, 56:59] = 1  # right of the middle
    places = [np.argwhere(augmented(dot, ["rotate"], [number])[..., 0] > 0.5).mean(0) - 32 for number in range(200)]
    angles = np.degrees([np.arctan2(down, right) for down, right in places])
    assert -16.5 < angles.min() < -13 and 13 < angles.max() < 16.5


def test_crops_keep_at_least_three_fifths_of_the_area():
    ramps = np.stack(np.meshgrid(*[np.linspace(0, 1, 64, dtype=np.float32)] * 2), -1)
    found = [augmented(ramps, ["crop"], [number]) for number in range(200)]
    kept = [np.prod(one.max((0, 1)) - one.min((0, 1))) for one in found]
    assert 0.55 < min(kept) < 0.7 and max(kept) > 0.9


def test_brightness_and_contrast_change_by_up_to_a_fifth():
    found = [augmented(np.full((8, 8, 1), 0.5, np.float32), ["brightness"], [number]).mean() for number in range(200)]
    assert 0.2 < min(found) < 0.4 and 0.6 < max(found) < 0.8


def job_of(tmp_path, *overrides):
    config = load_recipe(recipe("digits-vit"), [*SHORT, *overrides])
    return task_named("classification").prepare(config, tmp_path / "run", lambda line: None).job


def test_training_images_alone_are_changed_anew_in_each_epoch(tmp_path):
    plain, job = job_of(tmp_path), job_of(tmp_path, "input.augment=[shift]")
    order = np.arange(5)

    def of(batches, epoch):
        return batches.inputs(Planned(epoch, 0, order))["input"]

    first = of(job.batches, 0)
    assert not torch.equal(first, of(plain.batches, 0)) and not torch.equal(first, of(job.batches, 1))
    assert torch.equal(first, of(job.batches, 0))
    assert torch.equal(of(job.validation, 0), of(plain.validation, 0))
    one = job.batches.inputs(Planned(0, 3, order[3:]))["input"]
    assert torch.equal(one, first[3:])  # whatever batch an image is in


def test_a_run_that_was_interrupted_ends_like_one_that_was_not(tmp_path):
    # Any other schedule would follow the budget, which the parts of a training differ in.
    schedule = "training.schedule={kind: constant, learning_rate: 1.0e-3, warmup_steps: 2}"

    def trained(name, updates):
        given = [*SHORT, "input.augment=[rotate, brightness]", schedule, f"training.max_updates={updates}"]
        run.train(load_recipe(recipe("digits-vit"), given), tmp_path / name, lambda line: None)
        return load_checkpoint(latest_checkpoint(tmp_path / name))["model"]

    whole = trained("whole", 16)
    trained("parts", 7)
    torch.testing.assert_close(trained("parts", 16), whole, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("input.augment=[spin]", r"input\.augment.*'spin'.*flip"),
        ("input={kind: text, augment: [flip]}", r"input\.augment: unknown key"),
    ],
)
def test_changes_that_cannot_be_made_are_one_line(given, told):
    with pytest.raises(ConfigError, match=told):
        load_recipe(recipe("digits-vit"), [given])


FLIPPED = "{kind: image, augment: [flip]}"


@pytest.mark.parametrize(
    ("name", "override", "field"),
    [
        ("digits-captions", "input.augment=[flip]", "input.augment"),
        ("digits-captions", f"input={{kind: joined, parts: {{a: {FLIPPED}}}}}", "input.parts.a.augment"),
        ("digits-clip", "first.augment=[flip]", "first.augment"),
        ("sst2-masked", "input.bpe_dropout=0.1", "input.bpe_dropout"),
    ],
)
def test_tasks_that_change_no_items_refuse_to(name, override, field):
    told = rf"{re.escape(field)} changes training items of classification and tagging only"
    with pytest.raises(ConfigError, match=told):
        load_recipe(recipe(name), [override])


def test_without_the_library_the_command_that_installs_it_is_named(monkeypatch):
    original = builtins.__import__

    def without(name, *rest):
        if name == "albumentations":
            raise ModuleNotFoundError(name=name)
        return original(name, *rest)

    augmentation._composed.cache_clear()
    monkeypatch.setattr(builtins, "__import__", without)
    codec = ImageModalityConfig(patch_size=2, augment=("flip",)).fit([image(4, 4)])
    with pytest.raises(ConfigError, match=r"^input\.augment needs albumentations: pip install 'regardant\[augment\]'$"):
        codec.augmented(image(4, 4, 1), [0])
