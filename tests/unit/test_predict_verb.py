"""`regardant predict` on a classifier of texts and of images, a translator and a language model."""

import json
import sys
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from regardant import cli, run
from regardant.tasks import load_recipe

GOOD, BAD = ["fine", "lovely", "bright"], ["dull", "awful", "grey"]

TRAINING = {
    "max_updates": 60,
    "batch_tokens": 256,
    "validate_every": 30,
    "precision": "float32",
    "attention_kernel": "sdpa",
    "processes": 1,
    "schedule": {"kind": "linear", "learning_rate": 1e-2, "warmup_steps": 5},
}
MODEL = {"d_model": 16, "num_heads": 2, "d_ff": 32, "num_layers": 1, "max_length": 16, "dropout": 0.0}


def classifier(folder, data, modality, **model):
    document = {"data": data, "input": modality, "model": {**MODEL, **model}, "training": TRAINING}
    config = load_recipe({"task": "classification", **document})
    run.train(config, folder, lambda line: None)
    return folder


@pytest.fixture(scope="module")
def texts_run(tmp_path_factory):
    """The folder of a run that tells good films from bad ones."""
    folder = tmp_path_factory.mktemp("texts")
    random = Random(1)
    rows = [(f"a {random.choice(words)} film", label) for words, label in ((GOOD, "good"), (BAD, "bad")) * 60]
    (folder / "films.tsv").write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    data = {"kind": "table", "root": str(folder), "source": "films.tsv", "text": "1", "label": "2"}
    return classifier(folder / "run", data, {"kind": "text", "tokenizer": {"kind": "word"}})


@pytest.fixture(scope="module")
def digits_run(tmp_path_factory):
    """The folder of a run whose model reads images 8 pixels high in 4 patches, and no more than 4."""
    folder = tmp_path_factory.mktemp("digits") / "run"
    return classifier(folder, {"kind": "digits"}, {"kind": "image", "patch_size": 4}, max_length=4)


FILMS = [f"a {word} film" for word in (*GOOD, *BAD)]
ANSWERS = ["good"] * 3 + ["bad"] * 3


def test_a_classifier_prints_a_label_for_each_argument(regardant, texts_run):
    said = regardant("predict", texts_run, *FILMS)
    assert (said.code, said.lines, said.err) == (0, ANSWERS, "")


def test_items_come_from_stdin_or_a_file_a_line_each_and_blank_ones_stay_blank(regardant, texts_run, tmp_path):
    lines = [FILMS[0], "", FILMS[3], "  ", "", FILMS[1]]
    expected = ["good", "", "bad", "", "", "good"]
    assert regardant("predict", texts_run, stdin=lines).lines == expected
    (tmp_path / "films.txt").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    assert regardant("predict", texts_run, "--input", tmp_path / "films.txt").lines == expected
    assert regardant("predict", texts_run, stdin=b"").out == ""


@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_a_compressed_file_is_read_as_its_text(regardant, texts_run, tmp_path, suffix):
    file = tmp_path / f"films.txt.{suffix}"
    with pa.output_stream(file, compression="detect") as stream:
        stream.write("".join(line + "\n" for line in FILMS).encode())
    assert regardant("predict", texts_run, "--input", file).lines == ANSWERS
    file.write_bytes(b"not compressed")
    said = regardant("predict", texts_run, "--input", file)
    assert (said.code, said.out) == (2, "") and said.err.startswith(f"regardant: --input {file} cannot be read (")
    assert len(said.err.splitlines()) == 1


def test_a_message_about_the_input_names_its_file(regardant, texts_run, tmp_path):
    file = tmp_path / "films.txt"
    file.write_text(FILMS[0], encoding="utf-16")
    said = regardant("predict", texts_run, "--input", file)
    assert said.code == 2 and f"iconv -f UTF-16 -t UTF-8 {file} > NEW" in said.err
    file.write_bytes(b"a fine \xff film\n")
    said = regardant("predict", texts_run, "--input", file)
    assert said.code == 0 and said.err.startswith(f"{file} line 1: not valid UTF-8")


def test_answers_keep_their_order_through_all_batches(regardant, texts_run, monkeypatch):
    monkeypatch.setattr(cli.answering, "LINES_AT_ONCE", 2)
    assert regardant("predict", texts_run, stdin=[*FILMS, "", *FILMS]).lines == [*ANSWERS, "", *ANSWERS]


def test_an_item_that_is_refused_is_named_by_its_number_among_all(regardant, tmp_path, monkeypatch):
    (tmp_path / "texts.txt").write_text("a cat sat\n" * 9, encoding="utf-8")
    folder = tmp_path / "run"
    data = {"root": str(tmp_path), "source": "texts.txt", "validation": "texts.txt"}
    document = {"data": data, "input": {"kind": "text", "tokenizer": {"kind": "word"}}, "model": MODEL}
    training = {**TRAINING, "max_updates": 1, "validate_every": 1}
    config = load_recipe({"task": "masked_language_modelling", **document, "training": training})
    run.train(config, folder, lambda line: None)
    monkeypatch.setattr(cli.answering, "LINES_AT_ONCE", 2)
    said = regardant("predict", folder, stdin=["a [MASK] sat", "", "", "a [MASK]", "", "a cat"])
    assert said.code == 2 and len(said.lines) == 4
    assert said.err == "regardant: item 6 has no blank to fill in: write one as in 'a [MASK] film'\n"


def test_json_is_one_object_of_predictions(regardant, texts_run):
    said = regardant("predict", texts_run, "--json", FILMS[0], "", FILMS[4])
    assert len(said.lines) == 1
    told = json.loads(said.out)
    assert list(told) == ["predictions"]
    first, blank, last = told["predictions"]
    assert (first["item"], first["answer"], last["answer"]) == (FILMS[0], "good", "bad")
    assert first["probability"] == first["probabilities"]["good"] > 0.5
    assert blank == {"item": "", "answer": "", "notes": []}


@pytest.mark.parametrize("as_json", [False, True])
def test_output_writes_a_file_in_place_of_stdout(regardant, texts_run, tmp_path, as_json):
    file, options = tmp_path / "answers", ["--json"] if as_json else []
    to_stdout = regardant("predict", texts_run, *options, *FILMS)
    said = regardant("predict", texts_run, *options, "--output", file, *FILMS)
    assert (said.code, said.out, said.err) == (0, "", f"wrote {file}\n")
    assert file.read_text(encoding="utf-8") == to_stdout.out


def test_notes_name_the_item_on_stderr(regardant, texts_run, monkeypatch):
    monkeypatch.setattr(cli.answering, "LINES_AT_ONCE", 1)
    said = regardant("predict", texts_run, FILMS[0], "a fine film " * 9)
    assert len(said.lines) == 2
    assert said.err == "item 2: longer than the model's 16 tokens: the rest was not read\n"


def test_a_classifier_of_images_reads_files(regardant, digits_run, tmp_path):
    image = np.random.default_rng(0).integers(0, 256, (8, 8), np.uint8)
    Image.fromarray(image).save(tmp_path / "a.png")
    np.save(tmp_path / "a.npy", image)
    said = regardant("predict", digits_run, "--json", tmp_path / "a.png", tmp_path / "a.npy")
    first, second = json.loads(said.out)["predictions"]
    assert first["item"] == str(tmp_path / "a.png")
    assert first["answer"] in set("0123456789") and len(first["probabilities"]) == 10
    assert first["probabilities"] == pytest.approx(second["probabilities"])
    assert first["notes"] == second["notes"] == []


def test_the_name_of_a_file_may_have_any_bytes(regardant, digits_run, tmp_path):
    folder = tmp_path / "images"
    folder.mkdir()
    path = str(folder / "caf\udce9.png")  # Latin-1
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (8, 8), np.uint8)).save(path)
    said = regardant("predict", digits_run, path)
    assert (said.code, len(said.lines), said.err) == (0, 1, "")
    (found,) = json.loads(regardant("predict", digits_run, "--json", path).out)["predictions"]
    assert (found["item"], found["answer"]) == (path, said.lines[0])
    (folder / "notes.txt").write_text("no image")
    (folder / ".hidden").write_text("of a system")
    listed = regardant("predict", digits_run, folder)
    left = f"{folder}: files other than .png, .jpg, .jpeg, .npy are left out: 1, such as notes.txt\n"
    assert listed.err == left
    assert listed.lines == [f"{folder}/caf\\udce9.png\t{said.lines[0]}"]
    assert regardant("predict", digits_run, folder, "--output", tmp_path / "answers.tsv").code == 0
    assert (tmp_path / "answers.tsv").read_text(encoding="utf-8") == listed.out
    for suffix in ("html", "svg", "json"):
        inspected = regardant("inspect", digits_run, path, "--out", tmp_path / f"a.{suffix}")
        assert (inspected.code, inspected.lines) == (0, said.lines), inspected.err
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["item"] == f"{folder}/caf\ufffd.png"


def test_a_file_that_is_no_image_is_one_line(regardant, digits_run, tmp_path):
    said = regardant("predict", digits_run, tmp_path / "b.png")
    assert (said.code, said.out, len(said.err.splitlines())) == (2, "", 1)
    assert said.err.startswith(f"regardant: {tmp_path / 'b.png'} cannot be read (No such file or directory)")


def test_an_item_whose_name_is_too_long_is_one_line(regardant, digits_run):
    name = "猫" * 100  # 300 bytes; a file name has at most 255
    assert run.load(digits_run).items_of([name], pytest.fail) == [name]
    said = regardant("predict", digits_run, name)
    assert (said.code, len(said.err.splitlines())) == (2, 1) and "File name too long" in said.err


def test_patches_that_a_model_cannot_read_are_refused_before_training(regardant):
    said = regardant("plan", "digits-vit", "--set", "model.max_length=3")
    assert said.code == 2
    assert said.err.splitlines()[-1].startswith("regardant: an image has 4 patches, of which at most 3 are read: ")
    assert "are cut" not in said.err


def test_a_run_of_digits_has_no_other_data_to_score(regardant, digits_run, tmp_path):
    said = regardant("evaluate", digits_run, "--data", tmp_path / "a.tsv")
    expected = f"regardant: --data {tmp_path / 'a.tsv'}: this run's items come from digits: leave --data out\n"
    assert (said.code, said.err) == (2, expected)


def test_a_translator_predicts_what_it_translates(regardant, tiny_run):
    sentences = ["the cat sat on a mat .", "a dog ran ."]
    said = regardant("predict", tiny_run, *sentences)
    assert (said.code, said.out) == (0, regardant("translate", tiny_run, *sentences).out)
    (found,) = json.loads(regardant("predict", tiny_run, "--json", sentences[0]).out)["predictions"]
    assert found["answer"] == said.lines[0] == found["candidates"][0]["text"]


def test_a_language_model_predicts_a_continuation_on_one_line(regardant, trained_on_text):
    trained = trained_on_text()
    (text,) = trained.generate("the cat")
    assert "\n" in text
    said = regardant("predict", trained.folder, "the cat")
    assert (said.code, len(said.lines)) == (0, 1)
    assert said.lines[0].split() == text.split()
    (found,) = json.loads(regardant("predict", trained.folder, "--json", "the cat").out)["predictions"]
    assert (found["item"], found["answer"]) == ("the cat", text)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            ["--input", "missing.txt"],
            "--input missing.txt cannot be read (No such file or directory): give a file with",
        ),
        (["a text", "--input", "a.txt"], "items were given as arguments and by --input a.txt: leave one of them out"),
    ],
)
def test_items_that_cannot_be_read_are_one_line(regardant, texts_run, given, told):
    said = regardant("predict", texts_run, *given)
    assert (said.code, said.out, len(said.err.splitlines())) == (2, "", 1)
    assert said.err.startswith(f"regardant: {told}")


@pytest.mark.parametrize(("seconds", "shown"), [(0.1, []), (0.6, ["2 items, 2 a second", "4 items, 2 a second"])])
def test_a_terminal_sees_progress_after_a_second(monkeypatch, capsys, seconds, shown):
    clock = iter(seconds * number for number in range(100))
    monkeypatch.setattr(cli.lines.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with cli.lines.Progress(hidden=False) as progress:
        assert list(progress.counted("abcde")) == list("abcde")
    written = capsys.readouterr().err
    assert [line for line in written.replace("\x1b[K", "").split("\r") if line] == shown
    assert written.endswith("\r\x1b[K") == bool(shown)


def test_training_and_a_verb_of_another_task_name_predict(regardant, texts_run, corpus, tmp_path):
    refused = regardant("translate", texts_run, "a text")
    assert refused.err.endswith("is a run of classification, which has no translate: it has predict\n")
    recipe = tmp_path / "films.json.yaml"
    recipe.write_text(json.dumps(json.loads(run.load(texts_run).config.model_dump_json(by_alias=True))))
    said = regardant("train", recipe, "--set", "training.max_updates=1", "--out", tmp_path / "r")
    assert said.code == 0 and f"use it:   regardant predict {tmp_path / 'r'} ITEM\n" in said.err
