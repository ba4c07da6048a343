"""A question about an image, answered by self-attention over both parts or by cross-attention: every tool on a run."""

import json
import shutil

import numpy as np
import pytest
from fastapi.testclient import TestClient

from regardant import config, run
from regardant.data.digit_questions import QUESTIONS
from regardant.data.digits import DigitsConfig
from regardant.errors import ConfigError, DataError
from regardant.modalities.image import as_png
from regardant.studio.app import make_app
from regardant.tasks import load_recipe
from tests.runs import BRIEF, runs_of

pytestmark = pytest.mark.xdist_group("joined")  # one process makes what all tests share

SMALL = [
    "data.train_size=4000",
    "data.validation_size=200",
    "data.test_size=400",
    "training.max_updates=400",
    "training.validate_every=200",
    "training.batch_tokens=512",
    "training.schedule.learning_rate=1e-2",
    "training.precision=float32",
    "training.attention_kernel=sdpa",
    "training.processes=1",
]
SIZES = "d_model: 32, num_heads: 2, d_ff: 64, dropout: 0, max_length: 16"
JOINED = (f"model={{kind: encoder_only, {SIZES}, num_layers: 2, scale_embeddings: false}}",)
CROSS = (f"model={{kind: cross, {SIZES}, num_layers: 1}}", "training.max_updates=300")
FEW = (*JOINED, *BRIEF, "data.train_size=200")
KINDS = pytest.mark.parametrize("overrides", [pytest.param(JOINED, id="joined"), pytest.param(CROSS, id="cross")])


def load(*overrides):
    return load_recipe(config.recipe("digit-questions"), [*SMALL, *overrides])


@pytest.fixture(scope="module")
def answerer(made_once):
    """The run of `digit-questions`, small and with fields set. Its folder is shared: copy it to change it."""
    return runs_of("tiny-digit-questions", load, made_once)


@pytest.fixture(scope="module")
def digit(tmp_path_factory):
    """Return (path, digit) of a test image."""
    path = tmp_path_factory.mktemp("items") / "digit.png"
    image, label = DigitsConfig().read(1)["test"][1]
    path.write_bytes(as_png(image[..., None]))
    return path, int(label)


@pytest.fixture(scope="module")
def item(digit):
    """Return the argument that asks a question about the image."""
    return lambda question: json.dumps({"question": question, "image": str(digit[0])})


# learning


def shuffled(trained, part, seed=0):
    """Return the test items, each with the part of another item in the place of its own."""
    split = trained._splits()["test"]
    parts = [trained.codec.unpacked(one) for one in split.items]
    order, column = np.random.default_rng(seed).permutation(len(parts)), list(trained.codec.codecs).index(part)
    mixed = [[*one[:column], parts[other][column], *one[column + 1 :]] for one, other in zip(parts, order, strict=True)]
    return type(split).of(trained.codec._packed(mixed), split.targets)


@KINDS
def test_questions_are_answered_from_both_parts_together(answerer, tmp_path, overrides):
    trained = run.load(shutil.copytree(answerer(*overrides).folder, tmp_path / "run")).trained
    assert trained.evaluated("test", trained._splits()["test"])["accuracy"] > 0.8
    for part in ("question", "image"):
        assert 0.4 < trained.evaluated("shuffled", shuffled(trained, part))["accuracy"] < 0.6


@pytest.mark.parametrize(
    "part", ["question: {kind: text, tokenizer: {kind: word}}", "image: {kind: image, patch_size: 4}"]
)
def test_one_part_alone_answers_no_better_than_chance(answerer, tmp_path, part):
    alone = answerer(*JOINED, f"input.parts={{{part}}}", "training.max_updates=100")
    trained = run.load(shutil.copytree(alone.folder, tmp_path / "run")).trained
    assert list(trained.codec.codecs) == [part.partition(":")[0]]
    assert 0.4 < trained.evaluated("test", trained._splits()["test"])["accuracy"] < 0.6


# predictions and scores


@KINDS
def test_questions_about_an_image_are_predicted(regardant, answerer, digit, item, overrides):
    folder, number = answerer(*overrides).folder, digit[1]
    items = [item(question) for question, _ in QUESTIONS]
    said = regardant("predict", folder, *items, "--json")
    assert said.code == 0, said.err
    found = json.loads(said.out)["predictions"]
    right = [
        one["answer"] == ("yes" if number in true_of else "no")
        for one, (_, true_of) in zip(found, QUESTIONS, strict=True)
    ]
    assert sum(right) >= 4
    for one, alone in zip(found, items, strict=True):
        (other,) = answerer(*overrides).predict([alone])
        assert one["probability"] == pytest.approx(other.details["probability"], abs=1e-5)


@KINDS
def test_it_is_evaluated_measured_and_diagnosed(regardant, answerer, tmp_path, overrides):
    folder = shutil.copytree(answerer(*overrides).folder, tmp_path / "run")
    said = regardant("evaluate", folder, "--json")
    assert said.code == 0 and json.loads(said.out)["items"] == 400, said.err
    own = run.load(folder)
    assert set(own.measure().heads) == set(own.trained.model.attention_kinds)
    diagnosis = own.doctor()
    assert not diagnosis.findings
    assert "more than frequencies" in diagnosis.seen
    if overrides is CROSS:
        assert {"padding mask", "order of elements", "unknown tokens"} <= diagnosis.seen.keys()


def test_runs_are_compared(regardant, answerer, tmp_path):
    folders = [
        shutil.copytree(answerer(*overrides).folder, tmp_path / name)
        for name, overrides in (("joined", JOINED), ("cross", CROSS))
    ]
    for folder in folders:
        assert regardant("evaluate", folder).code == 0
    said = regardant("compare", *folders, "--json")
    assert said.code == 0 and "accuracy_from_first" in json.loads(said.out)["runs"][1]["tests"]["test"], said.err


# pages


def test_a_page_draws_the_image_and_the_words_beside_it(answerer, item):
    found = answerer(*JOINED).inspect(item("is it even"))
    (picture,) = found.pictures
    assert picture.kind == "Encoder self-attention" and picture.source == picture.target
    assert [label.strip("▁") for label in picture.source[:3]] == ["is", "it", "even"]
    assert list(picture.source_layout.labels) == picture.source[3:] and picture.source_layout.picture is not None
    assert picture.class_token is None and picture.title.startswith("question: is it even; image: /")
    assert "data:image/png" in found.page() and found.svg() and found.as_dict()["inputs"]["input"]["labels"]


def test_a_page_of_cross_attention_has_words_that_look_at_the_image(answerer, item):
    pictures = {one.kind: one for one in answerer(*CROSS).inspect(item("is it even")).pictures}
    assert list(pictures) == ["Memory self-attention", "Encoder self-attention", "Cross-attention"]
    cross = pictures["Cross-attention"]
    assert len(cross.target) == 3 and len(cross.source) == 4
    assert cross.target_layout is None and cross.source_layout.picture is not None


@KINDS
def test_the_studio_shows_both_parts(answerer, item, overrides):
    loaded = answerer(*overrides)
    client = TestClient(make_app([loaded.folder]), base_url="http://localhost")
    name = loaded.folder.as_posix()
    examples = client.get("/api/examples", params={"run": name}).json()
    assert examples and json.loads(examples[0]["item"]).keys() == {"question", "image"}
    body = {"run": name, "text": examples[0]["item"]}
    seen = client.post("/api/look", json=body).json()
    assert seen["answer"] in ("yes", "no") and seen["pictures"]["title"].startswith("question: ")
    place = seen["pictures"]["places"][0][0]
    steps = client.post("/api/steps", json={**body, "attention": place, "query": 1}).json()
    found = loaded.inspect(examples[0]["item"])
    assert (
        steps["queries"] == next(iter(found.inputs.values() if overrides is JOINED else [found.inputs["image"]])).labels
    )
    for side in client.post("/api/streams", json=body).json()["sides"]:
        assert side["places"] and all(len(one["lengths"]) == len(side["tokens"]) for one in side["places"])
    elements = client.post("/api/shapes", json=body).json()["elements"]
    assert elements == {one: len(elements.labels) for one, elements in found.inputs.items()}


# other tasks and refusals


def test_a_text_is_written_from_both_parts(tmp_path, item):
    document = {
        "task": "sequence_to_sequence",
        "data": {"kind": "digit_questions", "train_size": 200, "validation_size": 20, "test_size": 20},
        "input": {
            "kind": "joined",
            "parts": {"question": {"kind": "text"}, "image": {"kind": "image", "patch_size": 4}},
        },
        "model": {"preset": None, "d_model": 16, "num_heads": 2, "d_ff": 32, "max_length": 64},
        "training": {"max_updates": 4, "validate_every": 4, "batch_tokens": 1024, "precision": "float32"},
        "tokenizer": {"kind": "word"},
        "generation": {"beam_size": 2},
    }
    document["model"] |= {"encoder": {"num_layers": 1}, "decoder": {"num_layers": 1}}
    run.train(load_recipe(document), tmp_path / "run", lambda line: None)
    loaded = run.load(tmp_path / "run")
    assert len(loaded.predict([item("is it even"), item("is it larger than four")])) == 2
    assert "exact_match" in loaded.evaluate()["test"]
    found = loaded.inspect(item("is it odd"))
    assert found.inputs["source"].layout.picture is not None and found.pictures


def test_a_model_of_other_parts_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="model: kind cross reads items of two parts, and these have 1: set input"):
        run.train(load(*CROSS, "input.parts={question: {kind: text}}"), tmp_path / "run", lambda line: None)
    with pytest.raises(DataError, match="item 1 has no part 'picture'"):
        run.train(load(*JOINED, "input.parts={picture: {kind: image}}"), tmp_path / "other", lambda line: None)


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("input.parts.image.kind=graph", r"input\.parts\.image\.kind: given 'graph'; allowed: .*image, "),
        ("input.parts.image.patchsize=2", r"input\.parts\.image\.patchsize: unknown key; did you mean patch_size"),
        ("input.parts={}", r"input\.parts: given \{\}; "),
    ],
)
def test_parts_of_a_recipe_that_cannot_be_right_are_one_line(override, told):
    with pytest.raises(ConfigError, match=told) as refusal:
        load(override)
    assert "\n" not in str(refusal.value)


def test_a_setting_that_does_not_fit_is_told_with_its_part(tmp_path):
    with pytest.raises(ConfigError, match=r"part image: input\.patch_size: given 3; images of 8 x 8 allow 1, 2, 4, 8"):
        run.train(load(*FEW, "input.parts.image.patch_size=3"), tmp_path / "run", lambda line: None)


def test_the_codecs_of_an_earlier_run_are_taken_over(answerer, tmp_path):
    earlier = answerer(*JOINED).folder
    run.train(load(*FEW, f"training.from={earlier}"), tmp_path / "run", lambda line: None)
    for name in run.load(tmp_path / "run").trained.config.input.files:
        assert (tmp_path / "run" / name).read_bytes() == (earlier / name).read_bytes()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("is it even", "is no item of the parts question, image"),
        ('{"question": "is it even"}', "is no item of the parts question, image"),
        ('{"question": "is it even", "image": "none.png"}', "part image: none.png cannot be read"),
    ],
)
def test_an_item_that_cannot_be_read_is_one_line(regardant, answerer, given, told):
    said = regardant("predict", answerer(*JOINED).folder, given)
    assert (said.code, said.err.count("\n")) == (2, 1) and told in said.err


def test_items_of_a_table_are_trained_on_and_scored(regardant, digit, tmp_path):
    (tmp_path / "one.png").write_bytes(digit[0].read_bytes())
    rows = "".join(f"one.png,is it {word},{answer}\n" for word, answer in (("even", "yes"), ("odd", "no")) * 10)
    (tmp_path / "a.csv").write_text(f"image,question,answer\n{rows}", encoding="utf-8")
    table = (
        "data={kind: part_table, source: a.csv, validation: a.csv, files: [image], texts: [question], label: answer}"
    )
    brief = [one for one in FEW if not one.startswith("data.")]
    given = [table, f"data.root={tmp_path}", *[one for one in SMALL if not one.startswith("data.")], *brief]
    run.train(load_recipe(config.recipe("digit-questions"), given), tmp_path / "run", lambda line: None)
    said = regardant("evaluate", tmp_path / "run", "--data", tmp_path / "a.csv", "--json")
    assert said.code == 0 and json.loads(said.out)["items"] == 20, said.err
    (tmp_path / "b.csv").write_text("image,question,answer\nnone.png,is it odd,no\n", encoding="utf-8")
    said = regardant("evaluate", tmp_path / "run", "--data", tmp_path / "b.csv")
    assert (said.code, said.err.count("\n")) == (2, 1) and "part image: " in said.err
