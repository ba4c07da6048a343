"""Recordings in a folder for each label, and nothing else set: what the recipe `sound_classification` chooses."""

import shutil

import numpy as np
import pytest
import soundfile

from regardant import config, run
from regardant.tasks import load_recipe

RATE = 8000
BRIEF = [
    "training.max_minutes=null",
    "training.max_updates=2",
    "training.precision=float32",
    "training.attention_kernel=sdpa",
    "training.processes=1",
]
LONGEST = 20
"""Elements of the longest recording."""


def tone(seconds, pitch=440, rate=RATE):
    return 0.3 * np.sin(2 * np.pi * pitch * np.arange(int(seconds * rate)) / rate)


@pytest.fixture(scope="module")
def sounds(tmp_path_factory):
    """high and low with ten recordings each, from 0.08 to 0.8 seconds long; every other one has two channels."""
    folder = tmp_path_factory.mktemp("sounds") / "sounds"
    for label, pitch in (("high", 1000), ("low", 200)):
        (folder / label).mkdir(parents=True)
        for number in range(10):
            heard = tone(0.04 * (LONGEST if number % 3 == 0 else 2), pitch + number)
            soundfile.write(folder / label / f"{number}.wav", np.stack([heard] * (1 + number % 2), 1), RATE)
    return folder


def load(folder, *overrides):
    given = [f"data.source={folder}", *BRIEF, *overrides]
    return load_recipe(config.recipe("sound_classification"), given, origin="sound_classification")


def test_what_is_left_out_is_chosen_from_the_recordings_and_logged(sounds, tmp_path):
    lines = []
    assert run.train(load(sounds), tmp_path / "run", lines.append).finished
    chosen = [
        "2 labels: high, low",
        "18 to train on, 2 to validate on; recordings of 8,000 samples a second in frames of 40 ms and 40 mel bands",
        "the model reads 20 frames (model.max_length); the longest training item has 20",
    ]
    assert [line for line in lines if line in chosen] == chosen, lines
    loaded = run.load(tmp_path / "run")
    assert loaded.config.model.max_length == loaded.trained.max_length == LONGEST
    soundfile.write(tmp_path / "a.wav", tone(0.9), RATE)
    (found,) = loaded.predict([str(tmp_path / "a.wav")])
    assert list(found.notes) == ["longer than the model's 20 frames: the rest was not read"]
    resumed = run.train(load(sounds, "training.max_updates=3"), tmp_path / "run", lambda line: None)
    assert resumed.finished and resumed.cursor.update == 3


def test_an_archive_of_folders_is_learned(sounds, tmp_path):
    archive = shutil.make_archive(str(tmp_path / "sounds"), "zip", sounds.parent, sounds.name)
    overrides = ("training.max_updates=30", "training.schedule.warmup_steps=5", "training.validate_every=30")
    run.train(load(archive, *overrides), tmp_path / "run", lambda line: None)
    assert run.load(tmp_path / "run").evaluate(data=[sounds])["sounds"]["accuracy"] == 1


def test_what_is_set_is_not_chosen(sounds, tmp_path):
    overrides = ("model.max_length=7", "input.num_mels=16", "training.batch_tokens=64")
    lines = []
    run.train(load(sounds, *overrides), tmp_path / "run", lines.append)
    loaded = run.load(tmp_path / "run")
    assert loaded.trained.max_length == 7 and "16 mel bands" in loaded.trained.codec.describe()
    assert any("items are cut to the model's 7 frames" in line for line in lines)


def test_a_batch_holds_the_longest_recording_that_is_read(sounds, tmp_path):
    lines = []
    prepared, *_ = run.plan(load(sounds, "training.batch_tokens=16"), tmp_path / "run", lines.append)
    assert prepared.config.model.max_length == 16
    assert "the model reads 16 frames (model.max_length); the longest training item has 20" in lines


def test_a_budget_is_chosen_and_announced(sounds, tmp_path):
    overrides = ("training.max_updates=null", "training.max_minutes=auto")
    prepared, _, planned = run.plan(load(sounds, *overrides), tmp_path / "run", lambda line: None)
    assert prepared.config.training.max_minutes == 0.5
    assert planned.seconds == pytest.approx(30, rel=0.1)


def empty_folder(folder):
    shutil.rmtree(folder)
    folder.mkdir()


def damaged(folder, files):
    for path in folder.rglob(files):
        path.write_bytes(b"RIFF\0\0\0\0WAVE" + str(path).encode())  # equal files would stay in one split


def test_recordings_that_cannot_be_read_are_left_out_and_counted(sounds, tmp_path):
    shutil.copytree(sounds, tmp_path / "given")
    damaged(tmp_path / "given", "1.wav")
    lines: list[str] = []
    run.plan(load(tmp_path / "given"), tmp_path / "run", lines.append)
    told = [line for line in lines if line.startswith("files that cannot be read are left out: ")]
    count = sum(int(line.split(": ")[1].split(" of ")[0]) for line in told)
    assert count == len(list((tmp_path / "given").rglob("1.wav"))) > 0


BROKEN = {
    "damaged": (lambda folder: damaged(folder, "*.wav"), ".wav cannot be read ("),
    "empty": (
        lambda folder: soundfile.write(folder / "low" / "1.wav", np.zeros(0), RATE),
        "1.wav holds no sound: give a longer recording, or leave it out",
    ),
    "of another rate": (
        lambda folder: soundfile.write(folder / "low" / "1.wav", tone(0.1, rate=16000), 16000),
        "samples a second, the recordings before it ",
    ),
    "nothing": (empty_folder, "sounds has 0 files, none in a folder, whose name is the label: correct data.source"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_recordings_that_cannot_be_trained_on_are_one_line(regardant, sounds, tmp_path, name):
    change, told = BROKEN[name]
    folder = shutil.copytree(sounds, tmp_path / "sounds")
    change(folder)
    overrides = [word for one in (f"data.source={folder}", "seed=3", *BRIEF) for word in ("--set", one)]
    said = regardant("train", "sound_classification", "--out", tmp_path / "run", *overrides)
    assert said.code == 2 and told in said.err.splitlines()[-1], said.err
    assert "Traceback" not in said.err and not (tmp_path / "run" / "run.yaml").exists()
