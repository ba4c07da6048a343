import json
import math
import shutil

import pytest
import torch

from regardant import run
from regardant.errors import RunError
from regardant.tasks.gradients import Gradients


def test_distances_are_grouped_in_ranges_that_double_and_those_of_no_vector_left_out():
    found = Gradients(2, {"source": 3.0, "encoder.layers.0": 1.5}, {"source": [None, 4.0, 1.0, 3.0, 1.0, 1.0]})
    depth, distance = found.tables()
    assert depth.rows == [["source", "3", "2"], ["encoder.layers.0", "1.5", "1"]]
    assert distance.rows == [["1", "4", "1"], ["2-3", "2", "0.5"], ["4-5", "1", "0.25"]]


def test_a_run_keeps_tables_and_all_digits(trained_on_text, tmp_path):
    shutil.copytree(trained_on_text().folder, tmp_path / "run")
    found = run.load(tmp_path / "run").gradients()
    kept = tmp_path / "run" / "measures"
    assert json.loads((kept / "gradients.json").read_text(encoding="utf-8")) == found.as_dict()
    assert (kept / "gradients.txt").read_text(encoding="utf-8").splitlines() == found.lines()
    assert list(found.depth) == ["text", "decoder.layers.0"]
    assert len(found.distance["text"]) == 16 and all(norm > 0 for norm in found.distance["text"])


def test_the_target_of_a_whole_item_stands_where_its_last_element_does(trained_on_labels, tmp_path):
    shutil.copytree(trained_on_labels("model.kind=recurrent").folder, tmp_path / "run")
    own = run.load(tmp_path / "run")
    found, probe = own.gradients().distance["input"], own.trained.probe()
    lengths = [len(labels) for labels in probe.labels["input"]]
    assert len(found) == max(lengths)
    model, norms = own.trained.model, []
    for row, length in enumerate(lengths):
        one = {"input": probe.inputs["input"][row : row + 1, :length]}
        read = []
        hook = model.input.written.register_forward_hook(lambda module, inputs, output: read.append(output))  # noqa: B023
        loss = model(**one, targets=probe.targets[row : row + 1])
        hook.remove()
        norms.append(float(torch.autograd.grad(loss.total, read[0])[0][0, -1].norm()))
    assert found[0] == pytest.approx(sum(norms) / len(norms), rel=1e-3)


def test_patches_of_an_image_have_depth_and_no_distance(trained_on_digits, tmp_path):
    shutil.copytree(trained_on_digits().folder, tmp_path / "run")
    found = run.load(tmp_path / "run").gradients()
    assert found.distance == {} and len(found.depth) > 2 and all(map(math.isfinite, found.depth.values()))
    assert any(line.startswith("no distances: ") for line in found.lines())


def test_without_validation_data_nothing_is_measured(trained_on_text, tmp_path):
    shutil.copytree(trained_on_text().folder, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "data")
    with pytest.raises(RunError, match="holds no validation text"):
        run.load(tmp_path / "run").gradients()
