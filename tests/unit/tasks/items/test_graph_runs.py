"""Small graphs from files to answers, and every tool on a run of them."""

import copy
import json
import shutil
from random import Random

import numpy as np
import pytest
import torch
from fastapi.testclient import TestClient

from regardant import run
from regardant.errors import DataError
from regardant.studio.app import make_app
from regardant.tasks import load_recipe
from regardant.training.checkpoints import latest_checkpoint, load_checkpoint
from tests.runs import BRIEF, STEADY, runs_of

RECIPE = {
    "task": "classification",
    "data": {"kind": "graphs", "source": "train.jsonl", "test": "test.jsonl"},
    "input": {"kind": "graphs", "max_nodes": 8},
    "model": {
        "d_model": 16,
        "num_heads": 2,
        "num_layers": 1,
        "d_ff": 32,
        "max_length": 8,
        "dropout": 0.0,
        "positions": {"kind": "none"},
    },
    "head": {"kind": "sequence_class", "dropout": 0.0},
    "training": {
        "max_updates": 100,
        "batch_tokens": 256,
        "validate_every": 50,
        **STEADY,
        "schedule": {"kind": "linear", "learning_rate": 2e-2, "warmup_steps": 10},
        "averaging": {"kind": "none"},
    },
}


def star(random, label):
    """A centre with leaves, in any order; one of the edges is strong, or none."""
    leaves = random.randint(3, 6)
    order = random.sample(range(leaves + 1), leaves + 1)
    strong = random.randrange(leaves) if label == "strong" else None
    nodes = [[1.0, 0.0] if number == order[0] else [0.0, 1.0] for number in range(leaves + 1)]
    edges = [[order[0], order[leaf + 1]] for leaf in range(leaves)]
    return {"nodes": nodes, "edges": edges, "edge_features": [[float(leaf == strong)] for leaf in range(leaves)]}


@pytest.fixture(scope="module")
def files(made_once):
    """train.jsonl and test.jsonl: stars, whose label only the features of their edges tell."""

    def fill(folder):
        random = Random(1)
        for name, size in (("train", 400), ("test", 40)):
            labels = ["strong", "weak"] * (size // 2)
            lines = [json.dumps({**star(random, label), "label": label}) + "\n" for label in labels]
            (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")

    return made_once("graphs", fill)


@pytest.fixture(scope="module")
def load(files):
    """The recipe with fields set as by --set."""
    return lambda *overrides: load_recipe(copy.deepcopy(RECIPE), [f"data.root={files}", *overrides])


@pytest.fixture(scope="module")
def trained(made_once, load):
    return runs_of("tiny-graphs", load, made_once)


@pytest.fixture
def loaded(trained, tmp_path):
    """A copy to write to."""
    return run.load(shutil.copytree(trained().folder, tmp_path / "run"))


GRAPH = json.dumps(star(Random(2), "strong"))


# answers


def test_graphs_are_told_apart_by_the_features_of_their_edges(loaded, files):
    scores = loaded.evaluate()
    assert scores["test"]["items"] == 40 and scores["test"]["accuracy"] > 0.9
    assert loaded.evaluate(data=[files / "test.jsonl"])["test.jsonl"] == scores["test"]
    assert loaded.predict([GRAPH])[0].answer == "strong"


def test_without_these_features_they_are_not(load, files, tmp_path):
    for name in ("train", "test"):
        lines = [json.loads(line) for line in (files / f"{name}.jsonl").read_text("utf-8").splitlines()]
        lines = [json.dumps({key: one[key] for key in ("nodes", "edges", "label")}) + "\n" for one in lines]
        (tmp_path / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    config = load(f"data.root={tmp_path}")
    assert run.train(config, tmp_path / "run", lambda line: None).finished
    assert run.load(tmp_path / "run").evaluate()["test"]["accuracy"] < 0.7


def test_the_command_line_answers_graphs_from_arguments_and_files(loaded, files, regardant):
    said = regardant("predict", loaded.folder, GRAPH)
    assert (said.code, said.lines) == (0, ["strong"])
    said = regardant("predict", loaded.folder, "--input", files / "test.jsonl", "--json")
    answers = [one["answer"] for one in json.loads(said.out)["predictions"]]
    assert len(answers) == 40 and np.mean([one == label for one, label in zip(answers, LABELS, strict=True)]) > 0.9


LABELS = ["strong", "weak"] * 20


@pytest.mark.parametrize(
    ("item", "told"),
    [
        ("a graph", "'a graph' is not a graph: give a JSON object with nodes and edges"),
        (
            '{"nodes": [[1, 0]], "edges": [[0, 1]]}',
            "edge [0, 1] is to node 1, and the 1 nodes are numbered from 0 to 0",
        ),
        ('{"nodes": [[1, 0, 0]]}', "graph 1 has nodes of 3 features, the first training graph of 2"),
        (json.dumps({"nodes": [[1, 0]] * 9}), "a graph has 9 nodes, and at most 8 are read: raise input.max_nodes"),
    ],
)
def test_a_graph_that_cannot_be_read_is_one_line(loaded, regardant, item, told):
    for verb in ("predict", "inspect"):
        said = regardant(verb, loaded.folder, item)
        assert (said.code, said.out, said.err.count("\n")) == (2, "", 1) and told in said.err


def test_a_wrong_file_ends_training_in_one_line_and_loops_are_counted(regardant, files, tmp_path):
    lines = (files / "train.jsonl").read_text("utf-8").splitlines()
    loop = {**json.loads(lines[0]), "edges": [[0, 0]], "edge_features": [[1]]}
    for name, line in (("right", loop), ("wrong", {**json.loads(lines[0]), "edges": [[0, 99]]})):
        (tmp_path / f"{name}.jsonl").write_text("\n".join([*lines[:40], json.dumps(line)]) + "\n", encoding="utf-8")
        recipe = {**RECIPE, "data": {"kind": "graphs", "source": str(tmp_path / f"{name}.jsonl")}}
        (tmp_path / f"{name}.yaml").write_text(json.dumps(recipe), encoding="utf-8")
    said = regardant("plan", tmp_path / "right.yaml")
    assert said.code == 0 and "edges that are left out: 1 from a node to itself, 0 given before" in said.out + said.err
    said = regardant("train", tmp_path / "wrong.yaml", "--out", tmp_path / "run")
    assert (said.code, said.err.count("\n")) == (2, 1) and "wrong.jsonl line 41: edge [0, 99] is to node 99" in said.err


def test_a_label_that_no_training_graph_has_is_one_line(loaded, files, tmp_path):
    line = {**star(Random(3), "weak"), "label": "odd"}
    (tmp_path / "odd.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"label 'odd' is in no training item \(there are: strong, weak\)"):
        loaded.evaluate(data=[tmp_path / "odd.jsonl"])


# tools


def test_a_graph_is_inspected_node_by_node(loaded, tmp_path, regardant):
    found = loaded.inspect(GRAPH)
    nodes = len(json.loads(GRAPH)["nodes"])
    (picture,) = found.pictures
    assert picture.weights.shape == (1, 2, nodes, nodes)
    assert picture.title == f"A graph of {nodes} nodes and {len(json.loads(GRAPH)['edges'])} edges"
    edges = {(one, one) for one in range(nodes)} | {tuple(edge) for edge in json.loads(GRAPH)["edges"]}
    edges |= {(other, one) for one, other in edges}
    assert {tuple(place) for place in np.argwhere(picture.weights[0, 0]).tolist()} == edges
    for name in ("a.html", "a.svg", "a.png", "a.json"):
        said = regardant("inspect", loaded.folder, GRAPH, "--out", tmp_path / name)
        assert (said.code, said.out) == (0, "strong\n") and (tmp_path / name).stat().st_size


def test_a_run_of_graphs_is_measured_and_diagnosed(loaded):
    found = loaded.measure()
    assert list(found.heads) == ["encoder.self_attention"] and found.lens[-1].divergence == pytest.approx(0, abs=1e-5)
    seen = loaded.doctor()
    assert [(name, one.what) for name, one in seen.findings] == []
    assert "padding mask" in seen.seen and "the order of elements by design" in seen.left_out["order of elements"]


def test_pages_answer_a_graph_or_refuse_it_in_one_line(loaded):
    studio = TestClient(make_app([loaded.folder]), base_url="http://localhost:8421", raise_server_exceptions=False)
    name = loaded.folder.as_posix()
    (example, *_) = studio.get("/api/examples", params={"run": name}).json()
    for path in ("look", "steps", "streams", "shapes"):
        found = studio.post(f"/api/{path}", json={"run": name, "text": example["item"]})
        assert found.status_code == 200, (path, found.text)
    found = studio.post("/api/look", json={"run": name, "text": "{}"})
    assert found.status_code == 422 and "'{}' is not a graph" in found.text


def test_runs_of_graphs_are_compared_and_planned(loaded, load, tmp_path, regardant, files):
    brief = (*BRIEF, "model.self_attention.kind=additive")
    assert run.train(load(*brief), tmp_path / "other", lambda line: None).finished
    for folder in (loaded.folder, tmp_path / "other"):
        assert regardant("evaluate", folder).code == 0
    said = regardant("compare", loaded.folder, tmp_path / "other")
    assert said.code == 0 and "self_attention.kind" in said.out
    document = tmp_path / "graphs.yaml"
    document.write_text(json.dumps({**RECIPE, "data": {**RECIPE["data"], "root": str(files)}}), encoding="utf-8")
    said = regardant("plan", document)
    assert said.code == 0, said.err


def test_a_run_of_graphs_goes_on_as_if_it_had_not_been_interrupted(load, tmp_path):
    steady = ("training.schedule={kind: constant, learning_rate: 0.01, warmup_steps: 2}", "input.eigenvectors=2")
    for folder, updates in (("parts", 7), ("parts", 12), ("whole", 12)):
        assert run.train(
            load(*steady, f"training.max_updates={updates}"), tmp_path / folder, lambda line: None
        ).finished
    states = [load_checkpoint(latest_checkpoint(tmp_path / folder)) for folder in ("whole", "parts")]
    torch.testing.assert_close(states[0]["model"], states[1]["model"], rtol=0, atol=0)
