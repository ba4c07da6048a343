"""Images to normalised pixels: what is measured, what is read from files, what is refused."""

import base64
import builtins
import io
import json
import os
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from PIL import Image

from regardant.errors import ConfigError, DataError, RunError
from regardant.modalities import Codec, ImageModalityConfig
from regardant.modalities.pixels import shape_of
from regardant.models.representations import InputShape
from regardant.positions.none import NoPositions

GREY = ImageModalityConfig(patch_size=2)


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


@pytest.fixture
def grey():
    """A codec of images of 4 x 6 pixels."""
    return GREY.fit([drawn(4, 6, seed=seed) for seed in range(5)])


def write(path, array, **options):
    Image.fromarray(array).save(path, **options)
    return str(path)


# statistics


def test_training_images_have_mean_0_and_deviation_1_by_channel():
    images = [drawn(4, 6, 3, seed=seed) // np.array([1, 2, 5], dtype=np.uint8) for seed in range(20)]
    codec = GREY.fit(images)
    block = codec.collate(codec.encode(images))
    assert block.shape == (20, 4, 6, 3) and block.dtype == torch.float32
    assert_allclose(block.mean((0, 1, 2)), 0, atol=1e-5)
    assert_allclose(block.std((0, 1, 2), correction=0), 1, atol=1e-5)


def test_statistics_are_those_of_training_images_whatever_else_is_encoded(grey):
    before = grey.collate(grey.encode([drawn(4, 6)]))
    white = grey.collate(grey.encode([np.full((4, 6), 255, np.uint8)] * 3))
    assert white.min() > 1.3  # not 0, as an image normalised by itself
    assert torch.equal(grey.collate(grey.encode([drawn(4, 6)])), before)


def test_a_channel_that_is_the_same_everywhere_is_not_divided_by_zero():
    codec = GREY.fit([np.full((4, 6), 128, np.uint8)] * 3)
    assert codec.collate(codec.encode([np.full((4, 6), 255, np.uint8)])).max() == pytest.approx(127 / 255)


def test_bytes_and_floats_are_on_one_scale(grey):
    as_bytes = drawn(4, 6)
    (one,), (other,) = grey.encode([as_bytes]), grey.encode([as_bytes.astype(np.float64) / 255])
    assert one.dtype == other.dtype == np.float32 and one.shape == (4, 6, 1)
    assert_allclose(one, other, rtol=1e-6)


def test_a_codec_comes_back_from_a_run(grey, tmp_path):
    grey.save(tmp_path)
    assert GREY.files == ("image.json",) and (tmp_path / "image.json").is_file()
    loaded = GREY.load(tmp_path)
    image = grey.encode([drawn(4, 6)])
    assert torch.equal(loaded.collate(image), grey.collate(image))
    assert loaded.describe() == grey.describe() == "4 x 6 images in 6 patches of 2 x 2"


@pytest.mark.parametrize("content", [None, "{", '{"height": 4}', "[]"])
def test_a_damaged_file_of_statistics_is_one_line(tmp_path, content):
    if content is not None:
        (tmp_path / "image.json").write_text(content, encoding="utf-8")
    with pytest.raises(RunError, match=r"^.*image.json is damaged \(.*: restore it or train again$"):
        GREY.load(tmp_path)


# elements


def test_lengths_and_labels_count_patches(grey):
    assert grey.lengths(np.array([4, 4])).tolist() == [6, 6]
    (image,) = grey.encode([drawn(4, 6)])
    assert grey.labels(image) == [f"row {row}, column {column}" for row in (1, 2) for column in (1, 2, 3)]
    assert grey.representation()(InputShape(8, NoPositions()))(grey.collate([image])).values.shape == (1, 6, 8)


def test_an_image_is_never_cut(grey):
    (image,) = grey.encode([drawn(4, 6)])
    assert grey.cut(image, 6) is image
    with pytest.raises(
        DataError, match=r"^an image has 6 patches, of which at most 5 are read: raise model.max_length"
    ):
        grey.cut(image, 5)
    with pytest.raises(DataError, match=r"^an image has 12 patches"):
        grey.cut(np.concatenate([image, image]), 11)


def test_colours_are_described():
    assert GREY.fit([drawn(4, 6, 3)]).describe() == "4 x 6 x 3 images in 6 patches of 2 x 2"


# layout


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_a_page_draws_the_image_below_the_grid_of_its_patches(channels):
    pixels = drawn(4, 6, channels)
    codec = GREY.fit([pixels])
    (image,) = codec.encode([pixels])
    layout = codec.layout(image)
    assert (layout.rows, layout.columns, list(layout.labels)) == (2, 3, codec.labels(image))
    start = "data:image/png;base64,"
    assert layout.picture.startswith(start)
    with Image.open(io.BytesIO(base64.b64decode(layout.picture.removeprefix(start)))) as picture:
        assert np.array_equal(np.asarray(picture).reshape(pixels.shape), pixels)


def test_other_items_are_a_row_of_names():
    class Numbers(Codec):
        def labels(self, encoded):
            return [str(one) for one in encoded]

    layout = Numbers().layout(np.array([3, 1, 4]))
    assert (layout.labels, layout.rows, layout.columns, layout.picture) == (["3", "1", "4"], 1, 3, None)


# files


@pytest.mark.parametrize("name", ["a.png", "a.npy"])
def test_a_file_is_the_array_it_was_made_of(grey, tmp_path, name):
    array = drawn(4, 6)
    if name == "a.npy":
        np.save(tmp_path / name, array)
    else:
        write(tmp_path / name, array)
    (from_file,), (expected,) = grey.encode([grey.parse(str(tmp_path / name))]), grey.encode([array])
    assert np.array_equal(from_file, expected)


@pytest.mark.parametrize("packed", [True, False])
def test_files_are_training_images_with_the_channels_of_the_first(tmp_path, packed):
    arrays = [drawn(4, 6), drawn(4, 6, 3, seed=1), np.repeat(drawn(4, 6, seed=2)[..., None], 3, 2)]
    paths = [Path(write(tmp_path / f"{number}.png", array)) for number, array in enumerate(arrays)]
    if packed:
        with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
            for path in paths:
                archive.write(path, path.name)
        paths = [zipfile.Path(tmp_path / "a.zip", path.name) for path in paths]
    grey, colours = GREY.fit(paths), GREY.fit(paths[1:])
    assert (grey.statistics.channels, colours.statistics.channels) == (1, 3)
    for codec, number in ((grey, 0), (grey, 2), (colours, 1), (colours, 2)):
        pixels = arrays[number].astype(np.float32) / 255
        pixels = pixels[..., None] if pixels.ndim == 2 else pixels[..., : codec.statistics.channels]
        assert_allclose(codec.encode([paths[number]])[0], pixels, atol=1e-6)


def test_a_file_among_training_images_is_named(tmp_path):
    write(tmp_path / "a.png", drawn(4, 6))
    (tmp_path / "b.png").write_text("no image", encoding="utf-8")
    write(tmp_path / "c.png", drawn(6, 6))
    with pytest.raises(
        DataError, match=r"b\.png cannot be read \(cannot identify image file\): give the path of a PNG"
    ):
        GREY.fit([tmp_path / "a.png", tmp_path / "b.png"])
    with pytest.raises(
        DataError,
        match=r"c\.png is 6 x 6, the first item is 4 x 6: give images of one size, or set input\.resize=auto$",
    ):
        GREY.fit([tmp_path / "a.png", tmp_path / "c.png"])


def test_a_jpeg_in_colours_is_grey_where_the_run_is(grey, tmp_path):
    path = write(tmp_path / "a.jpeg", np.full((4, 6, 3), 100, np.uint8))
    assert_allclose(grey.parse(path), np.full((4, 6, 1), 100 / 255), atol=0.02)


def test_a_photo_is_turned_as_its_camera_was(grey, tmp_path):
    exif = Image.Exif()
    exif[274] = 6  # stands on its left side
    array = np.zeros((6, 4), np.uint8)
    array[:3] = 255  # above, which is on the right when upright
    path = write(tmp_path / "a.jpg", array, exif=exif, quality=100)
    assert_allclose(grey.parse(path)[..., 0].mean(0), [0, 0, 0, 1, 1, 1], atol=0.05)


def photo(path, *entries):
    """Write a JPEG of 4 x 6 pixels whose EXIF data has entries (tag, type, count, 4 bytes)."""
    packed = b"".join(struct.pack(">HHL", *entry[:3]) + entry[3] for entry in entries)
    exif = b"Exif\0\0MM\0*" + struct.pack(">LH", 8, len(entries)) + packed + bytes(4)
    return write(path, np.zeros((4, 6), np.uint8), exif=exif)


@pytest.mark.parametrize("entry", [(274, 3, 1, b"\0\x09\0\0"), (274, 2, 2, b"6\0\0\0"), (274, 7, 1, b"\x06\0\0\0")])
def test_an_orientation_that_is_none_turns_nothing(grey, tmp_path, entry):
    path = photo(tmp_path / "a.jpg", entry)
    assert grey.parse(path).shape == (4, 6, 1)
    assert shape_of(Path(path), "an image") == (4, 6, 1)


NEGATIVE_WIDTH = [(256, 9, 1, b"\xff\xff\xff\xff"), (274, 3, 1, b"\0\x06\0\0")]
"""EXIF data that Pillow reads and cannot write again without the orientation."""


def test_a_damaged_file_whose_name_is_not_utf8_is_named_with_a_replacement(tmp_path):
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.png"))
    path.write_text("no image")
    with pytest.raises(DataError, match=r"/caf\ufffd\.png cannot be read"):
        GREY.require_readable(path)


def damaged_png(path):
    write(path, drawn(400, 600))
    path.write_bytes(path.read_bytes()[:5000])


FILES = {
    "missing.png": (lambda path: None, r"cannot be read \(No such file or directory\): give the path of a PNG, JPEG"),
    "missing.npy": (lambda path: None, r"cannot be read \(No such file or directory\): give the path of a PNG, JPEG"),
    "folder.png": (lambda path: path.mkdir(), r"cannot be read \(Is a directory\)"),
    "cut.png": (damaged_png, r"cannot be read \("),
    "text.png": (lambda path: path.write_text("no image"), r"cannot be read \(cannot identify image file"),
    "text.npy": (lambda path: path.write_text("no image"), r"cannot be read \("),
    "objects.npy": (lambda path: np.save(path, np.array([{}]), allow_pickle=True), r"cannot be read \(Object arrays"),
    "picture.gif": (lambda path: write(path, drawn(4, 6)), r"cannot be read \(cannot identify image file"),
    "large.png": (
        lambda path: write(path, drawn(27, 20)),
        "is 27 x 20, which patches of 2 x 2 do not fill: give an image whose sides",
    ),
    "odd.jpg": (lambda path: photo(path, *NEGATIVE_WIDTH), r"cannot be read \("),
    "deep.png": (lambda path: write(path, drawn(4, 6).astype(np.uint16)), "has more than 8 bits a channel"),
    "clear.png": (lambda path: write(path, drawn(4, 6, 4)), "has transparent pixels, the run's images have none"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_image_of_the_run_is_one_line_with_its_name(grey, tmp_path, name):
    path = tmp_path / name
    FILES[name][0](path)
    with pytest.raises(DataError, match=f"^{path} {FILES[name][1]}") as refused:
        grey.parse(str(path))
    assert "\n" not in str(refused.value)


def test_an_opaque_alpha_channel_does_no_harm(grey, tmp_path):
    array = np.repeat(drawn(4, 6)[..., None], 4, 2)
    array[..., 3] = 255
    assert_allclose(grey.parse(write(tmp_path / "a.png", array))[..., 0], array[..., 0] / 255, atol=1e-6)


def test_without_pillow_files_name_the_command_that_installs_it(grey, tmp_path, monkeypatch):
    path = write(tmp_path / "a.png", drawn(4, 6))
    original = builtins.__import__

    def without_pillow(name, *rest):
        if name == "PIL":
            raise ModuleNotFoundError(name="PIL")
        return original(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_pillow)
    with pytest.raises(ConfigError, match=r"^pictures need Pillow: pip install pillow$"):
        grey.parse(path)


# arrays


@pytest.mark.parametrize(
    ("item", "told"),
    [
        ("a text", "is of type str, not an image: give an array, or another input.kind"),
        (np.zeros(8), "is an array of 8: an image has height x width, or height x width x channels"),
        (np.zeros((3, 32, 32)), "is an array of 3 x 32 x 32: an image has"),
        (np.zeros((0, 4)), "is an array of 0 x 4: an image has"),
        (np.zeros((4, 6), np.int64), "has numbers of type int64: give uint8 .0 to 255. or float .0 to 1."),
        (np.full((4, 6), 16.0), "has numbers from 16 to 16: floats are from 0 .black. to 1 .white."),
        (np.full((4, 6), -0.1), "has numbers from -0.1 to -0.1: floats"),
        (np.full((4, 6), np.nan), "has numbers from nan to nan: floats"),
        (drawn(4, 8), "is 4 x 8, every image of the run is 4 x 6: give images of one size"),
        (drawn(4, 6, 3), "is 4 x 6 x 3, every image of the run is 4 x 6: give images of one size"),
    ],
)
def test_an_array_that_is_no_image_of_the_run_is_one_line(grey, item, told):
    with pytest.raises(DataError, match=f"^item 2 {told}") as refused:
        grey.encode([drawn(4, 6), item])
    assert "\n" not in str(refused.value)


def test_training_images_of_two_sizes_are_refused_with_both():
    with pytest.raises(DataError, match=r"^item 3 is 4 x 8, the first item is 4 x 6: give images of one size, or "):
        GREY.fit([drawn(4, 6), drawn(4, 6), drawn(4, 8)])
    with pytest.raises(DataError, match="no training images"):
        GREY.fit([])


@pytest.mark.parametrize(("size", "allowed"), [((8, 8), "1, 2, 4, 8"), ((9, 6), "1, 3")])
def test_a_patch_that_does_not_divide_the_images_is_refused_with_those_that_do(size, allowed):
    with pytest.raises(
        ConfigError, match=f"^input.patch_size: given 16; images of {size[0]} x {size[1]} allow {allowed}$"
    ):
        ImageModalityConfig().fit([drawn(*size)])


def test_the_file_of_statistics_is_plain_json(grey, tmp_path):
    grey.save(tmp_path)
    content = json.loads((tmp_path / "image.json").read_text(encoding="utf-8"))
    assert content.keys() == {"height", "width", "channels", "mean", "deviation", "patch_size"}
    assert 0 < content["mean"][0] < 1
