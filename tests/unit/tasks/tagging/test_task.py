"""A tagger from its files to its answers, and every tool on a run of it."""

import copy
import json
import re
import shutil
from random import Random

import numpy as np
import pytest
import torch
from fastapi.testclient import TestClient

from regardant import run
from regardant.errors import ConfigError, DataError
from regardant.models.heads import IGNORED
from regardant.studio.app import make_app
from regardant.tasks import load_recipe, task_named
from regardant.tasks.items.data import Planned
from regardant.training.events import read_events
from tests.runs import BRIEF, STEADY

pytestmark = pytest.mark.xdist_group("tagging")  # one process makes what all tests share

CPU = torch.device("cpu")

RECIPE = {
    "task": "tagging",
    "data": {"source": "train.conllu", "test": "test.conllu"},
    "input": {"kind": "text", "tokenizer": {"kind": "bpe", "vocab_size": 280}},
    "model": {"d_model": 32, "num_heads": 2, "num_layers": 2, "d_ff": 64, "max_length": 32, "dropout": 0.0},
    "head": {"dropout": 0.0},
    "training": {
        "max_updates": 200,
        "batch_tokens": 512,
        "validate_every": 100,
        **STEADY,
        "schedule": {"kind": "linear", "learning_rate": 5e-3, "warmup_steps": 20},
    },
}

TEXT = "the old saw saw a cat"

UPOS = ["DET", "ADJ", "NOUN", "VERB", "DET", "NOUN"]


def sentence(random):
    """Return (word, part of speech) pairs. A "saw" after a noun is a verb, any other one a noun."""
    pairs = []
    for number in range(2):
        pairs += [("saw", "VERB")] if number else []
        pairs.append((random.choice(["the", "a"]), "DET"))
        pairs += [("old", "ADJ")] * random.randint(0, 2)
        pairs.append((random.choice(["cat", "saw", "dog"]), "NOUN"))
    return pairs


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with train.conllu and test.conllu, and the same test texts as columns with BIO labels."""
    random, folder = Random(3), tmp_path_factory.mktemp("tags")
    for name, size in (("train", 300), ("test", 40)):
        texts = [sentence(random) for _ in range(size)]
        rows = [
            "".join(f"{n}\t{word}\t_\t{tag}\t_\t_\t_\t_\t_\t_\n" for n, (word, tag) in enumerate(text, 1))
            for text in texts
        ]
        (folder / f"{name}.conllu").write_text("\n".join(rows) + "\n", encoding="utf-8")
        bio = {"ADJ": "I-X", "NOUN": "I-X", "DET": "B-X", "VERB": "O"}
        rows = ["".join(f"{word} {bio[tag]}\n" for word, tag in text) for text in texts]
        (folder / f"{name}.bio").write_text("\n".join(rows), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def load(files):
    """The recipe with fields set as by --set."""
    return lambda *overrides: load_recipe(copy.deepcopy(RECIPE), [f"data.root={files}", *overrides])


@pytest.fixture(scope="module")
def tagger(load, tmp_path_factory):
    """A finished run. Its folder is shared: copy it to change it."""
    folder = tmp_path_factory.mktemp("runs") / "tagger"
    assert run.train(load(), folder, lambda line: None).finished
    return run.load(folder)


@pytest.fixture
def job(load, tmp_path):
    return task_named("tagging").prepare(load("input.tokenizer.kind=byte"), tmp_path / "run", lambda line: None).job


# batches and validation


def test_a_text_longer_than_a_usual_batch_is_read_to_the_model_s_length(tagger):
    trained = copy.copy(tagger.trained)
    trained.max_length = 10_000
    assert trained.batches(trained._splits()["validation"]).max_length == 10_000


def test_targets_are_the_labels_of_words_at_their_first_bytes(job, files):
    batch = job.load(job.plan(0)[0])
    bytes_, targets = batch.inputs["input"], batch.targets
    first = (bytes_ != 0) & torch.cat([torch.ones(len(bytes_), 1, dtype=torch.bool), bytes_[:, :-1] == 5 + 32], 1)
    first &= bytes_ != 5 + 32
    torch.testing.assert_close(targets != IGNORED, first)
    assert batch.count == int(first.sum()) and 0 < batch.count < int((bytes_ != 0).sum())
    assert sum(job.load(one).count for one in job.plan(0)) == job.targets_per_epoch
    assert batch.part(0, 2).count + batch.part(1, 2).count == batch.count


def test_training_texts_alone_are_spelled_anew_in_each_epoch(load, tmp_path):
    given = ("input.bpe_dropout=0.5", "model.max_length=10")
    job = task_named("tagging").prepare(load(*given), tmp_path / "run", lambda line: None).job

    def texts(batches, epoch):
        return [tuple(one[:, 0]) for one in batches.arrays(Planned(epoch, 0, np.arange(8)))]

    assert texts(job.batches, 0) == texts(job.batches, 0) != texts(job.batches, 1)
    assert sum(map(len, texts(job.batches, 0))) > sum(len(job.batches.split.items[number]) for number in range(8)) / 2
    assert max(map(len, texts(job.batches, 0))) <= 10
    assert texts(job.validation, 0) == texts(job.validation, 1)


def test_the_validation_loss_is_the_mean_over_words(job):
    model = job.model.eval()
    batches = [job.validation.load(planned) for planned in job.validation.plan(0)]
    with torch.inference_mode():
        scores = [(model.scores(**one.inputs).flatten(0, 1), one.targets.flatten()) for one in batches]
        nats = sum(torch.nn.functional.cross_entropy(*one, ignore_index=IGNORED, reduction="sum") for one in scores)
        found = job.validate(model, CPU)
    right = sum(int((logits.argmax(1) == targets).sum()) for logits, targets in scores)
    words = sum(one.count for one in batches)
    assert found["loss"] == pytest.approx(float(nats) / words, rel=1e-5)
    assert found["accuracy"] == pytest.approx(right / words) and "span_f1" not in found


def test_texts_longer_than_the_model_are_cut_and_said(load, tmp_path):
    said = []
    job = task_named("tagging").prepare(load("model.max_length=6"), tmp_path / "run", said.append).job
    assert any(re.fullmatch(r"\d+ items are cut to the model's 6 tokens", line) for line in said)
    assert sum(job.load(one).count for one in job.plan(0)) == job.targets_per_epoch


@pytest.mark.slow
def test_two_processes_learn_as_one(load, tmp_path):
    losses = []
    for processes in (1, 2):
        run.train(load(*BRIEF, f"training.processes={processes}"), tmp_path / str(processes), lambda line: None)
        events = read_events(tmp_path / str(processes) / "metrics.jsonl")
        losses.append([event["loss"] for event in events if "loss" in event])
    assert losses[0] == pytest.approx(losses[1], rel=1e-4) and len(losses[0]) == 2


# predictions


def test_every_word_is_answered_with_a_label(tagger):
    (found,) = tagger.predict([TEXT])
    assert found.answer == " ".join(f"{word}/{tag}" for word, tag in zip(TEXT.split(), UPOS, strict=True))
    words = found.as_dict()["words"]
    assert [one["word"] for one in words] == TEXT.split() and [one["label"] for one in words] == UPOS
    for one in words:
        assert one["probabilities"].keys() == {"ADJ", "DET", "NOUN", "VERB"}
        assert sum(one["probabilities"].values()) == pytest.approx(1, abs=1e-5)
        assert one["probability"] == max(one["probabilities"].values()) == one["probabilities"][one["label"]]


def test_texts_are_answered_alike_alone_and_together(tagger):
    texts = [TEXT, "a dog", "the unheard-of cat", "  the\t old cat  "]
    together = tagger.predict(texts)
    for text, found in zip(texts, together, strict=True):
        (alone,) = tagger.predict([text])
        assert alone.answer == found.answer and len(found.details["words"]) == len(text.split())


def test_a_text_that_is_too_long_is_answered_in_part_with_a_note(tagger):
    (found,) = tagger.predict(["a cat " * 30])
    words = found.details["words"]
    assert 10 < len(words) < 60 and [one["word"] for one in words] == ("a cat " * 30).split()[: len(words)]
    assert list(found.notes) == ["longer than the model's 32 tokens: the rest was not read"]
    assert sum(count for _, count in tagger.inspect("a cat " * 30).inputs["input"].units) == 32


def test_items_come_from_arguments_or_a_file(regardant, tagger, tmp_path):
    said = regardant("predict", tagger.folder, TEXT)
    assert said.code == 0 and said.lines == [tagger.predict([TEXT])[0].answer]
    (tmp_path / "a.txt").write_text(f"{TEXT}\na dog\n", encoding="utf-8")
    said = regardant("predict", tagger.folder, "--input", tmp_path / "a.txt", "--json")
    assert [one["answer"] for one in json.loads(said.out)["predictions"]] == [
        one.answer for one in tagger.predict([TEXT, "a dog"])
    ]
    with pytest.raises(DataError, match=r"^item 1 is blank: give a text$"):
        tagger.predict([" "])


# scores


def test_test_texts_are_scored_and_the_answer_to_each_word_is_kept(tagger, files, tmp_path):
    own = run.load(shutil.copytree(tagger.folder, tmp_path / "run"))
    scores = own.evaluate()
    assert scores.keys() == {"test", "validation"}
    kept = (own.folder / "evaluation" / "test.predictions.jsonl").read_text("utf-8").splitlines()
    kept = [json.loads(line) for line in kept]
    lines = [line.split("\t") for line in (files / "test.conllu").read_text("utf-8").splitlines() if line]
    assert [one["target"] for one in kept] == [cells[3] for cells in lines]
    assert scores["test"]["accuracy"] == pytest.approx(np.mean([one["target"] == one["answer"] for one in kept]))
    assert scores["test"]["words"] == len(lines) and scores["test"]["items"] == 40
    assert scores["test"]["accuracy"] > 0.98 and scores["test"]["unread_words"] == 0
    texts = (files / "test.conllu").read_text("utf-8").split("\n\n")
    words = [" ".join(line.split("\t")[1] for line in text.strip().splitlines()) for text in texts if text.strip()]
    assert [one["item"] for one in kept] == [number for number, text in enumerate(words) for _ in text.split()]
    answers = [one["label"] for found in own.predict(words) for one in found.details["words"]]
    assert [one["answer"] for one in kept] == answers
    assert own.evaluate(data=[files / "test.conllu"])["test.conllu"] == pytest.approx(scores["test"])
    (line,) = own.trained.summary("test", scores["test"])
    assert re.fullmatch(r"test: accuracy \d+\.\d\d%, loss \d\.\d{3} nats per word, [\d,]+ words in 40 texts", line)


def test_evaluate_and_compare_print_json(regardant, tagger, load, tmp_path):
    folders = [shutil.copytree(tagger.folder, tmp_path / "whole"), tmp_path / "brief"]
    run.train(load(*BRIEF), folders[1], lambda line: None)
    for folder in folders:
        said = regardant("evaluate", folder, "--json")
        assert said.code == 0 and json.loads(said.out)["items"] == 40, said.err
    said = regardant("compare", *folders, "--json")
    assert said.code == 0, said.err
    brief = json.loads(said.out)["runs"][1]["tests"]["test"]
    assert brief["accuracy_from_first"]["difference"] < 0
    assert regardant("compare", *folders, "--page", tmp_path / "a.html").code == 0


def test_words_beyond_the_model_are_counted_and_not_scored(load, files, tmp_path):
    run.train(load(*BRIEF, "model.max_length=5"), tmp_path / "run", lambda line: None)
    trained = run.load(tmp_path / "run").trained
    scores = trained.evaluate()["test"]
    lines = [line for line in (files / "test.conllu").read_text("utf-8").splitlines() if line]
    assert scores["unread_words"] > 0 and scores["words"] + scores["unread_words"] == len(lines)
    assert 0 < scores["cut"] <= 40
    assert re.search(
        rf"; [\d,]+ further words are beyond the model's 5 tokens; items cut to the model's length: {scores['cut']}$",
        trained.summary("test", scores)[0],
    )


def test_bio_labels_have_spans(load, tmp_path):
    given = ("data.source=train.bio", "data.test=test.bio", "training.best_by=span_f1")
    run.train(
        load(*given, "training.max_updates=100", "training.validate_every=50"), tmp_path / "run", lambda line: None
    )
    trained = run.load(tmp_path / "run").trained
    scores = trained.evaluate()["test"]
    assert 0 < scores["span_f1"] <= 1 and "span F1 " in trained.summary("test", scores)[0]


def test_labels_without_a_training_word_are_told(load, files, tmp_path):
    (tmp_path / "more.conllu").write_text("1\tthe\t_\tX\t_\t_\t_\t_\t_\t_\n", encoding="utf-8")
    said = []
    run.train(load(*BRIEF, f"data.test={tmp_path / 'more.conllu'}"), tmp_path / "run", said.append)
    assert "labels without a training word: X" in said
    trained = run.load(tmp_path / "run").trained
    assert trained.labels == ["ADJ", "DET", "NOUN", "VERB", "X"] and trained.evaluate()["test"]["words"] == 1


# other tools


def test_words_are_inspected_with_their_labels(regardant, tagger, tmp_path):
    found = tagger.inspect(TEXT)
    (kind,) = found.layers
    assert found.answer == tagger.predict([TEXT])[0].answer and found.answer in found.note
    assert [name for name, _ in found.rows(kind).units] == found.answer.split()
    (picture,) = found.pictures
    assert picture.weights.shape[-1] == len(found.inputs["input"].labels) == sum(n for _, n in picture.source_units)
    for name in ("a.html", "a.svg", "a.json"):
        said = regardant("inspect", tagger.folder, TEXT, "--out", tmp_path / name)
        assert said.code == 0 and said.lines == [found.answer], said.err
    assert json.loads((tmp_path / "a.json").read_text("utf-8"))["words"][0]["label"] == "DET"


def test_a_class_token_is_inspected_beside_the_words(load, tmp_path):
    run.train(load(*BRIEF, "head.class_token=true"), tmp_path / "run", lambda line: None)
    found = run.load(tmp_path / "run").inspect(TEXT)
    assert found.inputs["input"].labels[0] == "<class>"
    assert [name for name, _ in found.inputs["input"].units] == ["<class>", *found.answer.split()]


def test_attention_is_measured_and_the_lens_reads_first_tokens(tagger, tmp_path):
    own = run.load(shutil.copytree(tagger.folder, tmp_path / "run"))
    measures = own.measure()
    assert list(measures.heads) == ["encoder.self_attention"] and measures.sentences == 33
    last = measures.lens[-1]
    assert last.divergence == pytest.approx(0, abs=1e-5)
    assert last.first == pytest.approx(own.evaluate()["validation"]["accuracy"], abs=1e-6)


def test_the_frequencies_of_labels_are_counted_once_a_word(tagger, tmp_path):
    counts = dict(zip(tagger.trained.labels, tagger.trained.target_counts().tolist(), strict=True))
    own = run.load(shutil.copytree(tagger.folder, tmp_path / "run"))
    words = own.evaluate()["validation"]["words"]
    assert sum(counts.values()) == words and counts["DET"] == counts["NOUN"] == 2 * counts["VERB"] == 66


def test_a_healthy_tagger_has_no_findings(tagger):
    diagnosis = tagger.doctor()
    assert not diagnosis.findings
    assert {"padding mask", "more than frequencies", "order of elements", "unknown tokens"} <= diagnosis.seen.keys()


def test_the_cost_is_planned(regardant, files, tmp_path):
    (tmp_path / "a.yaml").write_text(json.dumps(RECIPE), encoding="utf-8")
    said = regardant("plan", tmp_path / "a.yaml", "--set", f"data.root={files}")
    assert said.code == 0 and "word" in said.out, said.err


def test_the_studio_shows_a_tagger(tagger):
    client = TestClient(make_app([tagger.folder]), base_url="http://localhost")
    name = tagger.folder.as_posix()
    examples = client.get("/api/examples", params={"run": name}).json()
    assert examples and all(tagger.inspect(one["item"]).item == one["item"] for one in examples)
    body, found = {"run": name, "text": TEXT}, tagger.inspect(TEXT)
    seen = client.post("/api/look", json=body).json()
    assert (seen["answer"], seen["views"]) == (found.answer, [])
    place = seen["pictures"]["places"][0][0]
    steps = client.post("/api/steps", json={**body, "attention": place, "query": 2}).json()
    assert steps["queries"] == steps["keys"] == found.inputs["input"].labels
    assert client.post("/api/streams", json=body).json()["tokens"] == steps["keys"]
    assert client.post("/api/shapes", json=body).json()["elements"] == {"input": len(steps["keys"])}
    (told,) = client.get("/api/runs").json()
    assert told["views"] == []
    answer = client.post("/api/look", json={**body, "target": "le chat"})
    assert answer.json()["detail"] == "a run of tagging is inspected without target: leave that out"


# refusals


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("head.kind=sequence_class", "head.kind"),
        ("training.best_by=bleu", r"training\.best_by: given 'bleu'; allowed: accuracy, loss, span_f1"),
        ("input.kind=image", "input.kind"),
        ("model.kind=decoder_only", "model.kind: .*allowed: "),
        ("data.label=pos", r"data\.label: .*given 'pos'; allowed: upos, xpos, deprel, or a number from 1"),
    ],
)
def test_a_recipe_that_cannot_be_right_is_one_line(load, override, told):
    with pytest.raises(ConfigError, match=told) as refusal:
        load(override)
    assert "\n" not in str(refusal.value)


def test_spans_of_other_labels_select_no_weights(load, tmp_path):
    told = "training.best_by: given 'span_f1', but the labels are not BIO: set accuracy or loss"
    with pytest.raises(ConfigError, match=re.escape(told)):
        task_named("tagging").prepare(load("training.best_by=span_f1"), tmp_path / "run", lambda line: None)


def test_words_of_a_single_label_are_refused(load, tmp_path):
    (tmp_path / "one.txt").write_text("".join(f"word{number} X\n\n" for number in range(20)), encoding="utf-8")
    given = (f"data.source={tmp_path / 'one.txt'}", "data.test=null")
    with pytest.raises(DataError, match=r"^all training items have the label 'X': give items of two labels or more$"):
        task_named("tagging").prepare(load(*given), tmp_path / "run", lambda line: None)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1\ta\t_\tDET\t_\t_\t_\t_\t_\t_\n2\tb\t_\tXX\t_\t_\t_\t_\t_\t_\n", "line 2: label 'XX' is none of the run's"),
        ("\n", "holds no text: give one with a label for each word"),
        ("the cat\n", "line 1 has 1 tab-separated columns"),
    ],
)
def test_data_that_cannot_be_scored_is_one_line(regardant, tagger, tmp_path, text, told):
    (tmp_path / "a.conllu").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=told):
        tagger.evaluate(data=[tmp_path / "a.conllu"])
    said = regardant("evaluate", tagger.folder, "--data", tmp_path / "a.conllu")
    assert (said.code, said.err.count("\n")) == (2, 1) and told in said.err


def test_an_encoder_of_masked_words_is_taken_over(load, files, tmp_path):
    text = [
        " ".join(line.split("\t")[1] for line in one.strip().splitlines())
        for one in ((files / "train.conllu").read_text("utf-8").split("\n\n"))
    ]
    (tmp_path / "a.txt").write_text("\n".join(text) + "\n", encoding="utf-8")
    model = {name: value for name, value in RECIPE["model"].items()}
    training = {**RECIPE["training"], "max_updates": 4, "validate_every": 4}
    masked = {"task": "masked_language_modelling", "data": {"source": "a.txt"}, "model": model, "training": training}
    run.train(load_recipe(masked, [f"data.root={tmp_path}"]), tmp_path / "masked", lambda line: None)
    given = (f"training.from={tmp_path / 'masked'}", "training.parts=[input, encoder]", *BRIEF)
    document = {name: value for name, value in copy.deepcopy(RECIPE).items() if name != "input"}
    config = load_recipe(document, [f"data.root={files}", *given])
    run.train(config, tmp_path / "run", lambda line: None)
    tokenizers = [(tmp_path / name / "tokenizer.json").read_bytes() for name in ("masked", "run")]
    assert tokenizers[0] == tokenizers[1]
    assert len(run.load(tmp_path / "run").predict([TEXT])[0].details["words"]) == 6
