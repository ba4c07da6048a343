"""Videos to normalised pixels and tubelets: what is measured, read, named, drawn and refused."""

import base64
import io

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from PIL import Image
from torch.testing import assert_close

from regardant.errors import ConfigError, DataError, RunError
from regardant.modalities import VideoModalityConfig
from regardant.models.representations import InputShape
from regardant.positions.none import NoPositions

CONFIG = VideoModalityConfig(patch_size=2, tubelet_frames=2)


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


@pytest.fixture
def codec():
    """A codec of videos of 4 frames of 4 x 6 pixels."""
    return CONFIG.fit([drawn(4, 4, 6, seed=seed) for seed in range(5)])


def test_training_videos_have_mean_0_and_deviation_1_by_channel():
    videos = [drawn(4, 4, 6, 3, seed=seed) // np.array([1, 2, 5], dtype=np.uint8) for seed in range(10)]
    codec = CONFIG.fit(videos)
    block = codec.collate(codec.encode(videos))
    assert block.shape == (10, 4, 4, 6, 3) and block.dtype == torch.float32
    assert_allclose(block.mean((0, 1, 2, 3)), 0, atol=1e-5)
    assert_allclose(block.std((0, 1, 2, 3), correction=0), 1, atol=1e-5)


def test_a_tubelet_is_a_patch_over_consecutive_frames(codec):
    (video,) = codec.encode([drawn(4, 4, 6)])
    block = codec.collate([video])
    torch.manual_seed(0)
    representation = codec.representation()(InputShape(8, NoPositions()))
    found = representation.embed(block)
    expected, places = [], []
    for time in range(0, 4, 2):
        for row in range(0, 4, 2):
            for column in range(0, 6, 2):
                cube = block[0, time : time + 2, row : row + 2, column : column + 2]
                expected.append(representation.projection(cube.flatten()))
                places.append([time // 2, row // 2, column // 2])
    assert_close(found.values[0], torch.stack(expected))
    assert found.positions.tolist() == places


def test_tubelets_are_counted_and_named(codec):
    (video,) = codec.encode([drawn(4, 4, 6)])
    assert codec.lengths(np.array([4, 4])).tolist() == [12, 12]
    labels = codec.labels(video)
    assert len(labels) == 12
    assert (labels[0], labels[-1]) == ("frames 1 to 2, row 1, column 1", "frames 3 to 4, row 2, column 3")
    assert codec.describe() == "videos of 4 frames of 4 x 6 in 12 tubelets of 2 x 2 x 2"
    single = VideoModalityConfig(patch_size=2, tubelet_frames=1).fit([drawn(4, 4, 6)])
    assert single.labels(video)[0] == "frame 1, row 1, column 1"


def test_a_page_draws_the_frames_of_a_tubelet_side_by_side(codec):
    (video,) = codec.encode([drawn(4, 4, 6)])
    layout = codec.layout(video)
    assert (layout.rows, layout.columns, list(layout.labels)) == (4, 3, codec.labels(video))
    with Image.open(io.BytesIO(base64.b64decode(layout.picture.removeprefix("data:image/png;base64,")))) as opened:
        picture = np.asarray(opened)
    assert picture.shape == (8, 12)
    number = codec.labels(video).index("frames 3 to 4, row 2, column 3")
    top, left = number // layout.columns * 2, number % layout.columns * 4
    cell = picture[top : top + 2, left : left + 4]
    pixels = drawn(4, 4, 6)
    assert np.array_equal(cell, np.hstack([pixels[2, 2:4, 4:6], pixels[3, 2:4, 4:6]]))
    assert layout.height == pytest.approx(8 / 12)


def test_a_codec_comes_back_from_a_run_and_a_video_from_its_file(codec, tmp_path):
    codec.save(tmp_path)
    loaded = CONFIG.load(tmp_path)
    (video,) = codec.encode([drawn(4, 4, 6)])
    path = codec.argument(video, tmp_path, "example")
    assert_close(loaded.collate([loaded.parse(path)]), codec.collate([video]))
    (tmp_path / "video.json").write_text("{", encoding="utf-8")
    with pytest.raises(RunError, match=r"video\.json is damaged"):
        CONFIG.load(tmp_path)


def test_a_video_is_never_cut(codec):
    (video,) = codec.encode([drawn(4, 4, 6)])
    assert codec.cut(video, 12) is video
    with pytest.raises(
        DataError, match=r"^a video has 12 tubelets, of which at most 11 are read: raise model\.max_len"
    ):
        codec.cut(video, 11)


@pytest.mark.parametrize(
    ("item", "told"),
    [
        ("a text", "is of type str, not a video: give an array, or another input.kind"),
        (drawn(4, 6), "is an array of 4 x 6: a video has frames x height x width, or these and channels"),
        (drawn(4, 4, 6, 7), "is an array of 4 x 4 x 6 x 7: a video has"),
        (np.array(3.0), "is an array of one number: a video has frames x height x width"),
        (drawn(6, 4, 6), "is 6 x 4 x 6, every video of the run is 4 x 4 x 6: give videos of one size"),
        (np.full((4, 4, 6), 3.0), "has numbers from 3 to 3: floats are from 0"),
    ],
)
def test_an_array_that_is_no_video_of_the_run_is_one_line(codec, item, told):
    with pytest.raises(DataError, match=f"^item 2 {told}") as refused:
        codec.encode([drawn(4, 4, 6), item])
    assert "\n" not in str(refused.value)


def test_a_file_that_is_no_video_is_named(codec, tmp_path):
    (tmp_path / "a.npy").write_text("no array", encoding="utf-8")
    with pytest.raises(DataError, match=r"a\.npy cannot be read \(.*: give the path of a \.npy file, or leave it out"):
        codec.parse(str(tmp_path / "a.npy"))
    with pytest.raises(DataError, match="there are no training videos: give some"):
        CONFIG.fit([])


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"patch_size": 4}, r"^input\.patch_size: given 4; videos of 4 x 4 x 6 allow 1, 2$"),
        (
            {"patch_size": 2, "tubelet_frames": 3},
            r"^input\.tubelet_frames: given 3; videos of 4 x 4 x 6 allow 1, 2, 4$",
        ),
    ],
)
def test_tubelets_that_do_not_fill_the_videos_are_refused_with_those_that_do(fields, told):
    with pytest.raises(ConfigError, match=told):
        VideoModalityConfig(**fields).fit([drawn(4, 4, 6)])
