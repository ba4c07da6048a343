"""Recordings from files to answers, and every tool on a run of them; images from files as well."""

import copy
import json
import shutil
import zipfile

import numpy as np
import pytest
import soundfile
from fastapi.testclient import TestClient
from PIL import Image

from regardant import run
from regardant.studio.app import make_app
from regardant.tasks import load_recipe
from tests.runs import BRIEF, STEADY

pytestmark = pytest.mark.xdist_group("sound")  # one process makes what all tests share

RATE = 8000

RECIPE = {
    "task": "classification",
    "data": {"kind": "folders", "source": "sounds", "test": r".*/\d\.wav"},
    "input": {"kind": "sound", "sample_rate": RATE, "num_mels": 16},
    "model": {"d_model": 32, "num_heads": 2, "num_layers": 1, "d_ff": 64, "max_length": 12, "dropout": 0.0},
    "head": {"kind": "sequence_class", "dropout": 0.0},
    "training": {
        "max_updates": 60,
        "batch_tokens": 256,
        "validate_every": 30,
        **STEADY,
        "schedule": {"kind": "linear", "learning_rate": 5e-3, "warmup_steps": 10},
        "averaging": {"kind": "none"},
    },
}


def chirp(generator, rising):
    """A tone that glides between two frequencies, with noise. Backwards it has the other label."""
    time = np.arange(int(generator.uniform(0.15, 0.4) * RATE)) / RATE
    low, high = generator.uniform(300, 800), generator.uniform(1500, 3500)
    start, end = (low, high) if rising else (high, low)
    phase = 2 * np.pi * (start * time + (end - start) * time**2 / (2 * time[-1]))
    return generator.uniform(0.1, 0.5) * np.sin(phase) + 0.01 * generator.normal(size=len(time))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """sounds/rising and sounds/falling with 110 files each, ten of them to test on; and these in an archive."""
    folder, generator = tmp_path_factory.mktemp("sound"), np.random.default_rng(2)
    for label in ("rising", "falling"):
        (folder / "sounds" / label).mkdir(parents=True)
        for number in range(110):
            soundfile.write(folder / "sounds" / label / f"{number}.wav", chirp(generator, label == "rising"), RATE)
    with zipfile.ZipFile(folder / "test.zip", "w") as archive:
        for path in sorted((folder / "sounds").glob("*/?.wav")):
            archive.write(path, path.relative_to(folder / "sounds"))
    return folder


@pytest.fixture(scope="module")
def load(files):
    """The recipe with fields set as by --set."""
    return lambda *overrides: load_recipe(copy.deepcopy(RECIPE), [f"data.root={files}", *overrides])


@pytest.fixture(scope="module")
def classifier(load, tmp_path_factory):
    """A finished run. Its folder is shared: copy it to change it."""
    folder = tmp_path_factory.mktemp("runs") / "sound"
    assert run.train(load(), folder, lambda line: None).finished
    return run.load(folder)


@pytest.fixture(scope="module")
def sound(files):
    return str(files / "sounds" / "rising" / "3.wav")


@pytest.fixture(scope="module")
def writer(files, tmp_path_factory):
    """A finished run that writes the label as a text."""
    model = RECIPE["model"] | {"num_layers": None, "encoder": {"num_layers": 1}, "decoder": {"num_layers": 1}}
    model = {name: value for name, value in model.items() if value is not None} | {"preset": None}
    recipe = {**RECIPE, "task": "sequence_to_sequence", "model": model, "tokenizer": {"kind": "word"}}
    recipe = {name: value for name, value in recipe.items() if name != "head"}
    recipe |= {"evaluation": {"metrics": ["word_error_rate"]}}
    folder = tmp_path_factory.mktemp("runs") / "writer"
    assert run.train(load_recipe(copy.deepcopy(recipe), [f"data.root={files}"]), folder, lambda line: None).finished
    return run.load(folder)


# answers


def test_sounds_are_told_apart_by_the_order_of_their_frames(classifier, files, tmp_path):
    own = run.load(shutil.copytree(classifier.folder, tmp_path / "run"))
    scores = own.evaluate()
    assert scores["test"]["items"] == 20 and scores["test"]["accuracy"] >= 0.95
    assert own.evaluate(data=[files / "test.zip"])["test.zip"] == scores["test"]
    paths = sorted((files / "sounds").glob("*/?.wav"))
    answers = [one.answer for one in own.predict([str(path) for path in paths])]
    assert np.mean([answer == path.parent.name for answer, path in zip(answers, paths, strict=True)]) == pytest.approx(
        scores["test"]["accuracy"]
    )


def test_recordings_are_answered_alike_alone_and_together(classifier, files):
    paths = [str(files / "sounds" / "falling" / f"{number}.wav") for number in range(8)]
    for path, found in zip(paths, classifier.predict(paths), strict=True):
        (alone,) = classifier.predict([path])
        assert alone.details["probability"] == pytest.approx(found.details["probability"], abs=1e-5)


def test_a_long_recording_is_answered_in_part_with_a_note(classifier, tmp_path):
    soundfile.write(tmp_path / "a.wav", chirp(np.random.default_rng(1), True).repeat(4), RATE)
    (found,) = classifier.predict([str(tmp_path / "a.wav")])
    assert list(found.notes) == ["longer than the model's 12 frames: the rest was not read"]


def test_items_of_a_command_line_are_names_of_files(regardant, classifier, sound, tmp_path):
    said = regardant("predict", classifier.folder, sound)
    assert said.code == 0 and said.lines == [classifier.predict([sound])[0].answer], said.err
    said = regardant("predict", classifier.folder, "--json", stdin=[sound, sound])
    assert [one["item"] for one in json.loads(said.out)["predictions"]] == [sound, sound]


def test_a_folder_is_answered_file_by_file(regardant, classifier, files, sound, tmp_path):
    folder = tmp_path / "more"
    (folder / "deep").mkdir(parents=True)
    for name in ("b.wav", "deep/a.WAV"):
        shutil.copy(sound, folder / name)
    (folder / "notes.txt").write_text("no sound", encoding="utf-8")
    (answer,) = (one.answer for one in classifier.predict([sound]))
    expected = [f"{path}\t{answer}" for path in (sound, folder / "b.wav", folder / "deep" / "a.WAV")]
    said = regardant("predict", classifier.folder, sound, folder)
    assert (said.code, said.lines) == (0, expected), said.err
    said = regardant("predict", classifier.folder, folder, "--output", tmp_path / "answers.tsv")
    assert (tmp_path / "answers.tsv").read_text("utf-8").splitlines() == expected[1:]
    told = json.loads(regardant("predict", classifier.folder, folder, "--json").out)["predictions"]
    assert [one["item"] for one in told] == [str(folder / "b.wav"), str(folder / "deep" / "a.WAV")]
    (tmp_path / "list.txt").write_text(f"{sound}\n{folder / 'b.wav'}\n", encoding="utf-8")
    said = regardant("predict", classifier.folder, "--input", tmp_path / "list.txt")
    assert said.lines == [answer, answer]
    (tmp_path / "none").mkdir()
    said = regardant("predict", classifier.folder, tmp_path / "none")
    assert (said.code, said.err.count("\n")) == (2, 1) and "has no file that ends in .wav, .flac: give some" in said.err


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda path: None, r"cannot be read (No such file or directory): give the path of a .wav or .flac file"),
        (lambda path: path.write_text("no sound"), "cannot be read ("),
        (lambda path: soundfile.write(path, np.zeros(0), RATE), "holds no sound: give a longer recording"),
        (
            lambda path: soundfile.write(path, np.zeros(9), 44100),
            "has 44,100 samples a second, the run's recordings ",
        ),
    ],
)
def test_a_file_that_cannot_be_heard_is_one_line(regardant, classifier, tmp_path, make, told):
    make(tmp_path / "a.wav")
    for verb in ("predict", "inspect"):
        said = regardant(verb, classifier.folder, tmp_path / "a.wav")
        assert (said.code, said.out, said.err.count("\n")) == (2, "", 1) and told in said.err


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        (("input.sample_rate=16000",), "input.sample_rate=8000"),
        (("data.source=test.zip", "data.test=null", "input={kind: text}"), "not texts: set another input.kind"),
        (("data.source=nowhere",), "there is no folder or archive"),
        (("input.num_mels=500",), "num_mels (500) gives bands without a frequency"),
    ],
)
def test_a_recipe_that_cannot_be_right_is_one_line(regardant, files, tmp_path, overrides, told):
    (tmp_path / "a.yaml").write_text(json.dumps(RECIPE), encoding="utf-8")
    given = [word for one in (f"data.root={files}", *overrides) for word in ("--set", one)]
    said = regardant("train", tmp_path / "a.yaml", "--out", tmp_path / "run", *given)
    assert said.code == 2 and told in said.err.splitlines()[-1], said.err


# other tools


def test_attention_is_drawn_over_the_spectrogram(regardant, classifier, sound, tmp_path):
    found = classifier.inspect(sound)
    labels = found.inputs["input"].labels
    assert labels[:3] == ["0.00 s", "0.04 s", "0.08 s"]
    (picture,) = found.pictures
    assert picture.weights.shape[2:] == (len(labels), len(labels))
    assert picture.source_layout is not None and picture.source_layout.picture.startswith("data:image/png")
    for name in ("a.html", "a.svg", "a.png", "a.json"):
        said = regardant("inspect", classifier.folder, sound, "--out", tmp_path / name)
        assert said.code == 0 and said.lines == [found.answer], said.err
    assert picture.source_layout.picture in (tmp_path / "a.html").read_text("utf-8")
    assert json.loads((tmp_path / "a.json").read_text("utf-8"))["inputs"]["input"]["labels"] == labels


def test_attention_is_measured(classifier, tmp_path):
    own = run.load(shutil.copytree(classifier.folder, tmp_path / "run"))
    assert list(own.measure().heads) == ["encoder.self_attention"]


def test_a_healthy_run_has_no_findings_on_padding_and_order(classifier):
    diagnosis = classifier.doctor()
    assert {"padding mask", "order of elements", "padding share"} <= diagnosis.seen.keys()
    told = [finding.what for finding in diagnosis.findings]
    assert not [what for what in told if "padding changes" in what or "order" in what], told


def test_evaluate_and_compare_print_json(regardant, classifier, load, tmp_path):
    folders = [shutil.copytree(classifier.folder, tmp_path / "whole"), tmp_path / "brief"]
    run.train(load(*BRIEF), folders[1], lambda line: None)
    for folder in folders:
        said = regardant("evaluate", folder, "--json")
        assert said.code == 0 and json.loads(said.out)["items"] == 20, said.err
    said = regardant("compare", *folders, "--json")
    assert said.code == 0 and len(json.loads(said.out)["runs"]) == 2, said.err


def test_the_cost_is_planned(regardant, files, tmp_path):
    (tmp_path / "a.yaml").write_text(json.dumps(RECIPE), encoding="utf-8")
    said = regardant("plan", tmp_path / "a.yaml", "--set", f"data.root={files}")
    assert said.code == 0 and "label" in said.out, said.err


def test_the_studio_plays_examples_and_takes_files(classifier, sound):
    client = TestClient(make_app([classifier.folder]), base_url="http://localhost")
    name = classifier.folder.as_posix()
    examples = client.get("/api/examples", params={"run": name}).json()
    validation = classifier.trained._splits()["validation"]
    for example, samples in zip(examples, validation.items, strict=False):
        np.testing.assert_array_equal(classifier.trained.encoded(example["item"]), samples[: 12 * 320])
        assert example["picture"].startswith("data:image/png;base64,")
    with open(sound, "rb") as opened:
        sent = client.post("/api/item", params={"run": name, "name": "a.wav"}, content=opened.read()).json()["item"]
    seen, found = client.post("/api/look", json={"run": name, "text": sent}).json(), classifier.inspect(sound)
    assert seen["answer"] == found.answer
    (layout,) = seen["pictures"]["layouts"]
    assert layout["rows"] * layout["columns"] == len(found.inputs["input"].labels) and layout["aspect"] > 1
    place = seen["pictures"]["places"][0][0]
    steps = client.post("/api/steps", json={"run": name, "text": sent, "attention": place, "query": 2}).json()
    assert steps["keys"] == found.inputs["input"].labels
    assert client.post("/api/streams", json={"run": name, "text": sent}).json()["tokens"] == steps["keys"]
    (told,) = client.get("/api/runs").json()
    assert told["suffixes"] == [".wav", ".flac"]


# texts for recordings


def test_a_text_is_written_for_a_recording(regardant, writer, files, sound, tmp_path):
    own = run.load(shutil.copytree(writer.folder, tmp_path / "run"))
    scores = own.evaluate()["test"]
    assert scores["word_error_rate"] == pytest.approx(1 - scores["exact_match"]) and scores["exact_match"] >= 0.8
    given = own.evaluate(data=[files / "test.zip"])["test.zip"]
    assert [given[name] == scores[name] for name in ("exact_match", "word_error_rate")] == [True, True]
    assert f"  word error rate {scores['word_error_rate']:.4f}" in own.trained.summary("test", scores)
    said = regardant("predict", own.folder, sound)
    assert said.code == 0 and said.lines == [own.predict([sound])[0].answer]
    assert own.measure().heads.keys() == {
        "encoder.self_attention",
        "decoder.self_attention",
        "decoder.cross_attention",
    }
    diagnosis = own.doctor()
    assert "padding mask" in diagnosis.seen


def test_cross_attention_is_drawn_over_the_spectrogram(regardant, writer, sound, tmp_path):
    found = writer.inspect(sound)
    drawn = {one.kind: (one.source_layout is not None, one.target_layout is not None) for one in found.pictures}
    assert drawn == {
        "Encoder self-attention": (True, True),
        "Decoder self-attention": (False, False),
        "Cross-attention": (True, False),
    }
    assert regardant("inspect", writer.folder, sound, "--out", tmp_path / "a.html").code == 0


def test_the_rate_selects_the_weights(writer):
    assert writer.config.metric.name == "word_error_rate" and not writer.config.metric.higher_is_better


# raw samples


def test_raw_samples_are_learned_and_every_tool_reads_them(regardant, load, files, sound, tmp_path):
    overrides = ("input={kind: waveform, block: 80, scales: [4, 1]}", "model.max_length=80", "training.max_updates=120")
    run.train(load(*overrides), tmp_path / "run", lambda line: None)
    trained = run.load(tmp_path / "run")
    assert trained.evaluate()["test"]["accuracy"] >= 0.85
    said = regardant("evaluate", trained.folder, "--json", "--data", files / "test.zip")
    assert said.code == 0 and json.loads(said.out)["items"] == 20, said.err
    found = trained.inspect(sound)
    assert found.inputs["input"].labels[:3] == ["0.00 s 1:4", "0.00 s 1:1", "0.01 s 1:1"]
    assert regardant("inspect", trained.folder, sound, "--out", tmp_path / "a.html").lines == [found.answer]
    assert list(trained.measure().heads) == ["encoder.self_attention"]
    assert "padding mask" in trained.doctor().seen
    client = TestClient(make_app([trained.folder]), base_url="http://localhost")
    name = trained.folder.as_posix()
    examples = client.get("/api/examples", params={"run": name}).json()
    seen = client.post("/api/look", json={"run": name, "text": examples[0]["item"]}).json()
    assert seen["answer"] in ("rising", "falling")


# images in files


def test_images_in_files_are_classified(tmp_path):
    generator = np.random.default_rng(0)
    for label, bright in (("bright", 200), ("dark", 50)):
        (tmp_path / "images" / label).mkdir(parents=True)
        for number in range(30):
            pixels = generator.integers(bright - 50, bright + 50, (8, 8, 3)).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / "images" / label / f"{number}.png")
    recipe = RECIPE | {"input": {"kind": "image", "patch_size": 4}, "model": RECIPE["model"] | {"max_length": 4}}
    recipe |= {"data": {"kind": "folders", "source": str(tmp_path / "images"), "test": r".*/\d\.png"}}
    recipe |= {"training": RECIPE["training"] | {"max_updates": 20, "validate_every": 10}}
    run.train(load_recipe(recipe), tmp_path / "run", lambda line: None)
    trained = run.load(tmp_path / "run")
    assert trained.evaluate()["test"]["accuracy"] == 1
    assert trained.predict([str(tmp_path / "images" / "dark" / "0.png")])[0].answer == "dark"
    (tmp_path / "images" / "dark" / "notes.txt").write_text("no image", encoding="utf-8")
    (tmp_path / "images" / "dark" / "notes.png").write_text("no image", encoding="utf-8")
    lines: list[str] = []
    run.plan(load_recipe(recipe), tmp_path / "other", lines.append)
    assert any(
        "cannot be read are left out: 1 of" in line and "dark/notes.png cannot be read (" in line for line in lines
    )
    assert any("are left out: 1, such as" in line and "notes.txt" in line for line in lines)
