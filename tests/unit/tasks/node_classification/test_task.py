"""Nodes of a graph, from two tables to answers: trained once in a second, then used by every tool."""

import copy
import json
import re
import shutil
from random import Random

import numpy as np
import pytest
import torch
from fastapi.testclient import TestClient

from regardant import config as configuration
from regardant import run
from regardant.errors import ConfigError, DataError
from regardant.models.heads import IGNORED
from regardant.studio.app import make_app
from regardant.tasks import load_recipe, task_named
from regardant.tasks.node_classification.task import NodeClassificationConfig
from regardant.training.checkpoints import latest_checkpoint, load_checkpoint
from regardant.training.events import read_events
from tests.runs import STEADY

CPU = torch.device("cpu")
NODES = 60
TINY = {
    "task": "node_classification",
    "data": {"nodes": "nodes.tsv", "edges": "edges.tsv"},
    "input": {"kind": "graph", "eigenvectors": 2, "feature_dropout": 0.1},
    "model": {
        "d_model": 16,
        "num_heads": 2,
        "num_layers": 2,
        "d_ff": 16,
        "max_length": 64,
        "dropout": 0.1,
        "scale_embeddings": False,
        "positions": {"kind": "none"},
    },
    "training": {
        "max_updates": 60,
        "batch_tokens": 64,
        "validate_every": 20,
        **STEADY,
        "schedule": {"kind": "linear", "learning_rate": 1e-2, "warmup_steps": 5},
    },
}
"""Which of two circles a node is in, told by half of its words. Learned in a second."""


def silent(line):
    pass


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A folder with nodes.tsv and edges.tsv."""
    random, folder, half = Random(1), tmp_path_factory.mktemp("graph"), NODES // 2
    lines, edges = ["node\tlabel\tsplit\twords"], ["source\ttarget"]
    for node in range(NODES):
        circle = node // half
        split = ["train", "val", "test", "none"][node % 4]
        words = [random.choice("abc" if random.random() < 0.6 else "def") if circle else random.choice("def")]
        words += random.choices("abcdef", k=2)
        lines.append(f"p{node}\t{['left', 'right'][circle]}\t{split}\t{' '.join(words)}")
        edges.append(f"p{node}\tp{circle * half + (node + 1) % half}")
        if random.random() < 0.3:
            edges.append(f"p{node}\tp{circle * half + random.randrange(half)}")
    (folder / "nodes.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "edges.tsv").write_text("\n".join(edges) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def load(tables):
    def load(*overrides):
        given = (f"data.root={tables}", *overrides)
        return configuration.load(NodeClassificationConfig, copy.deepcopy(TINY), given, origin="tiny-graph")

    return load


@pytest.fixture(scope="module")
def whole(load, tmp_path_factory):
    folder, lines = tmp_path_factory.mktemp("runs") / "graph", []
    assert run.train(load(), folder, lines.append).finished
    assert any("nodes: 15 train, 15 validation, 15 test" in line for line in lines)
    assert any("a graph of 60 nodes and" in line and "0 nodes have no edge" in line for line in lines)
    assert any("labelled node" in line for line in lines)
    return folder


@pytest.fixture
def loaded(whole, tmp_path):
    """A copy to write to."""
    return run.load(shutil.copytree(whole, tmp_path / "run"))


# batches


def test_a_batch_is_the_graph_and_counts_the_labelled_nodes_of_its_split(load, tmp_path):
    job = task_named("node_classification").prepare(load(), tmp_path / "run", silent).job
    (planned,) = job.plan(0)
    batch = job.load(planned)
    assert batch.inputs["input"].tolist() == [list(range(NODES))]
    assert (batch.count, job.targets_per_epoch) == (15, 15)
    assert (batch.targets[0] != IGNORED).nonzero().flatten().tolist() == list(range(0, NODES, 4))
    assert batch.part(0, 2).count == 15 and batch.part(1, 2).count == 0


def test_validation_is_the_mean_over_the_nodes_of_its_split(load, tmp_path):
    job = task_named("node_classification").prepare(load(), tmp_path / "run", silent).job
    model, (planned,) = job.model.eval(), job.validation.plan(0)
    batch = job.validation.load(planned)
    with torch.inference_mode():
        found, scores = job.validate(model, CPU), model.scores(**batch.inputs)[0]
    nodes = list(range(1, NODES, 4))
    targets = batch.targets[0, nodes]
    assert found["loss"] == pytest.approx(float(torch.nn.functional.cross_entropy(scores[nodes], targets)), rel=1e-5)
    assert found["accuracy"] == pytest.approx(float((scores[nodes].argmax(1) == targets).float().mean()))
    assert found.keys() == {metric.name for metric in job.metrics}


# training


def test_a_run_over_a_graph_in_parts_ends_bit_equal(load, tmp_path):
    steady = "training.schedule={kind: constant, learning_rate: 0.01, warmup_steps: 2}"
    for folder, updates in (("parts", 7), ("parts", 30), ("whole", 30)):
        assert run.train(load(steady, f"training.max_updates={updates}"), tmp_path / folder, silent).finished
    states = [load_checkpoint(latest_checkpoint(tmp_path / folder)) for folder in ("whole", "parts")]
    torch.testing.assert_close(states[0]["model"], states[1]["model"], rtol=0, atol=0)


def test_heads_are_observed_in_neighbourhoods(whole):
    seen = [event for event in read_events(whole / "metrics.jsonl") if event["event"] == "observation"]
    assert len(seen) == 3
    entropy = np.array(seen[-1]["entropy"]["encoder.self_attention"])
    assert entropy.shape == (2, 2) and (entropy > 0).all()


# answers


def test_nodes_are_answered_as_in_the_whole_graph(loaded):
    found = loaded.predict(["p1", " p59"])
    trained = loaded.trained
    with torch.inference_mode():
        shares = trained.model.scores(input=torch.arange(NODES)[None])[0, [1, 59]].softmax(-1)
    for one, share, item in zip(found, shares, ("p1", " p59"), strict=True):
        assert one.item == item and one.answer == ["left", "right"][int(share.argmax())]
        assert one.details["probabilities"] == pytest.approx(dict(zip(["left", "right"], share.tolist(), strict=True)))


def test_the_command_line_answers_nodes_from_arguments_and_files(loaded, regardant, tmp_path):
    said = regardant("predict", loaded.folder, "p0", "p45")
    assert said.code == 0 and set(said.lines) <= {"left", "right"} and len(said.lines) == 2
    (tmp_path / "nodes.txt").write_text("p0\np45\n", encoding="utf-8")
    assert regardant("predict", loaded.folder, "--input", tmp_path / "nodes.txt").out == said.out
    said = regardant("predict", loaded.folder, "q0")
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert "'q0' is none of the graph's 60 nodes: give the id of one" in said.err


def test_evaluation_scores_the_nodes_of_each_split_and_keeps_their_answers(loaded, regardant):
    said = regardant("evaluate", loaded.folder, "--json")
    assert said.code == 0
    told = json.loads(said.out)
    scores = loaded.evaluate()
    assert list(scores) == ["test", "validation"] and scores["test"]["items"] == 15
    assert json.dumps(scores["test"]["accuracy"]) in said.out and told
    assert scores["test"]["accuracy"] > 0.7
    kept = (loaded.folder / "evaluation" / "test.predictions.jsonl").read_text("utf-8").splitlines()
    answers = loaded.predict([f"p{node}" for node in range(2, NODES, 4)])
    assert [json.loads(line)["answer"] for line in kept] == [one.answer for one in answers]
    assert [json.loads(line)["target"] for line in kept] == ["left"] * 7 + ["right"] * 8
    assert re.match(r"test: accuracy .* 15 items$", loaded.trained.summary("test", scores["test"])[0])


def test_nodes_of_a_table_are_evaluated(loaded, tmp_path):
    table = tmp_path / "some.tsv"
    table.write_text("node\tlabel\np3\tleft\np59\tright\n", encoding="utf-8")
    scores = loaded.evaluate(data=[table])["some.tsv"]
    right = [one.answer == label for one, label in zip(loaded.predict(["p3", "p59"]), ["left", "right"], strict=True)]
    assert scores["items"] == 2 and scores["accuracy"] == sum(right) / 2


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("q3\tleft", "line 3: node 'q3' is not in the graph: remove the line"),
        ("p3\tright", "line 3: node p3 is in line 2 already: remove one"),
        ("p7\tup", "line 3: no training node has the label 'up' (their labels: left, right)"),
    ],
)
def test_a_table_of_other_nodes_or_labels_is_one_line(loaded, tmp_path, row, told):
    (tmp_path / "some.tsv").write_text(f"node\tlabel\np3\tleft\n{row}\n", encoding="utf-8")
    with pytest.raises(DataError, match=re.escape(told)):
        loaded.evaluate(data=[tmp_path / "some.tsv"])


def test_a_table_without_rows_is_one_line(loaded, tmp_path):
    table = tmp_path / "some.tsv"
    table.write_text("node\tlabel\n", encoding="utf-8")
    for use in (loaded.evaluate, loaded.measure):
        with pytest.raises(DataError, match=r"some.tsv holds no nodes: give a table with a row for each label"):
            use(data=[table])


# tools


def test_a_node_is_inspected_among_those_that_decide(loaded, tmp_path, regardant):
    found = loaded.inspect("p1")
    labels = found.inputs["input"].labels
    codec = loaded.trained.codec
    assert labels[0] == "p1" and set(codec.labels(np.array(codec.neighbours[1]))) <= set(labels)
    assert len(labels) < NODES and f"Nodes: p1 and the {len(labels) - 1} nearest." in found.note
    (predicted,) = loaded.predict(["p1"])
    assert found.answer == predicted.answer and dict(found.shares) == predicted.details["probabilities"]
    (picture,) = found.pictures
    assert picture.source == picture.target == labels
    assert picture.weights.shape == (2, 2, len(labels), len(labels))
    neighbours = {0, *(labels.index(f"p{one}") for one in codec.neighbours[1])}
    assert set(np.flatnonzero(picture.weights[0, 0, 0])) == neighbours
    logits = found.records.whole("head.logits")[0, 0].softmax(-1)
    assert dict(zip(["left", "right"], logits.tolist(), strict=True)) == pytest.approx(dict(found.shares), abs=1e-5)
    for name in ("a.html", "a.svg", "a.png", "a.json"):
        said = regardant("inspect", loaded.folder, "p1", "--out", tmp_path / name)
        assert (said.code, said.out) == (0, f"{found.answer}\n") and (tmp_path / name).stat().st_size
    with pytest.raises(DataError, match="'q' is none of the graph's 60 nodes"):
        loaded.inspect("q")


def test_a_large_neighbourhood_is_cut_and_says_so(loaded, monkeypatch):
    monkeypatch.setattr("regardant.tasks.node_classification.job.MOST_SHOWN", 3)
    monkeypatch.setattr("regardant.tasks.node_classification.task.MOST_SHOWN", 3)
    found = loaded.inspect("p1")
    assert len(found.inputs["input"].labels) == 3
    assert "Nodes: p1 and the 2 nearest (more are left out)." in found.note


def test_a_neighbourhood_of_as_many_nodes_as_are_shown_is_whole(loaded, monkeypatch):
    nodes = len(loaded.inspect("p1").inputs["input"].labels)
    monkeypatch.setattr("regardant.tasks.node_classification.task.MOST_SHOWN", nodes)
    assert loaded.inspect("p1").note.endswith(f"Nodes: p1 and the {nodes - 1} nearest.")


def test_the_attention_is_measured_and_the_layers_read(loaded):
    found = loaded.measure()
    assert found.title() == "validation: 15 items" and list(found.heads) == ["encoder.self_attention"]
    assert [layer.layers for layer in found.lens] == [0, 1, 2]
    assert found.lens[-1].divergence == pytest.approx(0, abs=1e-5)
    assert (loaded.folder / "measures" / "validation.txt").is_file()


def test_a_run_over_a_graph_is_diagnosed(load, tmp_path):
    assert run.train(load("training.max_updates=300"), tmp_path / "run", silent).finished
    seen = run.load(tmp_path / "run").doctor()
    assert [(name, one.what) for name, one in seen.findings] == []
    assert "padding mask" in seen.seen and "more than frequencies" in seen.seen
    assert "ignores the order of elements by design" in seen.left_out["order of elements"]


def test_pages_answer_a_node_or_refuse_it_in_one_line(loaded):
    studio = TestClient(make_app([loaded.folder]), base_url="http://localhost:8421", raise_server_exceptions=False)
    name = loaded.folder.as_posix()
    answer = loaded.predict(["p1"])[0].answer
    examples = studio.get("/api/examples", params={"run": name}).json()
    assert [one["item"] for one in examples[:2]] == ["p1", "p5"]
    for path in ("look", "steps", "streams", "shapes"):
        found = studio.post(f"/api/{path}", json={"run": name, "text": "p1"})
        assert found.status_code == 200, (path, found.text)
        if path in ("look", "steps"):
            assert found.json()["answer"] == answer
    found = studio.post("/api/look", json={"run": name, "text": "q1"})
    assert found.status_code == 422 and "'q1' is none of the graph's 60 nodes" in found.text


def test_examples_are_nodes_to_validate_on(loaded, tmp_path):
    assert [one.item for one in loaded.trained.examples(3, tmp_path)] == ["p1", "p5", "p9"]


def test_runs_are_compared_node_by_node(load, loaded, tmp_path, regardant):
    overrides = ("model={kind: encoder_only, d_model: 16, num_heads: 2, d_ff: 16, num_layers: 1, max_length: 64, "
                 "positions: {kind: none}, self_attention: {kind: graph_convolution}}",)  # fmt: skip
    assert run.train(load(*overrides, "training.max_updates=20"), tmp_path / "gcn", silent).finished
    for folder in (loaded.folder, tmp_path / "gcn"):
        assert regardant("evaluate", folder).code == 0
    said = regardant("compare", loaded.folder, tmp_path / "gcn")
    assert said.code == 0 and "accuracy minus" in said.out and "self_attention.kind" in said.out
    without = run.load(tmp_path / "gcn")
    assert without.inspect("p1").answer == without.predict(["p1"])[0].answer and not without.inspect("p1").pictures
    said = regardant("measure", tmp_path / "gcn")
    assert (said.code, said.err.count("\n")) == (2, 1) and "no attention to measure" in said.err


def test_a_cost_is_planned(load, tmp_path, regardant, tables):
    document = tmp_path / "graph.yaml"
    document.write_text(json.dumps({**TINY, "data": {**TINY["data"], "root": str(tables)}}), encoding="utf-8")
    said = regardant("plan", document)
    assert said.code == 0, said.err


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        (["model.max_length=59"], "the graph has 60 nodes, of which at most 59 are read: raise model.max_length"),
        (["training.batch_tokens=50"], "the graph has 60 nodes, of which at most 50 are read"),
        (["input.eigenvectors=60"], "input.eigenvectors: given 60; a graph of 60 nodes has at most 59"),
        (["model={kind: recurrent}"], "a recurrent network reads elements in order, and a node has none"),
        (["model.positions={kind: sinusoidal}"], "nodes have no order"),
        (["head={kind: sequence_class}"], "head.kind"),
        (["data.nodes=none.tsv"], "there is no file"),
        (["data.label=class"], "has no column class; it has node, label, split, words"),
    ],
)
def test_a_recipe_of_a_graph_that_cannot_be_right_is_one_line(load, tmp_path, overrides, told):
    with pytest.raises((ConfigError, DataError), match=re.escape(told)) as refusal:
        run.train(load(*overrides), tmp_path / "run", silent)
    assert "\n" not in str(refusal.value)


def test_a_graph_of_a_single_label_is_refused(load, tables, tmp_path):
    nodes = (tables / "nodes.tsv").read_text("utf-8").replace("\tright\t", "\tleft\t")
    (tmp_path / "nodes.tsv").write_text(nodes, encoding="utf-8")
    told = r"^all training items have the label 'left': give items of two labels or more$"
    with pytest.raises(DataError, match=told):
        run.train(load(f"data.nodes={tmp_path / 'nodes.tsv'}"), tmp_path / "run", silent)


def test_a_run_starts_from_another_of_the_same_graph(load, whole, tmp_path):
    assert run.train(load(f"training.from={whole}", "training.max_updates=5"), tmp_path / "run", silent).finished
    edges = tmp_path / "edges.tsv"
    edges.write_text("source\ttarget\np0\tp1\n", encoding="utf-8")
    with pytest.raises(DataError, match="the graph differs from that of the run that training starts from"):
        run.train(load(f"training.from={whole}", f"data.edges={edges}"), tmp_path / "other", silent)


def test_the_recipe_is_of_the_task():
    assert load_recipe(configuration.recipe("cora-graph")).task == "node_classification"
