"""An imported run is a run: every tool takes it, and training goes on from it."""

import json
from itertools import islice, permutations

import pytest
import torch

from regardant import run
from regardant.studio.catalogue import summary
from regardant.tasks import load_recipe
from regardant.tasks.measures import says_little
from tests.unit.interop.huggingface.names import LETTERS, SENTENCES
from tests.unit.interop.samples import sample

pytestmark = pytest.mark.xdist_group("transformers")  # one process loads the library

TEXTS = ["the film sat on a mat .", "the old dog , the cat", "a cat", "the mat sat on the film ."]
UPDATES = {
    "max_updates": 4,
    "batch_tokens": 64,
    "validate_every": 2,
    "precision": "float32",
    "attention_kernel": "sdpa",
    "processes": 1,
    "schedule": {"kind": "constant", "learning_rate": 1e-3, "warmup_steps": 1},
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Lines, a table of labels and a table of pairs."""
    folder = tmp_path_factory.mktemp("files")
    lines = TEXTS * 10
    (folder / "lines.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    labelled = [{"text": text, "label": "dull" if "film" in text else "good"} for text in lines]
    (folder / "labels.jsonl").write_text("\n".join(map(json.dumps, labelled)) + "\n", encoding="utf-8")
    pairs = [{"source": text, "target": " ".join(reversed(text.split()))} for text in TEXTS]
    (folder / "pairs.jsonl").write_text("\n".join(map(json.dumps, pairs)) + "\n", encoding="utf-8")
    for name, column in (("a.en", "source"), ("a.de", "target")):
        (folder / name).write_text("\n".join(f"{one[column]} {n}" for n in "amt" for one in pairs) + "\n", "utf-8")
    return folder


ITEMS = {"bert": "the [MASK] sat", "bert_classes": "the cat", "gpt2": "the cat", "llama": "the", "marian": "the cat"}
DATA = {"bert": "lines.txt", "gpt2": "lines.txt", "llama": "lines.txt", "marian": "pairs.jsonl"}


@pytest.mark.parametrize("name", ITEMS)
def test_an_imported_run_is_inspected_and_diagnosed(pair, name):
    own = pair(name).run
    found = own.inspect(ITEMS[name])
    assert found.layers and found.answer
    page = found.page()
    assert "<html" in page
    assert own.doctor().as_dict()
    row = summary("x", own.folder)
    assert row["trained"] and row["parameters"] > 1000 and "problem" not in row


def test_marks_of_a_text_are_named_in_an_inspection(pair):
    found = pair("bert").run.inspect("the [MASK] sat")
    assert list(found.inputs["input"].labels) == ["[CLS]", "the", "[MASK]", "sat", "[SEP]"]


def test_marks_around_a_text_say_little_of_it():
    assert says_little("[CLS]") and says_little("</s>") and not says_little("cat")


@pytest.mark.parametrize("name", DATA)
def test_an_imported_run_is_evaluated_and_measured_on_data(pair, files, name):
    own = pair(name).run
    (scores,) = own.evaluate(data=[files / DATA[name]]).values()
    assert all(value == value for value in scores.values() if isinstance(value, float))
    assert own.measure(data=[files / DATA[name]]).heads


def trained_from(folder, tmp_path, recipe, **training):
    config = load_recipe({**recipe, "training": {**UPDATES, "from": str(folder), **training}})
    assert run.train(config, tmp_path / "tuned", log=lambda line: None).finished
    return run.load(tmp_path / "tuned")


RECIPES = {
    "bert": {"task": "masked_language_modelling", "data": {"source": "lines.txt"}},
    "gpt2": {"task": "language_modelling", "data": {"source": "lines.txt"}},
    "llama": {"task": "language_modelling", "data": {"source": "lines.txt"}},
    "marian": {
        "task": "translation",
        "data": {"kind": "pairs", "source": "a.en", "target": "a.de", "validation_size": 2, "test_size": 2},
    },
    "bert_classes": {"task": "classification", "data": {"source": "labels.jsonl"}},
}


@pytest.mark.parametrize("name", RECIPES)
def test_training_goes_on_from_an_imported_run(pair, files, tmp_path, name):
    own = pair(name).run
    recipe = {**RECIPES[name], "data": {**RECIPES[name]["data"], "root": str(files)}}
    if name == "bert_classes":  # labels of its own, so a fresh head
        tuned = trained_from(own.folder, tmp_path, recipe, parts=["input", "encoder"])
        assert tuned.config.head.pooling == "mean"
    else:
        tuned = trained_from(own.folder, tmp_path, recipe)
        assert tuned.config.head == own.config.head
    assert tuned.config.model.model_dump(exclude={"tie_embeddings"}) == own.config.model.model_dump(
        exclude={"tie_embeddings"}
    )
    before, after = own.trained.model.state_dict(), tuned.trained.model.state_dict()
    table = next(name for name in before if name.endswith("table.weight"))
    assert not torch.equal(before[table], after[table])
    assert (before[table] - after[table]).abs().max() < 0.05, "it begins where the imported weights are"
    assert tuned.predict([ITEMS[name]])[0].answer is not None


def test_a_classifier_learns_from_an_imported_encoder(pair, files, tmp_path):
    own = pair("bert_vectors").run
    recipe = {"task": "classification", "data": {"source": "labels.jsonl", "root": str(files)}}
    tuned = trained_from(own.folder, tmp_path, recipe, parts=["input", "encoder"], max_updates=60)
    assert tuned.evaluate(data=[files / "labels.jsonl"])["labels.jsonl"]["accuracy"] == 1.0
    kept, now = zip(*tuned.trained.encoded_twice(4), strict=True)
    assert kept == now and kept[0][0] == kept[-1][0], "with the tokens that stand around every text"


def test_vectors_are_searched(pair):
    encoder = pair("bert_vectors").run.sentence_encoder
    found = encoder.search(SENTENCES[0], [*TEXTS, SENTENCES[0]], 2)
    assert found[0].number == 4 and found[0].similarity == pytest.approx(1, abs=1e-5)
    assert found[0].similarity >= found[1].similarity
    assert encoder.predict([LETTERS[0]])[0].details["vector"] == pytest.approx(encoder.encode([LETTERS[0]])[0].tolist())


def test_an_imported_translator_decodes_in_ctranslate2(pair, tmp_path):
    pytest.importorskip("ctranslate2")
    own = pair("marian").run
    found = own.translate(SENTENCES, beam_size=1, engine="ctranslate2-float32")
    assert [one.text for one in found] == [one.text for one in own.translate(SENTENCES, beam_size=1)]


@pytest.mark.usefixtures("shapes_unchecked")  # sizes of a graph are symbols
@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_a_tagger_from_an_imported_model_is_exported_with_its_words(pair, tmp_path, name):
    (text, _), tags = LETTERS, "ABCDE"
    tagged = [f"{word}\t{tag}\n" for word, tag in zip(text.split(), tags, strict=True)]
    sentences = ["".join(order) for order in islice(permutations(tagged), 40)]
    (tmp_path / "tags.tsv").write_text("\n".join(sentences), encoding="utf-8")
    recipe = {
        "task": "tagging",
        "data": {"source": str(tmp_path / "tags.tsv")},
        "training": {**UPDATES, "max_updates": 40, "from": str(pair(name).run.folder), "parts": ["input", "encoder"]},
    }
    assert run.train(load_recipe(recipe), tmp_path / "run", lambda line: None).finished
    own = run.load(tmp_path / "run")
    exported = own.export("torch", tmp_path / "there")
    assert exported.failures == () and exported.parity.identical == 1
    long = f"{text} {text} {text} {text}"  # longer than the model
    labels = [[word["label"] for word in one.details["words"]] for one in own.predict([text, long])]
    answers = [line.split() for line in sample(tmp_path / "there", [text, long])]
    assert answers[0] == labels[0] and answers[1] == [one for one in labels[1] if one is not None][: len(answers[1])]
    assert len(answers[1]) > len(text.split())
