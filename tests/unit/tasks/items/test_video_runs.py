"""A classifier of videos from its data to its answers, and every tool on a run of it."""

import json
import shutil

import numpy as np
import pytest
from fastapi.testclient import TestClient

from regardant import config as configuration
from regardant.data.moving_digits import DIRECTIONS, MovingDigitsConfig
from regardant.errors import ConfigError, DataError
from regardant.studio.app import make_app
from regardant.tasks import load_recipe, task_named
from tests.runs import runs_of

pytestmark = pytest.mark.xdist_group("videos")  # one process makes what all tests share

SMALL = ["data.train_size=800", "data.validation_size=40", "data.test_size=100", "data.frames=4", "data.side=8"]
SMALL += ["training.max_epochs=null", "training.max_updates=160", "training.validate_every=80", "training.processes=1"]
SMALL += ["training.batch_tokens=512", "training.precision=float32", "training.attention_kernel=sdpa"]
SMALL += ["training.schedule={kind: linear, learning_rate: 4.0e-3, warmup_steps: 20}"]
NARROW = ["model.d_model=48", "model.num_heads=2", "model.d_ff=96", "model.num_layers=1", "model.dropout=0"]


def load(*overrides):
    given = [*SMALL, *([] if "model.kind=bag" in overrides else NARROW), *overrides]
    return load_recipe(configuration.recipe("moving-digits"), given, origin="moving-digits")


@pytest.fixture(scope="session")
def trained_on_videos(made_once):
    return runs_of("tiny-videos", load, made_once)


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    """The path of a .npy file with a digit that moves, and its direction."""
    path = tmp_path_factory.mktemp("videos") / "a.npy"
    frames, label = MovingDigitsConfig(train_size=1, validation_size=1, test_size=1, frames=4, side=8).read(9)["test"][
        0
    ]
    np.save(path, (frames * 255).round().astype(np.uint8))
    return str(path), label


def test_directions_are_told_from_tubelets_and_not_from_a_bag_of_them(trained_on_videos):
    """Chance is 1/8. A bag knows the mean of each pixel of a tubelet and no movement."""
    assert trained_on_videos().evaluate()["test"]["accuracy"] > 0.75
    assert trained_on_videos("model.kind=bag").evaluate()["test"]["accuracy"] < 0.4


def test_a_video_is_answered_by_every_verb(regardant, trained_on_videos, video, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(trained_on_videos().folder, folder)
    path, label = video
    found = json.loads(regardant("predict", folder, path, "--json").out)["predictions"][0]
    assert found["label"] == label and set(found["probabilities"]) == set(DIRECTIONS)
    assert regardant("inspect", folder, path, "--out", tmp_path / "a.html").code == 0
    assert regardant("inspect", folder, path, "--out", tmp_path / "a.svg").code == 0
    assert json.loads(regardant("evaluate", folder, "--json").out)["items"] == 100
    assert regardant("measure", folder).code == 0
    assert regardant("doctor", folder).code in (0, 1)
    twin = shutil.copytree(folder, tmp_path / "twin")
    assert regardant("compare", folder, twin).code == 0


def test_an_inspection_names_and_draws_tubelets(trained_on_videos, video):
    found = trained_on_videos().inspect(video[0])
    seen = found.inputs["input"]
    assert seen.labels[-1] == "frames 3 to 4, row 2, column 2"
    assert (seen.layout.rows, seen.layout.columns) == (4, 2) and seen.layout.picture


def test_the_studio_shows_examples_and_takes_files(trained_on_videos, video):
    classifier = trained_on_videos()
    client = TestClient(make_app([classifier.folder]), base_url="http://localhost")
    name = classifier.folder.as_posix()
    examples = client.get("/api/examples", params={"run": name}).json()
    assert examples and all(one["picture"].startswith("data:image/png;base64,") for one in examples)
    with open(video[0], "rb") as opened:
        content = opened.read()
    sent = client.post("/api/item", params={"run": name, "name": "a.npy"}, content=content).json()["item"]
    seen = client.post("/api/look", json={"run": name, "text": sent}).json()
    assert seen["answer"] == classifier.inspect(video[0]).answer


@pytest.mark.parametrize(
    ("override", "error", "told"),
    [
        ("input.patch_size=3", ConfigError, r"^input\.patch_size: given 3; videos of 4 x 8 x 8 allow 1, 2, 4, 8$"),
        ("model.max_length=4", DataError, "a video has 8 tubelets, of which at most 4 are read"),
        ("input={kind: image, patch_size: 4}", DataError, "is an array of 4 x 8 x 8"),
    ],
)
def test_settings_that_do_not_fit_the_videos_are_one_line(tmp_path, override, error, told):
    with pytest.raises(error, match=told):
        prepared = task_named("classification").prepare(load(override), tmp_path / "run", lambda line: None)
        prepared.job.batches.require_cut()


def test_videos_in_folders_are_items(tmp_path):
    sets = MovingDigitsConfig(train_size=24, validation_size=1, test_size=1, frames=4, side=8).read(2)
    for number, (frames, label) in enumerate(sets["train"]):
        (tmp_path / "videos" / label).mkdir(parents=True, exist_ok=True)
        np.save(tmp_path / "videos" / label / f"{number}.npy", frames)
    document = configuration.recipe("moving-digits") | {"data": {"kind": "folders", "source": str(tmp_path / "videos")}}
    lines = []
    task_named("classification").prepare(load_recipe(document), tmp_path / "run", lines.append)
    assert lines[-1] == "22 to train on, 2 to validate on; videos of 4 frames of 8 x 8 in 8 tubelets of 2 x 4 x 4"
