"""Items for a page: examples from validation data, and files that a browser sends."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient

from regardant.data.grammar import LECTURE_SENTENCES
from regardant.data.parallel import Splits
from regardant.studio import items
from regardant.studio.app import make_app


@pytest.fixture(scope="module")
def client(trained, trained_on_digits, trained_on_labels):
    folders = [trained().folder, trained_on_digits().folder, trained_on_labels().folder]
    return TestClient(make_app(folders), base_url="http://localhost")


@pytest.fixture
def digits(trained_on_digits):
    return trained_on_digits().folder.as_posix()


def test_examples_of_images_are_files_that_can_be_looked_at(client, digits, trained_on_digits):
    run = trained_on_digits()
    examples = client.get("/api/examples", params={"run": digits}).json()
    validation = run.trained._splits()["validation"]
    assert len(examples) == items.EXAMPLES and len({one["item"] for one in examples}) == items.EXAMPLES
    for example, pixels in zip(examples, validation.items, strict=False):
        np.testing.assert_allclose(run.trained.encoded(example["item"]), pixels, atol=0.5 / 255)
        assert example["picture"].startswith("data:image/png;base64,")
    seen = client.post("/api/look", json={"run": digits, "text": examples[0]["item"]}).json()
    assert seen["pictures"]["title"] == "example-1.png"
    assert seen["pictures"]["layouts"] == [
        {"rows": 2, "columns": 2, "picture": examples[0]["picture"], "aspect": 1.0, "places": [], "edges": []}
    ]
    assert seen["answer"] == run.predict([examples[0]["item"]])[0].answer


def test_examples_of_texts_are_texts(client, trained_on_labels):
    run = trained_on_labels()
    examples = client.get("/api/examples", params={"run": run.folder.as_posix()}).json()
    split = run.trained._splits()["validation"]
    assert len(examples) == items.EXAMPLES
    for example, ids in zip(examples, split.items, strict=False):
        assert example["picture"] is None
        np.testing.assert_array_equal(run.trained.encoded(example["item"]), ids)


def test_examples_of_a_language_model_are_lines_that_it_can_read(trained_on_text):
    run = trained_on_text()
    client = TestClient(make_app([run.folder]), base_url="http://localhost")
    examples = client.get("/api/examples", params={"run": run.folder.as_posix()}).json()
    text = run.trained.tokenizer.decode(run.trained._validation().tolist())
    assert 0 < len(examples) <= items.EXAMPLES
    for example in examples:
        assert example["item"] in text and example["item"].strip() and "\n" not in example["item"]
        assert run.inspect(example["item"]).item == example["item"]


def test_examples_of_a_translator_are_validation_sentences_with_known_words(trained):
    run = trained("tokenizer.vocab_size=1000", "training.max_updates=10", "training.validate_every=10")
    client = TestClient(make_app([run.folder]), base_url="http://localhost")
    examples = client.get("/api/examples", params={"run": run.folder.as_posix()}).json()
    validation, codec = Splits.load(run.folder / "data" / "text").validation, run.trained.generator.codec
    known = [text for text in validation["source"] if not codec.unknown(codec.encode([text])[0])]
    lectures = [pair.source for pair in LECTURE_SENTENCES if not codec.unknown(codec.encode([pair.source])[0])]
    assert [one["item"] for one in examples] == [*lectures[::-1], *known][: items.EXAMPLES]
    assert 0 < len(known) < len(validation)


def test_a_run_without_data_has_no_examples(trained_on_digits, tmp_path):
    bare = Path(shutil.copytree(trained_on_digits().folder, tmp_path / "bare"))
    shutil.rmtree(bare / "data")
    other = TestClient(make_app([bare]), base_url="http://localhost")
    assert other.get("/api/examples", params={"run": bare.as_posix()}).json() == []
    assert other.get("/api/examples", params={"run": "elsewhere"}).status_code == 404


def test_a_sent_file_is_looked_at_as_if_its_path_were_given(client, digits, digit):
    sent = client.post(
        "/api/item", params={"run": digits, "name": "../../mine.PNG"}, content=digit.read_bytes()
    ).json()["item"]
    assert Path(sent).name == "mine.PNG" and "regardant-studio" in sent and ".." not in sent
    ours, theirs = (
        client.post("/api/look", json={"run": digits, "text": item}).json() for item in (sent, digit.as_posix())
    )
    assert ours["shares"] == theirs["shares"] and ours["pictures"]["weights"] == theirs["pictures"]["weights"]
    assert (ours["pictures"]["title"], theirs["pictures"]["title"]) == ("mine.PNG", digit.as_posix())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.gif", "'a.gif' is not a file that this run reads: choose one that ends in .png, .jpg, .jpeg, .npy"),
        (".png", "'.png' is not a file that this run reads: choose one that ends in .png, .jpg, .jpeg, .npy"),
        ("a\0.png", "'a\\x00.png' is not a file that this run reads: choose one that ends in .png, .jpg, .jpeg, .npy"),
    ],
)
def test_a_file_of_another_kind_is_refused_in_one_line(client, digits, name, message):
    answer = client.post("/api/item", params={"run": digits, "name": name}, content=b"x")
    assert (answer.status_code, answer.json()["detail"]) == (422, message)


def test_a_file_with_a_name_that_is_too_long_is_refused(client, digits):
    answer = client.post("/api/item", params={"run": digits, "name": "\u732b" * 86 + ".png"}, content=b"x")
    assert answer.status_code == 422
    assert answer.json()["detail"] == "the name of the file has 262 bytes, allowed are 255: shorten it"


def test_a_file_for_a_run_of_texts_is_refused(client, trained_on_labels):
    run = trained_on_labels().folder.as_posix()
    answer = client.post("/api/item", params={"run": run, "name": "a.png"}, content=b"x")
    assert (answer.status_code, answer.json()["detail"]) == (422, f"{run} reads texts, not files: type a text")


def test_a_large_file_is_refused(client, digits, monkeypatch):
    monkeypatch.setattr(items, "LARGEST_FILE", 2**20)
    answer = client.post("/api/item", params={"run": digits, "name": "a.png"}, content=b"x" * (2**20 + 1))
    assert answer.status_code == 422
    assert answer.json()["detail"] == "a.png is larger than 1 MB: give its path on this machine"


def test_every_run_has_a_folder_of_its_own_for_examples():
    files = items.ItemFiles()
    assert files.of_run(Path("/a_b/c")) != files.of_run(Path("/a/b_c"))
    assert files.of_run(Path("/", *["a" * 100] * 3)).is_dir()


def test_the_oldest_files_are_removed(monkeypatch):
    monkeypatch.setattr(items, "MOST_FILES", 2)
    files = items.ItemFiles()
    paths = [files.keep(name, name.encode()) for name in ("a.png", "b.png", "a.png")]
    assert [path.is_file() for path in paths] == [False, True, True] and paths[2].read_bytes() == b"a.png"


def test_the_list_of_runs_has_suffixes_and_units(client):
    translator, images, texts = client.get("/api/runs").json()
    assert (translator["suffixes"], translator["unit"], translator["loss_unit"]) == (
        [],
        "target token",
        "nats per token",
    )
    assert images["suffixes"] == [".png", ".jpg", ".jpeg", ".npy"] and texts["suffixes"] == []
    assert (images["unit"], images["loss_unit"]) == ("label", "nats per label")
