"""The size and the patches that are chosen for images, and images resized."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from PIL import Image

from regardant.errors import ConfigError, RunError
from regardant.modalities import ImageModalityConfig
from regardant.modalities.image_size import common_size, fitting_patch, resized
from regardant.modalities.pixels import shape_of

OPEN = ImageModalityConfig(patch_size="auto", resize="auto")


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


@pytest.mark.parametrize(
    ("size", "side"),
    [((8, 8), 2), ((28, 28), 4), ((32, 32), 4), ((64, 64), 8), ((224, 224), 28), ((100, 75), 25), ((60, 100), 10)],
)
def test_patches_are_the_smallest_of_which_an_image_has_at_most_64(size, side):
    assert fitting_patch(size) == side


@pytest.mark.parametrize("size", [(97, 101), (101, 101), (4, 6), (2, 400)])
def test_images_that_no_patches_cut_into_9_to_64_have_no_patch_size(size):
    assert fitting_patch(size) is None


@pytest.mark.parametrize(
    ("sizes", "size"),
    [
        ([(28, 28)] * 3, (28, 28)),
        ([(48, 96)] * 3, (48, 96)),
        ([(300, 300)] * 3, (64, 64)),
        ([(101, 101)] * 3, (64, 64)),
        ([(4, 6)] * 3, (8, 8)),
        ([(300, 200), (200, 300), (90, 70)], (64, 64)),
        ([(31, 50), (50, 30), (33, 33)], (24, 24)),
    ],
)
def test_images_of_one_size_keep_it_and_others_become_squares(sizes, size):
    assert common_size(sizes) == size
    assert fitting_patch(size)


def test_a_smaller_image_has_the_means_of_the_pixels_and_keeps_its_channels():
    image = np.arange(64, dtype=np.float32).reshape(8, 8, 1) / 63
    image = np.concatenate([image, 1 - image], 2)
    found = resized(image, (4, 4))
    assert found.shape == (4, 4, 2) and found.dtype == np.float32
    assert_allclose(found.mean((0, 1)), image.mean((0, 1)), atol=1e-3)
    assert_allclose(found[1, 1], image[2:4, 2:4].mean((0, 1)), atol=1e-3)
    checked = np.indices((8, 8)).sum(0)[..., None].astype(np.float32) % 2  # every other pixel is black
    assert_allclose(resized(checked, (2, 2)), 0.5, atol=0.1)
    assert resized(image, (8, 8)) is image


def test_larger_images_stay_between_black_and_white():
    found = resized(np.eye(8, dtype=np.float32)[..., None], (20, 13))
    assert found.shape == (20, 13, 1) and found.min() >= 0 and found.max() <= 1


def test_training_images_of_one_size_are_not_resized_and_other_images_become_like_them():
    codec = OPEN.fit([drawn(32, 32, seed=seed) for seed in range(3)])
    assert codec.describe() == "images resized to 32 x 32 in 64 patches of 4 x 4"
    (same,), (other,) = codec.encode([drawn(32, 32)]), codec.encode([drawn(90, 40)])
    assert_allclose(same[..., 0], drawn(32, 32) / 255, atol=1e-6)
    assert other.shape == (32, 32, 1)


def test_training_images_of_several_sizes_become_squares(tmp_path):
    codec = OPEN.fit([drawn(50, 70, 3), drawn(40, 90, 3), drawn(60, 41, 3)])
    assert codec.describe() == "images resized to 40 x 40 x 3 in 64 patches of 5 x 5"
    codec.save(tmp_path)
    assert OPEN.load(tmp_path).describe() == codec.describe()


def test_a_size_that_is_given_is_taken():
    codec = ImageModalityConfig(patch_size=4, resize=(8, 12)).fit([drawn(50, 70), drawn(40, 90)])
    assert codec.describe() == "images resized to 8 x 12 in 6 patches of 4 x 4"


def test_the_head_of_a_file_tells_the_size_of_the_image_as_it_is_shown(tmp_path):
    exif = Image.Exif()
    exif[274] = 6  # stands on its left side
    Image.fromarray(drawn(6, 4)).save(tmp_path / "lying.jpg", exif=exif)
    Image.fromarray(drawn(6, 4)).save(tmp_path / "upright.png")
    np.save(tmp_path / "a.npy", drawn(6, 4))
    Image.fromarray(drawn(6, 4, 3)).convert("P").save(tmp_path / "colours.png")
    shapes = [shape_of(tmp_path / name, name) for name in ("lying.jpg", "upright.png", "colours.png", "a.npy")]
    assert [*shapes, shape_of(drawn(6, 4), "a")] == [(4, 6, 1), (6, 4, 1), (6, 4, 3), (6, 4, 1), (6, 4, 1)]


def test_a_grey_image_among_others_takes_no_colours_away(tmp_path):
    paths = [tmp_path / "grey.png", tmp_path / "red.png"]
    Image.fromarray(drawn(16, 16)).save(paths[0])
    Image.fromarray(drawn(16, 16, 3)).save(paths[1])
    codec = OPEN.fit(paths)
    grey, red = codec.encode(paths)
    assert_allclose(red, drawn(16, 16, 3) / np.float32(255), atol=1e-6)
    assert_allclose(grey, np.repeat(drawn(16, 16)[..., None], 3, 2) / np.float32(255), atol=1e-6)


def test_images_that_fit_no_patches_are_refused_where_none_is_resized():
    told = r"^input\.patch_size: auto finds no size that cuts images of 97 x 101 into 9 to 64 patches: set input"
    with pytest.raises(ConfigError, match=told):
        ImageModalityConfig(patch_size="auto").fit([drawn(97, 101)])


def test_a_run_without_its_chosen_patch_size_is_damaged(tmp_path):
    OPEN.fit([drawn(32, 32)]).save(tmp_path)
    path = tmp_path / "image.json"
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), "patch_size": None}), encoding="utf-8")
    with pytest.raises(RunError, match=r"image\.json is damaged \(it has no patch_size\)"):
        OPEN.load(tmp_path)
