"""A model that answers questions, from its files to its answers, and every tool on a run of it."""

import copy
import json
import re
import shutil
from random import Random

import pytest
import torch
from fastapi.testclient import TestClient

from regardant import run
from regardant.errors import ConfigError, DataError
from regardant.studio.app import make_app
from regardant.tasks import load_recipe, task_named
from regardant.training.events import read_events
from tests.runs import BRIEF, STEADY, runs_of

pytestmark = pytest.mark.xdist_group("question_answering")  # one process makes what all tests share

CPU = torch.device("cpu")

RECIPE = {
    "task": "question_answering",
    "data": {"source": "train.jsonl", "test": "test.jsonl"},
    "input": {"kind": "text", "tokenizer": {"kind": "word", "vocab_size": 60}},
    "model": {"d_model": 32, "num_heads": 2, "num_layers": 2, "d_ff": 64, "max_length": 16, "dropout": 0.0},
    "answering": {"max_answer_length": 4},
    "training": {
        "max_updates": 200,
        "batch_tokens": 1024,
        "validate_every": 50,
        **STEADY,
        "schedule": {"kind": "linear", "learning_rate": 1e-2, "warmup_steps": 20},
    },
}

SHADES, COLOURS, ANIMALS = ["dark", "pale"], ["red", "blue", "green"], ["cat", "dog", "owl", "duck"]

OTHERS = ["we", "saw", "it", "then", "here", "again"]


def asked(random, longest=8):
    """Return a question for the colour or the animal of a context that may lack it."""
    words = random.choices(OTHERS, k=random.randint(3, longest))
    answers = {"colour": f"{random.choice(SHADES)} {random.choice(COLOURS)}", "animal": random.choice(ANIMALS)}
    for answer in answers.values():
        if random.random() < 0.7:
            words.insert(random.randint(0, len(words)), answer)
    kind = random.choice(list(answers))
    context = " ".join(words)
    answer = answers[kind] if answers[kind] in context else ""
    return {"question": f"which {kind} ?", "context": context, "answer": answer}


@pytest.fixture(scope="module")
def files(made_once):
    """A folder with train.jsonl, test.jsonl and long.jsonl, whose contexts are longer than the model."""

    def fill(folder):
        random = Random(3)
        for name, size, longest in (("train", 600, 8), ("test", 60, 8), ("long", 40, 40)):
            rows = [asked(random, longest) for _ in range(size)]
            (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    return made_once("questions", fill)


def test_an_answer_at_the_end_of_a_window_is_learnt_by_a_model_of_fewer_places(tmp_path):
    """A dense mixer has as many places as the model has tokens, and the class token takes one of them."""
    words = [f"w{number}" for number in range(12)]
    row = {"question": "which one ?", "context": " ".join(words), "answer": words[-1]}
    (tmp_path / "a.jsonl").write_text((json.dumps(row) + "\n") * 20, encoding="utf-8")
    given = {"source": "a.jsonl", "validation": "a.jsonl", "root": str(tmp_path)}
    recipe = copy.deepcopy(RECIPE) | {"data": given}
    recipe["model"] |= {"self_attention": {"kind": "dense"}}
    job = task_named("question_answering").prepare(load_recipe(recipe), tmp_path / "run", lambda line: None).job
    found = [target for planned in job.plan(0) for target in job.load(planned).targets.tolist()]
    assert len(found) == 40 and found.count([15, 15]) == 20


@pytest.fixture(scope="module")
def load(files):
    """The recipe with fields set as by --set."""
    return lambda *overrides: load_recipe(copy.deepcopy(RECIPE), [f"data.root={files}", *overrides])


@pytest.fixture(scope="module")
def answerer(load, made_once):
    """A finished run. Its folder is shared: copy it to change it."""
    return runs_of("tiny-questions", load, made_once)()


@pytest.fixture
def job(load, tmp_path):
    return task_named("question_answering").prepare(load(), tmp_path / "run", lambda line: None).job


CONTEXT = "then we saw a dark blue owl here"

ITEM = json.dumps({"question": "which colour ?", "context": CONTEXT})

EMPTY = json.dumps({"question": "which animal ?", "context": "then we saw it again"})


def rows(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


# batches and validation


def test_options_of_a_search_are_refused(answerer):
    with pytest.raises(ConfigError, match="a run of question_answering predicts without nbest: leave that out"):
        answerer.predict([ITEM], nbest=2)


def test_targets_are_the_first_and_the_last_token_of_the_answer(job):
    tokenizer = job.batches.codec.tokenizer
    seen = 0
    for planned in job.plan(0):
        batch = job.load(planned)
        assert batch.count == len(batch.targets) == sum(batch.part(rank, 2).count for rank in range(2))
        for index, ids, (first, last) in zip(
            planned.indices, batch.inputs["input"].tolist(), batch.targets.tolist(), strict=True
        ):
            one = job.batches.split.questions[job.batches.split.numbers[index]]
            found = tokenizer.decode(ids[first - 1 : last]) if first else ""
            assert found == "".join(one.answers)
            seen += 1
    assert seen == job.targets_per_epoch == len(job.batches.split.questions)


def test_a_validation_keeps_the_threshold_of_the_highest_f1(job):
    model = job.model.eval()
    model.head.threshold.fill_(7.0)
    found = job.validate(model, CPU)
    assert found.keys() == {"f1", "exact_match", "no_answer_f1", "threshold", "loss"}
    assert found["threshold"] == float(model.head.threshold) != 7.0
    none = sum(not one.answers for one in job.validation.split.questions) / len(job.validation.split.questions)
    assert found["f1"] >= none  # as always answering nothing would give


def test_the_validation_loss_is_the_mean_over_windows(job):
    model = job.model.eval()
    nats = []
    with torch.inference_mode():
        for planned in job.validation.plan(0):
            batch = job.validation.load(planned)
            scores = model.scores(**batch.inputs).log_softmax(1)
            for row, (first, last) in enumerate(batch.targets.tolist()):
                nats.append(-float(scores[row, first, 0] + scores[row, last, 1]))
        assert job.validate(model, CPU)["loss"] == pytest.approx(sum(nats) / len(nats), rel=1e-4)


@pytest.mark.slow
def test_two_processes_learn_as_one(load, tmp_path):
    losses = []
    for processes in (1, 2):
        run.train(load(*BRIEF, f"training.processes={processes}"), tmp_path / str(processes), lambda line: None)
        events = read_events(tmp_path / str(processes) / "metrics.jsonl")
        losses.append([event["loss"] for event in events if "loss" in event])
    assert losses[0] == pytest.approx(losses[1], rel=1e-4) and len(losses[0]) == 2


# predictions


def test_a_question_is_answered_with_text_and_place(answerer):
    found, empty = answerer.predict([ITEM, EMPTY])
    start = CONTEXT.index("dark blue")
    assert (found.answer, found.details["text"]) == ("dark blue", "dark blue")
    assert (found.details["start"], found.details["end"]) == (start, start + len("dark blue"))
    assert found.details["score"] > found.details["threshold"] == answerer.trained.threshold
    assert empty.answer == "[no answer]" and empty.details["score"] <= empty.details["threshold"]
    assert (empty.details["text"], empty.details["start"], empty.details["end"]) == ("", None, None)
    assert not found.notes and not empty.notes


def test_unseen_questions_are_answered_and_the_threshold_is_of_validation(answerer):
    scores = answerer.evaluate()
    assert scores["test"]["exact_match"] > 0.95 and scores["test"]["no_answer_f1"] > 0.95
    events = [one for one in read_events(answerer.folder / "metrics.jsonl") if one["event"] == "validation"]
    best = max(events, key=lambda event: event["f1"])  # the first of equal ones
    assert answerer.trained.threshold == pytest.approx(best["threshold"])
    for name in ("f1", "exact_match", "no_answer_f1"):
        assert scores["validation"][name] == pytest.approx(best[name], abs=1e-6)


def test_a_long_context_is_read_in_windows_and_nothing_of_it_is_cut(answerer, files):
    filler = " ".join(OTHERS * 8)
    for context in (f"pale red {filler}", f"{filler} pale red", f"{filler} pale red {filler}"):
        item = json.dumps({"question": "which colour ?", "context": context})
        (found,) = answerer.predict([item])
        assert found.answer == "pale red"
        assert context[found.details["start"] : found.details["end"]] == "pale red"
        (note,) = found.notes
        windows = int(re.fullmatch(r"longer than the model's 16 tokens, read in (\d+) windows", note)[1])
        assert windows >= len(context.split()) / 12
        labels = answerer.inspect(item).inputs["input"].labels
        assert "▁red" in labels and len(labels) == 17  # with the class token
    given = answerer.evaluate(data=[files / "long.jsonl"])["long.jsonl"]
    assert given["exact_match"] > 0.8 and given["items"] == 40


def test_questions_are_answered_alike_alone_and_together(answerer, files):
    items = [json.dumps(row) for name in ("test", "long") for row in rows(files / f"{name}.jsonl")[:8]]
    for item, found in zip(items, answerer.predict(items), strict=True):
        (alone,) = answerer.predict([item])
        assert alone.answer == found.answer and alone.details["start"] == found.details["start"]
        assert alone.details["score"] == pytest.approx(found.details["score"], abs=1e-3)


def test_items_come_from_arguments_or_a_file_of_json_lines(regardant, answerer, files):
    said = regardant("predict", answerer.folder, ITEM, EMPTY)
    assert said.code == 0 and said.lines == ["dark blue", "[no answer]"]
    said = regardant("predict", answerer.folder, "--input", files / "long.jsonl", "--json")
    predictions = json.loads(said.out)["predictions"]
    given = rows(files / "long.jsonl")
    assert said.code == 0 and len(predictions) == len(given) and "read in" in said.err
    for found, row in zip(predictions, given, strict=True):
        if found["text"]:
            assert row["context"][found["start"] : found["end"]] == found["text"] == found["answer"]


# scores


def test_the_answer_to_each_question_is_kept(answerer, files, tmp_path):
    own = run.load(shutil.copytree(answerer.folder, tmp_path / "run"))
    scores, given = own.evaluate(), rows(files / "test.jsonl")
    kept = rows(own.folder / "evaluation" / "test.predictions.jsonl")
    assert [one["target"] for one in kept] == [[row["answer"]] if row["answer"] else [] for row in given]
    texts = [found.details["text"] for found in own.predict([json.dumps(row) for row in given])]
    assert [one["answer"] for one in kept] == texts
    assert scores["test"]["exact_match"] == pytest.approx(sum(one["right"] for one in kept) / len(kept))
    assert scores["test"]["f1"] == pytest.approx(sum(one["f1"] for one in kept) / len(kept))
    assert own.evaluate(data=[files / "test.jsonl"])["test.jsonl"] == pytest.approx(scores["test"])
    (line,) = own.trained.summary("test", scores["test"])
    number = r"\d+\.\d\d%"
    assert re.fullmatch(
        rf"test: exact match {number}, F1 {number}, F1 of no answer {number}, 60 questions, \d+ of them without an "
        "answer",
        line,
    )


def test_evaluate_and_compare_print_json(regardant, answerer, load, tmp_path):
    folders = [shutil.copytree(answerer.folder, tmp_path / "whole"), tmp_path / "brief"]
    run.train(load(*BRIEF), folders[1], lambda line: None)
    for folder in folders:
        said = regardant("evaluate", folder, "--json")
        assert said.code == 0 and json.loads(said.out)["items"] == 60, said.err
    said = regardant("compare", *folders, "--json")
    assert said.code == 0, said.err
    told = json.loads(said.out)
    whole, brief = (one["tests"]["test"] for one in told["runs"])
    assert told["tested"] == "exact match"
    assert brief["accuracy_from_first"]["difference"] == pytest.approx(brief["exact_match"] - whole["exact_match"])
    assert regardant("compare", *folders, "--page", tmp_path / "a.html").code == 0


# other tools


def test_a_question_is_inspected_with_starts_and_ends(regardant, answerer, tmp_path):
    found = answerer.inspect(ITEM)
    (kind,) = found.layers
    assert found.pictures[0].title == json.loads(ITEM)["question"]
    labels = found.inputs["input"].labels
    assert labels[:5] == ["<class>", "▁which", "▁colour", "▁?", "<eos>"] and found.answer == "dark blue"
    words = [name for name, _ in found.rows(kind).units]
    assert words == ["<class>", "which", "colour", "?", "<eos>", *CONTEXT.split()]
    assert re.search(r"Starts: ▁dark \(\d+\) \d+\.\d%, .* Ends: ▁blue \(\d+\) \d+\.\d%, ", found.note)
    tokens = found.as_dict()["tokens"]
    assert [one["token"] for one in tokens] == labels
    start, end = (max(range(len(tokens)), key=lambda at: tokens[at][side]) for side in ("start", "end"))
    assert (labels[start], labels[end]) == ("▁dark", "▁blue")
    best = tokens[start]["start"] + tokens[end]["end"] - tokens[0]["start"] - tokens[0]["end"]
    assert found.details["score"] == pytest.approx(best, abs=1e-4)
    for name in ("a.html", "a.svg", "a.json"):
        said = regardant("inspect", answerer.folder, ITEM, "--out", tmp_path / name)
        assert said.code == 0 and said.lines == ["dark blue"], said.err
    assert "Starts: " in (tmp_path / "a.html").read_text("utf-8")


def test_attention_is_measured_without_a_lens(answerer, tmp_path):
    own = run.load(shutil.copytree(answerer.folder, tmp_path / "run"))
    measures = own.measure()
    assert list(measures.heads) == ["encoder.self_attention"] and measures.sentences == 60
    assert measures.notes == ["no logit lens: Span scores no classes"] and not measures.lens


def test_a_healthy_run_has_no_findings(answerer):
    diagnosis = answerer.doctor()
    assert not diagnosis.findings
    assert {"padding mask", "order of elements", "unknown tokens"} <= diagnosis.seen.keys()
    assert not re.search(r"\b(nan|inf)\b", diagnosis.seen["order of elements"].measured)


def test_the_cost_is_planned(regardant, files, tmp_path):
    (tmp_path / "a.yaml").write_text(json.dumps(RECIPE), encoding="utf-8")
    said = regardant("plan", tmp_path / "a.yaml", "--set", f"data.root={files}")
    assert said.code == 0 and "window" in said.out, said.err


def test_the_studio_shows_a_run_that_answers_questions(answerer):
    client = TestClient(make_app([answerer.folder]), base_url="http://localhost")
    name = answerer.folder.as_posix()
    examples = client.get("/api/examples", params={"run": name}).json()
    assert examples and all(answerer.inspect(one["item"]).item == one["item"] for one in examples)
    body, found = {"run": name, "text": ITEM}, answerer.inspect(ITEM)
    seen = client.post("/api/look", json=body).json()
    assert (seen["answer"], seen["note"], seen["text"]) == (found.answer, found.note, "dark blue")
    place = seen["pictures"]["places"][0][0]
    steps = client.post("/api/steps", json={**body, "attention": place, "query": 2}).json()
    assert steps["queries"] == steps["keys"] == found.inputs["input"].labels
    assert client.post("/api/streams", json=body).json()["tokens"] == steps["keys"]
    assert client.post("/api/shapes", json=body).json()["elements"] == {"input": len(steps["keys"])}


# refusals


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("head.kind=sequence_class", "head.kind"),
        ("head={kind: span}", r"head\.no_answer: a part of a context may have no answer: set head\.no_answer=true"),
        (
            "training.best_by=accuracy",
            r"training\.best_by: given 'accuracy'; allowed: f1, exact_match, no_answer_f1, l",
        ),
        ("training.batch_tokens=15", r"training\.batch_tokens \(15\) must be at least model\.max_length \(16\)"),
        ("answering.stride=0", r"answering\.stride"),
        ("input.kind=image", "input.kind"),
        ("data.kind=story", r"data\.kind: .*allowed: files, stories"),
    ],
)
def test_a_recipe_that_cannot_be_right_is_one_line(load, override, told):
    with pytest.raises(ConfigError, match=told) as refusal:
        load(override)
    assert "\n" not in str(refusal.value)


def test_an_item_that_is_no_question_is_one_line(regardant, answerer):
    for item, told in (
        ("which colour ?", "'which colour ?' is no question with a context: give a JSON object, as {"),
        (
            json.dumps({"question": "which colour " * 9, "context": "we " * 9}),
            "a question of 18 tokens leaves 0 of the",
        ),
    ):
        for verb in ("predict", "inspect"):
            said = regardant(verb, answerer.folder, item)
            assert (said.code, said.err.count("\n")) == (2, 1) and told in said.err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"question": "which?", "context": "a cat", "answer": "dog"}\n', "line 1: the context has no 'dog'"),
        ("\n", "holds no question: give one with its context and its answer"),
        ("which colour\n", "line 1 is not a JSON object"),
    ],
)
def test_data_that_cannot_be_scored_is_one_line(regardant, answerer, tmp_path, text, told):
    (tmp_path / "a.jsonl").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=told):
        answerer.evaluate(data=[tmp_path / "a.jsonl"])
    said = regardant("evaluate", answerer.folder, "--data", tmp_path / "a.jsonl")
    assert (said.code, said.err.count("\n")) == (2, 1) and told in said.err


def test_a_run_whose_questions_are_damaged_says_so(answerer, tmp_path):
    own = run.load(shutil.copytree(answerer.folder, tmp_path / "run"))
    (own.folder / "data" / "test.questions.jsonl").write_text("{}\n", encoding="utf-8")
    told = []
    with pytest.raises(Exception, match=r"test\.questions\.jsonl is not what training wrote"):
        told.append(own.evaluate())
    assert not told and own.predict([ITEM])[0].answer == "dark blue"


def test_an_earlier_run_is_taken_over_with_its_vocabulary(answerer, files, tmp_path):
    document = {name: value for name, value in copy.deepcopy(RECIPE).items() if name not in ("input", "model")}
    given = [f"data.root={files}", f"training.from={answerer.folder}", *BRIEF]
    run.train(load_recipe(document, given), tmp_path / "run", lambda line: None)
    taken = run.load(tmp_path / "run")
    assert (tmp_path / "run" / "tokenizer.json").read_bytes() == (answerer.folder / "tokenizer.json").read_bytes()
    assert taken.predict([ITEM])[0].answer == "dark blue" and taken.evaluate()["test"]["exact_match"] > 0.95
