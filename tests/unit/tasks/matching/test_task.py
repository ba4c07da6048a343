"""A matcher of images and texts from its data to its answers, and every tool on a run of it."""

import copy
import json
import re
import shutil
from itertools import chain
from random import Random

import numpy as np
import pytest
import torch
from fastapi.testclient import TestClient
from PIL import Image

from regardant import run
from regardant.data.captioned_digits import CaptionedDigitsConfig
from regardant.errors import ConfigError, DataError, RunError
from regardant.inspection import ScaleHead, attention_places, intervene
from regardant.studio.app import make_app
from regardant.tasks import load_recipe, task_named
from regardant.tasks.matching.pairs import number_pairs, pair_up
from tests.runs import BRIEF, STEADY, runs_of

pytestmark = pytest.mark.xdist_group("matching")  # one process makes what all tests share

CPU = torch.device("cpu")

TOWER = {"kind": "encoder_only", "d_model": 32, "num_heads": 2, "d_ff": 64, "num_layers": 1, "dropout": 0.0}

RECIPE = {
    "task": "matching",
    "data": {"kind": "digits"},
    "first": {"kind": "image", "patch_size": 4},
    "second": {"kind": "text", "tokenizer": {"kind": "word"}},
    "model": {"size": 16, "first": {**TOWER, "max_length": 4}, "second": {**TOWER, "max_length": 16}},
    "training": {
        "max_updates": 150,
        "batch_tokens": 320,
        "validate_every": 75,
        "best_by": "class_recall_at_1",
        **STEADY,
        "schedule": {"kind": "linear", "learning_rate": 5e-3, "warmup_steps": 20},
    },
}

TEXT_PAIRS = (
    "first.kind=text",
    "first.tokenizer.kind=word",
    "model.first.max_length=16",
    "training.best_by=recall_at_1",
    *BRIEF,
)


def load(*overrides):
    """The recipe with fields set as by --set."""
    return load_recipe(copy.deepcopy(RECIPE), overrides)


@pytest.fixture(scope="module")
def trained_on(made_once):
    """What gives the run of the recipe with fields set. Its folder is shared: copy it to change it."""
    return runs_of("tiny-pairs", load, made_once)


@pytest.fixture(scope="module")
def matcher(trained_on):
    return trained_on()


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A folder with train.tsv and test.tsv: numbers in digits and in words, with the first digit as label."""
    random, folder = Random(3), tmp_path_factory.mktemp("pairs")
    words = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    for name, size in (("train", 120), ("test", 20)):
        rows = ["number\tspelt\tkind"]
        for _ in range(size):
            digits = random.choices(range(10), k=random.randint(1, 3))
            rows.append(f"{' '.join(map(str, digits))}\t{' '.join(words[one] for one in digits)}\t{digits[0]}")
        (folder / f"{name}.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


def of_tables(folder, *overrides):
    """The recipe over the tables."""
    document = {**copy.deepcopy(RECIPE), "first": {"kind": "text"}}
    document["data"] = {"root": str(folder), "source": "train.tsv", "test": "test.tsv"}
    document["data"] |= {"first": "number", "second": "spelt"}
    return load_recipe(document, [*TEXT_PAIRS, *overrides])


@pytest.fixture(scope="module")
def on_tables(tables, tmp_path_factory):
    """A brief run over labelled pairs of texts."""
    folder = tmp_path_factory.mktemp("runs") / "tables"
    assert run.train(of_tables(tables, "data.label=kind"), folder, lambda line: None).finished
    return run.load(folder)


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """PNG files of test images, with their labels."""
    folder, found = tmp_path_factory.mktemp("digits"), []
    pairs = CaptionedDigitsConfig().read(1, files=(True, False))["test"]
    for number, pair in enumerate(pairs[:40]):
        path = folder / f"{number}.png"
        Image.fromarray((pair.first * 255).round().astype("uint8")).save(path)
        found.append((str(path), pair.label))
    return found


def prepared(config, folder):
    return task_named("matching").prepare(config, folder, lambda line: None).job


# batches and the loss


def test_every_pair_is_in_one_batch_of_equal_size_and_order_differs_by_epoch(tmp_path):
    job = prepared(load(), tmp_path / "run")
    plans = [[one.indices.tolist() for one in job.plan(epoch)] for epoch in (0, 0, 1)]
    assert plans[0] == plans[1] != plans[2]
    for plan in plans:
        assert sorted(chain.from_iterable(plan)) == list(range(1293))
        assert max(map(len, plan)) - min(map(len, plan)) <= 1
    assert sum(job.load(one).count for one in job.plan(0)) == job.targets_per_epoch == 1293


def test_items_of_a_batch_stay_with_their_partners(tmp_path):
    job = prepared(load(), tmp_path / "run")
    pairs = CaptionedDigitsConfig().read(1, files=(True, False))["train"]
    planned = job.plan(0)[0]
    batch = job.load(planned)
    codecs = {"first": job.batches.codec, "second": job.batches.second.codec}
    for side, (name, codec) in enumerate(codecs.items()):
        items = [pairs[number][side] for number in planned.indices]
        torch.testing.assert_close(batch.inputs[name], codec.collate(codec.encode(items)))
    captions = [pairs[number].second for number in planned.indices]
    same = torch.tensor([[one == other for other in captions] for one in captions])
    assert torch.equal(batch.targets[:, None, 1] == batch.targets[None, :, 1], same) and same.sum() > len(same)


def test_equal_items_have_one_number():
    first = [np.array([1, 2]), np.array([3]), np.array([1, 2]), np.array([2, 1])]
    assert number_pairs(first, first[::-1]) == [(0, 0), (1, 1), (0, 2), (2, 1)]


def test_the_validation_loss_is_the_mean_over_pairs(tmp_path):
    job = prepared(load(), tmp_path / "run")
    model = job.model.eval()
    with torch.inference_mode():
        batches = [job.validation.load(planned) for planned in job.validation.plan(0)]
        nats = sum(float(model(**one.inputs, targets=one.targets).plain) for one in batches)
        found = job.validate(model, CPU)
    assert found["loss"] == pytest.approx(nats / 144, rel=1e-5) and len(batches) > 1
    assert found.keys() == {metric.name for metric in job.metrics}


@pytest.mark.parametrize("field", ["accumulate", "processes"])
def test_a_batch_is_not_divided(regardant, tmp_path, field):
    (tmp_path / "a.yaml").write_text(json.dumps(RECIPE), encoding="utf-8")
    said = regardant("train", tmp_path / "a.yaml", "--set", f"training.{field}=2", "--out", tmp_path / "run")
    assert said.code == 2
    told = f"training.{field}: given 2; this task compares the rows of a batch with each other, so a batch cannot be"
    assert told in said.err.splitlines()[-1]


def test_processes_are_never_tried(tmp_path):
    given = ("training.processes=auto", "training.max_updates=100000")
    _, decisions, _ = run.plan(load(*given), tmp_path / "run", lambda line: None)
    assert decisions.processes == 1 and not any("processes" in name for name in decisions.seconds)


def test_training_goes_on_as_if_it_had_not_stopped(tmp_path):
    folders = [tmp_path / "whole", tmp_path / "resumed"]
    constant = "training.schedule={kind: constant, learning_rate: 0.001}"
    for folder, budgets in zip(folders, [(4,), (2, 4)], strict=True):
        for updates in budgets:
            given = (f"training.max_updates={updates}", "training.validate_every=4", constant)
            assert run.train(load(*given), folder, lambda line: None).finished
    whole, resumed = (torch.load(sorted((one / "checkpoints").iterdir())[-1], weights_only=True) for one in folders)
    assert all(torch.equal(whole["model"][name], one) for name, one in resumed["model"].items())


# predictions


def test_images_are_classified_by_prompts_after_a_second_of_training(matcher, digits):
    found = matcher.predict([path for path, _ in digits])
    right = sum(one.answer == label for one, (_, label) in zip(found, digits, strict=True))
    assert right >= 34
    best = found[0].details["matches"]
    assert len(best) == 5 and found[0].details["label"] == best[0]["label"] == found[0].answer
    assert best[0]["item"] == CaptionedDigitsConfig().prompts[found[0].answer]
    assert [one["similarity"] for one in best] == sorted((one["similarity"] for one in best), reverse=True)
    assert all(-1 <= one["similarity"] <= 1 for one in best)


def test_probabilities_are_the_softmax_of_similarities_over_the_temperature(matcher, digits):
    model = matcher.trained.model
    scores = torch.tensor([0.5, -0.2, 0.9, 0.1, 0.0, 0.3, 0.2, 0.4, -0.9, 0.6])
    matches = matcher.trained.answer("x", scores).details["matches"]
    shares = (scores * model.head.log_scale.detach().exp()).softmax(-1).topk(5).values
    assert [one["probability"] for one in matches] == pytest.approx(shares.tolist())


def test_images_are_answered_alike_alone_and_together(matcher, digits):
    paths = [path for path, _ in digits[:5]]
    for path, found in zip(paths, matcher.predict(paths), strict=True):
        (alone,) = matcher.predict([path])
        assert [one["item"] for one in alone.details["matches"]] == [one["item"] for one in found.details["matches"]]


def test_the_collection_is_read_once(matcher, digits, monkeypatch):
    trained = run.load(matcher.folder).trained
    read, tower = [], trained.model.second
    scores = tower.scores
    monkeypatch.setattr(tower, "scores", lambda **inputs: read.append(1) or scores(**inputs))
    for path, _ in digits[:3]:
        trained.predict([path])
    assert len(read) == 1


def test_heads_switched_off_change_the_collection_for_as_long(matcher, digits):
    trained, path = run.load(matcher.folder).trained, digits[0][0]
    (place,) = attention_places(trained.model)["second.encoder.self_attention"]

    def similarities():
        (found,) = trained.predict([path])
        return sorted(one["similarity"] for one in found.details["matches"])

    with intervene(trained.model, ScaleHead(place, 0)):
        off = similarities()
    on = similarities()
    with intervene(trained.model, ScaleHead(place, 0)):
        assert similarities() == off != on
    assert (
        similarities()
        == on
        == pytest.approx(sorted(one["similarity"] for one in matcher.predict([path])[0].details["matches"]))
    )


def test_without_prompts_an_image_is_compared_with_the_captions_of_training(trained_on, digits):
    captions = trained_on("data.prompts={}", *BRIEF)
    (found,) = captions.predict([digits[0][0]])
    train = CaptionedDigitsConfig().read(1, files=(True, False))["train"]
    assert set(captions.trained.collection.items) == {pair.second for pair in train}
    assert found.answer == found.details["matches"][0]["item"] in captions.trained.collection.items
    assert "label" not in found.details and "zero_shot_accuracy" not in captions.evaluate()["test"]


def test_a_collection_needs_no_data(matcher, digits, tmp_path):
    folder = shutil.copytree(matcher.folder, tmp_path / "run", ignore=shutil.ignore_patterns("data"))
    bare = run.load(folder)
    assert bare.predict([digits[0][0]])[0].answer == matcher.predict([digits[0][0]])[0].answer
    with pytest.raises(RunError, match="holds no data: give some with --data"):
        bare.evaluate()


def test_predict_prints_a_label_and_its_matches(regardant, matcher, digits):
    path, _ = digits[0]
    said = regardant("predict", matcher.folder, path)
    assert said.code == 0 and said.lines == [matcher.predict([path])[0].answer]
    said = regardant("predict", matcher.folder, path, "--json")
    assert len(json.loads(said.out)["predictions"][0]["matches"]) == 5


# scores


def test_retrieval_and_zero_shot_classification_are_scored(matcher, tmp_path):
    own = run.load(shutil.copytree(matcher.folder, tmp_path / "run"))
    scores = own.evaluate()
    assert scores.keys() == {"test", "validation"}
    test = scores["test"]
    assert test["items"] == 360 and test["second_items"] <= 70
    assert test["class_recall_at_1"] > 0.85 and test["reverse_class_recall_at_1"] > 0.85
    assert test["zero_shot_accuracy"] > 0.85
    assert test["recall_at_1"] <= test["recall_at_5"] and test["recall_at_1"] < 0.5  # seven captions a class
    kept = (own.folder / "evaluation" / "test.predictions.jsonl").read_text("utf-8").splitlines()
    kept = [json.loads(line) for line in kept]
    pairs = CaptionedDigitsConfig().read(1, files=(True, False))["test"]
    assert [one["target"] for one in kept] == [pair.label for pair in pairs]
    assert np.mean([one["target"] == one["answer"] for one in kept]) == pytest.approx(test["zero_shot_accuracy"])
    lines = own.trained.summary("test", test)
    assert re.fullmatch(r"test: zero-shot accuracy \d\d\.\d\d%", lines[0])
    assert lines[1].startswith("test: recall@1 ") and lines[2].startswith("test, reversed: recall@1 ")
    assert lines[3].endswith(f"360 pairs of 360 first and {test['second_items']} second items")


def test_an_image_with_several_captions_is_classified_once(matcher, tmp_path):
    trained = run.load(shutil.copytree(matcher.folder, tmp_path / "run")).trained
    split = trained._splits()["test"]
    order = [*range(360), *range(50), *range(50)]
    seconds = [split.second.items[number] for number in order]
    copies = pair_up([split.items[number] for number in order], seconds, split.targets[order].tolist())
    scores = {name: trained.evaluated(name, one) for name, one in (("once", split), ("copies", copies))}
    assert (scores["copies"]["items"], scores["copies"]["first_items"]) == (460, 360)
    assert scores["copies"]["zero_shot_accuracy"] == scores["once"]["zero_shot_accuracy"]
    kept = [(trained.folder / "evaluation" / f"{name}.predictions.jsonl").read_text("utf-8") for name in scores]
    assert kept[0] == kept[1] and kept[0].count("\n") == 360


def test_the_scores_of_validation_are_those_of_training(matcher, tmp_path):
    trained = run.load(shutil.copytree(matcher.folder, tmp_path / "run")).trained
    scores = trained.evaluated("validation", trained._splits()["validation"])
    events = [json.loads(line) for line in (matcher.folder / "metrics.jsonl").read_text("utf-8").splitlines()]
    validated = [one for one in events if one["event"] == "validation"]
    best = max(validated, key=lambda one: one["class_recall_at_1"])
    for name in ("loss", "class_recall_at_1", "zero_shot_accuracy", "mean_rank", "reverse_recall_at_5"):
        assert scores[name] == pytest.approx(best[name], rel=1e-4)


def test_evaluate_and_compare_print_json(regardant, matcher, trained_on, tmp_path):
    folders = [shutil.copytree(matcher.folder, tmp_path / "whole")]
    folders.append(shutil.copytree(trained_on(*BRIEF).folder, tmp_path / "brief"))
    for folder in folders:
        said = regardant("evaluate", folder, "--json")
        assert said.code == 0 and json.loads(said.out)["items"] == 360, said.err
    said = regardant("compare", *folders, "--json", "--page", tmp_path / "a.html")
    assert said.code == 0, said.err
    told = json.loads(said.out)
    brief = told["runs"][1]["tests"]["test"]
    assert brief["accuracy_from_first"]["difference"] < 0 and "mean_rank" in brief
    assert told["tested"] == "zero-shot accuracy"


# tables


def test_pairs_of_texts_come_from_tables(on_tables, tables):
    scores = on_tables.evaluate()
    assert scores["test"]["items"] == 20 and "zero_shot_accuracy" not in scores["test"]
    assert on_tables.evaluate(data=[tables / "test.tsv"])["test.tsv"] == pytest.approx(scores["test"])
    (found,) = on_tables.predict(["4 2"])
    train = (tables / "train.tsv").read_text("utf-8").splitlines()[1:]
    assert found.answer in {line.split("\t")[1] for line in train}
    inputs = on_tables.inspect("4 2").inputs
    assert [word for word, _ in inputs["first"].units] == ["4", "2"]
    assert [word for word, _ in inputs["second"].units] == found.answer.split()
    assert "class_recall_at_1" in scores["test"]


def test_a_batch_of_other_data_has_as_many_pairs_as_in_training(tables, tmp_path):
    """The loss depends on their number. A text as long as the model leaves room for one pair among 16 tokens."""
    config = of_tables(tables, "training.batch_tokens=16")
    assert run.train(config, tmp_path / "run", lambda line: None).finished
    loaded = run.load(tmp_path / "run")
    rows = (tables / "test.tsv").read_text("utf-8")
    (tmp_path / "long.tsv").write_text(f"{rows}{'1 ' * 20}\t{'one ' * 20}\t1\n", encoding="utf-8")
    trained, job = loaded.trained, prepared(config, tmp_path / "run")
    sets = [trained._splits()["test"], trained.read(tmp_path / "long.tsv")]
    pairs = [one.rows for one in (job.batches, job.validation, *map(trained.batches, sets))]
    assert pairs == [16 // 3] * 4  # numbers of training have three words at most
    scores = loaded.evaluate(data=[tmp_path / "long.tsv"])["long.tsv"]
    assert (scores["items"], scores["cut"]) == (21, 2)
    assert trained.summary("long.tsv", scores)[-1].endswith(" second items; items cut to the model's length: 2")


def test_pairs_without_labels_are_scored_without_classes(tables, tmp_path):
    run.train(of_tables(tables), tmp_path / "run", lambda line: None)
    scores = run.load(tmp_path / "run").evaluate()["test"]
    assert 0 <= scores["recall_at_1"] <= 1 and "class_recall_at_1" not in scores


def test_images_are_read_from_files_beside_the_table(digits, tmp_path):
    rows = [f"{path}\tthe digit {label}" for path, label in digits]
    (tmp_path / "a.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    document = copy.deepcopy(RECIPE)
    prompts = {label: f"a {label}" for label in "0123456789"}
    document["data"] = {"source": "a.tsv", "root": str(tmp_path), "first": "1", "second": "2", "prompts": prompts}
    config = load_recipe(document, ["training.best_by=recall_at_1", *BRIEF])
    run.train(config, tmp_path / "run", lambda line: None)
    trained = run.load(tmp_path / "run")
    assert trained.predict([digits[0][0]])[0].answer in prompts
    assert trained.evaluate(data=[tmp_path / "a.tsv"])["a.tsv"]["items"] == 40


# other tools


def test_both_towers_are_inspected(regardant, matcher, digits, tmp_path):
    path, _ = digits[0]
    found = matcher.inspect(path)
    assert list(found.layers) == ["first.encoder.self_attention", "second.encoder.self_attention"]
    image, text = found.pictures
    assert (image.kind, text.kind) == ("Encoder self-attention (first)", "Encoder self-attention (second)")
    assert image.source_layout.picture.startswith("data:image/png") and image.weights.shape[-1] == 4
    best = found.details["matches"][0]["item"]
    assert [word for word, _ in found.inputs["second"].units] == best.split()
    assert text.weights.shape[-1] == len(found.inputs["second"].labels) == len(best.split())
    assert found.shares[0][0] == best and best in found.note
    for name in ("a.html", "a.svg", "a.json"):
        said = regardant("inspect", matcher.folder, path, "--out", tmp_path / name)
        assert said.code == 0 and said.lines == [found.answer], said.err
    assert json.loads((tmp_path / "a.json").read_text("utf-8"))["inputs"].keys() == {"first", "second"}


def test_attention_of_both_towers_is_measured(matcher, tmp_path):
    own = run.load(shutil.copytree(matcher.folder, tmp_path / "run"))
    measures = own.measure()
    assert list(measures.heads) == ["first.encoder.self_attention", "second.encoder.self_attention"]
    assert measures.sentences == 100 and not measures.lens
    assert "no logit lens: Match compares two inputs and scores no classes" in measures.notes


def test_a_healthy_matcher_has_no_findings(matcher):
    diagnosis = matcher.doctor()
    assert not diagnosis.findings
    assert {"padding mask", "order of elements", "unknown tokens", "attention entropy"} <= diagnosis.seen.keys()
    assert "more than frequencies" in diagnosis.left_out


def test_towers_of_other_kinds_have_no_findings_either(digits, tmp_path):
    document = {**copy.deepcopy(RECIPE), "model": {"first": {"kind": "recurrent"}, "second": {"kind": "bag"}}}
    run.train(load_recipe(document, BRIEF), tmp_path / "run", lambda line: None)
    matcher = run.load(tmp_path / "run")
    assert not matcher.doctor().findings and not matcher.inspect(digits[0][0]).layers
    with pytest.raises(RunError, match="this model has no attention to measure"):
        matcher.measure()


def test_a_class_token_of_both_towers_is_inspected(trained_on, digits):
    inputs = trained_on("model.pooling=class_token", *BRIEF).inspect(digits[0][0]).inputs
    assert [one.labels[0] for one in inputs.values()] == ["<class>", "<class>"]


def test_a_post_norm_tower_without_warm_up_is_found(tmp_path):
    given = ("model.second.norm=post", "training.schedule.warmup_steps=0")
    run.train(load(*given, *BRIEF), tmp_path / "run", lambda line: None)
    ((name, finding),) = run.load(tmp_path / "run").doctor().findings
    assert name == "warm-up" and "model.second.norm=post" in finding.evidence


def test_the_cost_is_planned(regardant, tmp_path):
    (tmp_path / "a.yaml").write_text(json.dumps(RECIPE), encoding="utf-8")
    said = regardant("plan", tmp_path / "a.yaml")
    assert said.code == 0 and "MFLOP per pair" in said.out and "of the second blocks" in said.out, said.err


def test_the_studio_shows_a_matcher(matcher):
    client = TestClient(make_app([matcher.folder]), base_url="http://localhost")
    name = matcher.folder.as_posix()
    (told,) = client.get("/api/runs").json()
    assert told["suffixes"] == [".png", ".jpg", ".jpeg", ".npy"] and told["views"] == []
    examples = client.get("/api/examples", params={"run": name}).json()
    assert len(examples) == 8 and all(one["picture"] for one in examples)
    body = {"run": name, "text": examples[0]["item"]}
    found = matcher.inspect(body["text"])
    seen = client.post("/api/look", json=body).json()
    assert seen["answer"] == found.answer and len(seen["pictures"]["kinds"]) == 2
    for side, places in zip(("first", "second"), seen["pictures"]["places"], strict=True):
        labels = found.inputs[side].labels
        steps = client.post("/api/steps", json={**body, "attention": places[0], "query": 1}).json()
        assert steps["queries"] == steps["keys"] == labels
        streams = client.post("/api/streams", json=body).json()
        assert [one["tokens"] for one in streams["sides"] if one["name"].lower() == side] == [labels]
    shapes = client.post("/api/shapes", json=body).json()
    assert shapes["elements"] == {side: len(one.labels) for side, one in found.inputs.items()}


def test_a_tower_and_its_codecs_are_taken_over(matcher, tmp_path):
    given = (f"training.from={matcher.folder}", "training.parts=[first]", *BRIEF)
    frozen = "training.optimizer={kind: adamw, rate_factors: {first: 0}, weight_decay: 0}"
    run.train(load(*given, frozen), tmp_path / "run", lambda line: None)
    towers = [one.trained.model.first.state_dict() for one in (matcher, run.load(tmp_path / "run"))]
    assert all(torch.equal(towers[0][name], one) for name, one in towers[1].items())
    assert (tmp_path / "run" / "first" / "image.json").read_bytes() == (
        matcher.folder / "first" / "image.json"
    ).read_bytes()
    with pytest.raises(ConfigError, match=r"differs in first \(model\.first\.d_ff"):
        run.train(load(*given, "model.first.d_ff=32"), tmp_path / "other", lambda line: None)


@pytest.mark.parametrize("name", ["first/image.json", "second/tokenizer.json", "collection.json"])
def test_a_changed_file_is_refused(matcher, tmp_path, name):
    folder = shutil.copytree(matcher.folder, tmp_path / "run")
    (folder / name).write_text("{}")
    with pytest.raises(RunError, match=f"{name} is not what training wrote"):
        _ = run.load(folder).trained


# refusals


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("head.kind=sequence_class", "head.kind"),
        ("model.kind=encoder_only", r"model.kind: .*allowed: dual_encoder"),
        ("training.best_by=accuracy", r"training\.best_by: given 'accuracy'; allowed: recall_at_1"),
        ("data.kind=pictures", r"data.kind: .*allowed: .*table.*digits|data.kind: .*allowed: .*digits.*table"),
        ("model.pooling=middle", "model.pooling"),
    ],
)
def test_a_recipe_that_cannot_be_right_is_one_line(override, told):
    with pytest.raises(ConfigError, match=told) as refusal:
        load(override)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        (
            ("training.batch_tokens=8",),
            "training.batch_tokens: given 8, with room for 1 pair of 5 elements; pairs of a batch are compared with "
            "each other: give 10 at least",
        ),
        (("data.prompts={'3': a three}",), "data.prompts: none for 0, 1, 2, 4, 5, 6, 7, 8, 9; give one for each label"),
        (
            ("data.prompts={}", "training.best_by=zero_shot_accuracy"),
            "training.best_by: given 'zero_shot_accuracy', but there are no prompts: set data.prompts",
        ),
        (("first.kind=text",), "the items are of type ndarray, not texts"),
        (("first.patch_size=3",), "patch_size: given 3; images of 8 x 8 allow 1, 2, 4, 8"),
        (("model.first.max_length=2",), "an image has 4 patches, of which at most 2 are read"),
    ],
)
def test_settings_that_do_not_fit_the_pairs_are_one_line(tmp_path, overrides, told):
    with pytest.raises((ConfigError, DataError), match=re.escape(told)) as refusal:
        prepared(load(*overrides), tmp_path / "run")
    assert "\n" not in str(refusal.value)


def test_scores_of_labels_need_labels(tables, tmp_path):
    told = "training.best_by: given 'class_recall_at_1', but the pairs have no labels: set data.label"
    with pytest.raises(ConfigError, match=re.escape(told)):
        prepared(of_tables(tables, "training.best_by=class_recall_at_1"), tmp_path / "run")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("number\tspelt\tkind\n", "holds no pair: give one at least"),
        ("number\tspelt\tkind\n4\tfour\tx\n", "label 'x' is none of the run's (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)"),
        ("number\tkind\n4\t4\n", "has no column spelt; it has number, kind"),
    ],
)
def test_data_that_cannot_be_scored_is_one_line(regardant, on_tables, tmp_path, text, told):
    (tmp_path / "a.tsv").write_text(text, encoding="utf-8")
    said = regardant("evaluate", on_tables.folder, "--data", tmp_path / "a.tsv")
    assert (said.code, said.err.count("\n")) == (2, 1) and told in said.err


def test_pairs_that_were_made_take_no_data(regardant, matcher, tmp_path):
    said = regardant("evaluate", matcher.folder, "--data", tmp_path / "a.tsv")
    assert (said.code, said.err.count("\n")) == (2, 1) and "this run's pairs come from digits" in said.err


def test_items_that_cannot_be_read_are_one_line(regardant, matcher, tmp_path):
    for item, told in (("none.png", "cannot be read"), ("a three", "cannot be read")):
        said = regardant("predict", matcher.folder, tmp_path / item)
        assert (said.code, said.err.count("\n")) == (2, 1) and told in said.err
    said = regardant("measure", matcher.folder, "--treebank", tmp_path / "a.conllu")
    assert (said.code, said.err.count("\n")) == (2, 1)
