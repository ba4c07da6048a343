"""Images in folders with nothing else set, and every tool on a run of them."""

import json
import re
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient
from PIL import Image

from regardant import config as configuration
from regardant import run
from regardant.errors import ConfigError, DataError
from regardant.studio.app import make_app
from regardant.tasks import load_recipe, task_named
from tests.runs import runs_of

pytestmark = pytest.mark.xdist_group("image folders")  # one process makes what all tests share

BRIEF = ["training.max_minutes=null", "training.max_updates=60", "training.validate_every=30", "seed=3"]
BRIEF += ["training.precision=float32", "training.attention_kernel=sdpa", "training.processes=1"]
BRIEF += [
    "model.d_model=32",
    "model.num_heads=2",
    "model.d_ff=64",
    "model.num_layers=1",
    "model.dropout=0",
    "training.schedule.warmup_steps=10",
]


def bars(random, label, height=16, width=16):
    """Return an image of standing or of lying bars."""
    wave = np.sin(np.arange(width if label == "standing" else height) * 1.6 + random.uniform(0, 6))
    shades = np.broadcast_to(wave if label == "standing" else wave[:, None], (height, width))
    return (127 + 80 * shades + random.normal(0, 20, (height, width))).clip(0, 255).astype(np.uint8)


def written(folder, count, seed, sizes=((16, 16),)):
    random = np.random.default_rng(seed)
    for label in ("standing", "lying"):
        (folder / label).mkdir(parents=True)
        for number in range(count):
            Image.fromarray(bars(random, label, *sizes[number % len(sizes)])).save(folder / label / f"{number}.png")
    return folder


@pytest.fixture(scope="session")
def pictures(made_once):
    """train and test: folders of standing and of lying bars."""

    def fill(folder):
        written(folder / "train", 60, 1)
        written(folder / "test", 20, 2)

    return made_once("pictures", fill)


@pytest.fixture(scope="session")
def trained_on_pictures(made_once, pictures):
    """The run of image_classification on the training folder, small and with fields set."""

    def load(*overrides):
        given = [f"data.source={pictures / 'train'}", *BRIEF, *overrides]
        return load_recipe(configuration.recipe("image_classification"), given, origin="image_classification")

    return runs_of("tiny-pictures", load, made_once)


def prepared(source, tmp_path, *overrides):
    """Return the lines that preparing a run logs."""
    given = [f"data.source={source}", *BRIEF, *overrides]
    config = load_recipe(configuration.recipe("image_classification"), given, origin="image_classification")
    lines = []
    task_named("classification").prepare(config, tmp_path / "run", lines.append)
    return lines


# nothing set


def test_bars_are_told_apart_with_nothing_set(regardant, trained_on_pictures, pictures):
    said = regardant("evaluate", trained_on_pictures().folder, "--data", pictures / "test", "--json")
    scores = json.loads(said.out)
    assert scores["accuracy"] > 0.9 and scores["items"] == 40


def test_what_is_chosen_is_said(pictures, tmp_path):
    lines = prepared(pictures / "train", tmp_path)
    assert lines == [
        "2 labels: lying, standing",
        "108 to train on, 12 to validate on; images resized to 16 x 16 in 64 patches of 2 x 2",
    ]


@pytest.mark.parametrize(("speed", "minutes"), [(40.0, 7.3), (1e6, 0.5), (1e-2, 30.0)])
def test_a_budget_that_is_chosen_is_150_passes_within_bounds(pictures, tmp_path, speed, minutes):
    config = load_recipe(configuration.recipe("image_classification"), [f"data.source={pictures / 'train'}"])
    prepared = task_named("classification").prepare(config, tmp_path / "run", lambda line: None)
    assert prepared.with_speed(speed, lambda line: None).training.max_minutes == minutes  # 16,200 images at this speed


def test_images_of_several_sizes_become_squares_that_patches_fit(tmp_path):
    written(tmp_path / "mixed", 10, 1, sizes=((30, 40), (44, 26), (50, 60)))
    lines = prepared(tmp_path / "mixed", tmp_path)
    assert lines[-1].endswith("images resized to 24 x 24 in 64 patches of 3 x 3")


def test_folders_of_splits_are_splits(pictures, tmp_path):
    lines = prepared(pictures, tmp_path)
    assert lines[0] == f"{pictures}: splits by folder, test, train"
    assert lines[-1].startswith("108 to train on, 12 to validate on, 40 to test on")


def test_an_archive_is_read_as_its_folder(pictures, tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for path in sorted((pictures / "train").rglob("*.png")):
            archive.write(path, path.relative_to(pictures / "train"))
    assert prepared(tmp_path / "a.zip", tmp_path)[-1].startswith("108 to train on, 12 to validate on; ")


# folders that are no folders of images


def test_files_of_another_kind_are_left_out_and_counted(pictures, tmp_path):
    folder = tmp_path / "given"
    shutil.copytree(pictures / "train", folder)
    (folder / "lying" / "notes.txt").write_text("no image", encoding="utf-8")
    (folder / "standing" / "a.gif").write_bytes(b"GIF89a")
    (folder / "other").mkdir()
    (folder / "other" / "a.txt").write_text("no image", encoding="utf-8")
    shutil.copy(folder / "lying" / "0.png", folder / "lying" / "LOUD.PNG")
    lines = prepared(folder, tmp_path, "data.validation_share=0.2")
    told = [line for line in lines if line.startswith("files other than .png, .jpg, .jpeg, .npy are left out")]
    assert sum(int(line.split(": ")[1].split(",")[0]) for line in told) == 3
    assert not [line for line in lines if line.startswith("files that cannot be read")], "they are not opened"
    assert lines[-2] == "2 labels: lying, standing"
    kept = lines[-1].split(";")[0].replace(" to train on", "").replace(" to validate on", "").split(", ")
    assert sum(map(int, kept)) == 121


def test_files_that_cannot_be_read_are_left_out_and_counted(pictures, tmp_path):
    folder = tmp_path / "given"
    shutil.copytree(pictures / "train", folder)
    corrupt(folder, "3*.png")
    count = len(list(folder.rglob("3*.png")))
    lines = prepared(folder, tmp_path, "data.validation_share=0.2")
    told = [re.search(r"^files that cannot be read are left out: (\d+) of \d+; (.*)$", line) for line in lines]
    found = [match for match in told if match]
    assert sum(int(match[1]) for match in found) == count > 1
    assert all(re.search(r"given/\w+/3\d?\.png cannot be read \(.*\)$", match[2]) for match in found)
    kept = lines[-1].split(";")[0].replace(" to train on", "").replace(" to validate on", "").split(", ")
    assert sum(map(int, kept)) == 120 - count


def test_an_open_run_needs_its_file_of_labels_no_more(trained_on_pictures, pictures, tmp_path):
    shutil.copytree(trained_on_pictures().folder, tmp_path / "run")
    opened = run.load(tmp_path / "run")
    image = str(next(pictures.rglob("*.png")))
    (first,) = opened.predict([image])
    (tmp_path / "run" / "labels.json").unlink()
    assert opened.predict([image])[0].answer == first.answer


def test_a_damaged_file_is_not_left_out_of_an_evaluation(trained_on_pictures, pictures, tmp_path):
    shutil.copytree(pictures / "test", tmp_path / "test")
    corrupt(tmp_path / "test", "3.png")
    with pytest.raises(DataError, match=r"3\.png cannot be read"):
        run.load(trained_on_pictures().folder).evaluate(data=[tmp_path / "test"])


def test_files_of_another_kind_are_not_evaluated(trained_on_pictures, pictures, tmp_path):
    shutil.copytree(pictures / "test", tmp_path / "test")
    (tmp_path / "test" / "lying" / "notes.txt").write_text("no image", encoding="utf-8")
    folder = tmp_path / "run"
    shutil.copytree(trained_on_pictures().folder, folder)
    assert run.load(folder).evaluate(data=[tmp_path / "test"])["test"]["items"] == 40


@pytest.mark.parametrize("given", [".", "lying/.."])
def test_the_current_folder_is_evaluated_under_its_own_name(
    trained_on_pictures, pictures, tmp_path, monkeypatch, given
):
    folder = shutil.copytree(trained_on_pictures().folder, tmp_path / "run")
    monkeypatch.chdir(shutil.copytree(pictures / "test", tmp_path / "bars"))
    assert list(run.load(folder).evaluate(data=[Path(given)])) == ["bars"]
    assert (folder / "evaluation" / "bars.json").is_file()
    monkeypatch.chdir((tmp_path / "bars").rename(tmp_path / "validation"))
    with pytest.raises(ConfigError, match=r"^--data validation has the name of a test set of .*: rename the file$"):
        run.load(folder).evaluate(data=[Path(given)])


def emptied(folder):
    shutil.rmtree(folder / "lying")
    shutil.rmtree(folder / "standing")


def corrupt(folder, files="*.png"):
    for path in sorted(folder.rglob(files)):
        path.write_bytes(path.read_bytes()[:40])


def only_texts(folder):
    for path in list(folder.rglob("*.png")):
        path.rename(path.with_suffix(".txt"))


FOLDERS = {
    "empty": (emptied, r"has 0 files, none in a folder, whose name is the label: correct data\.source or data\.label$"),
    "all corrupt": (
        corrupt,
        r"\.png cannot be read \(.*\): give the path of a PNG, JPEG or \.npy file, or leave it out$",
    ),
    "one label": (
        lambda folder: shutil.rmtree(folder / "standing"),
        r"^all training items have the label 'lying': give items of two labels or more$",
    ),
    "no images": (only_texts, r"^none of \d+ files, such as .*\.txt, is of the kind \.png, \.jpg, \.jpeg, \.npy: give"),
    "missing": (lambda folder: shutil.rmtree(folder), "there is no folder or archive"),
}


@pytest.mark.parametrize("case", FOLDERS)
def test_a_folder_that_cannot_be_trained_on_is_one_line(regardant, pictures, tmp_path, case):
    change, told = FOLDERS[case]
    shutil.copytree(pictures / "train", tmp_path / "given")
    change(tmp_path / "given")
    with pytest.raises(DataError, match=told):
        prepared(tmp_path / "given", tmp_path)
    out = ["--set", f"data.source={tmp_path / 'given'}", "--out", tmp_path / "new"]
    said = regardant("train", "image_classification", *out)
    assert said.code == 2 and said.err.splitlines()[-1].startswith("regardant: ")


# images of other sizes


def test_an_image_of_any_size_is_resized_where_the_recipe_resizes(trained_on_pictures, tmp_path):
    random = np.random.default_rng(7)
    for label in ("standing", "lying"):
        Image.fromarray(bars(random, label)).resize((47, 40)).save(tmp_path / f"{label}.png")
    answers = trained_on_pictures().predict([str(tmp_path / "standing.png"), str(tmp_path / "lying.png")])
    assert [one.answer for one in answers] == ["standing", "lying"]


@pytest.mark.parametrize("positions", ["learned", "two_dimensional"])
def test_a_model_reads_larger_images_patch_by_patch(regardant, trained_on_pictures, tmp_path, positions):
    """Of 24 x 20 pixels, 120 patches, where it was trained on 64; mixed with images of the trained size."""
    trained = trained_on_pictures("input.resize=null", f"model.positions.kind={positions}")
    random = np.random.default_rng(8)
    labels = ["standing", "lying", "lying", "standing", "lying"]
    for number, label in enumerate(labels):
        size = (16, 16) if number == 2 else (24, 20)
        Image.fromarray(bars(random, label, *size)).save(tmp_path / f"{number}.png")
    paths = [str(tmp_path / f"{number}.png") for number in range(len(labels))]
    together = trained.predict(paths)
    alone = [trained.predict([path])[0] for path in paths]
    assert [one.answer for one in together] == [one.answer for one in alone]
    assert sum(one.answer == label for one, label in zip(together, labels, strict=True)) >= 4
    assert all(not one.notes for one in together)
    said = regardant("inspect", trained.folder, paths[0], "--out", tmp_path / "a.json")
    assert said.code == 0
    page = trained.inspect(paths[0])
    assert (page.inputs["input"].layout.rows, page.inputs["input"].layout.columns) == (12, 10)


@pytest.mark.parametrize(
    ("size", "told"),
    [
        ((25, 20), "is 25 x 20, which patches of 2 x 2 do not fill: give an image whose sides are multiples of it, or"),
        ((64, 64), "an image has 1,024 patches, of which at most 256 are read: raise model.max_length"),
    ],
)
def test_an_image_that_the_model_cannot_read_is_one_line(regardant, trained_on_pictures, tmp_path, size, told):
    Image.fromarray(np.zeros(size, np.uint8)).save(tmp_path / "a.png")
    said = regardant("predict", trained_on_pictures("input.resize=null").folder, tmp_path / "a.png")
    assert (said.code, said.err.count("\n")) == (2, 1) and told in said.err


# every tool


def test_every_verb_reads_the_run(regardant, trained_on_pictures, pictures, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(trained_on_pictures().folder, folder)
    image = pictures / "test" / "lying" / "0.png"
    assert json.loads(regardant("predict", folder, image, "--json").out)["predictions"][0]["label"] == "lying"
    assert regardant("inspect", folder, image, "--out", tmp_path / "a.html").code == 0
    assert regardant("measure", folder).code == 0
    assert regardant("evaluate", folder).code == 0
    assert regardant("doctor", folder).code in (0, 1)
    twin = shutil.copytree(folder, tmp_path / "twin")
    assert regardant("compare", folder, twin).code == 0


def test_the_studio_shows_examples_and_takes_files(trained_on_pictures, pictures):
    classifier, image = trained_on_pictures(), pictures / "test" / "lying" / "0.png"
    client = TestClient(make_app([classifier.folder]), base_url="http://localhost")
    name = classifier.folder.as_posix()
    examples = client.get("/api/examples", params={"run": name}).json()
    assert examples and all(one["picture"].startswith("data:image/png;base64,") for one in examples)
    sent = client.post("/api/item", params={"run": name, "name": "a.png"}, content=image.read_bytes()).json()["item"]
    seen = client.post("/api/look", json={"run": name, "text": sent}).json()
    assert seen["answer"] == classifier.inspect(str(image)).answer
    (layout,) = seen["pictures"]["layouts"]
    assert (layout["rows"], layout["columns"]) == (8, 8)


def test_examples_are_images(trained_on_pictures, tmp_path):
    (one,) = trained_on_pictures().trained.examples(1, tmp_path)
    with Image.open(one.item) as picture:
        assert picture.size == (16, 16)
