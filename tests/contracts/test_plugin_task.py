"""A task of a user's own, with its own head, kind of item and data, goes all the way without a line in the package."""

import pytest

from regardant import run
from regardant.errors import DataError
from regardant.tasks import load_recipe

from . import plugin_task  # noqa: F401  which registers the task

TRAINING = {
    "max_updates": 400,
    "batch_tokens": 256,
    "schedule": {"kind": "linear", "learning_rate": 0.01, "warmup_steps": 20},
    "averaging": {"kind": "none"},
    "validate_every": 100,
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sums") / "run"
    config = load_recipe({"task": "sums", "training": TRAINING | {"precision": "float32", "processes": 1}})
    lines = []
    assert run.train(config, folder, log=lines.append).finished
    assert any("sums" in line for line in lines if line.startswith("training"))  # its unit, not tokens
    return run.load(folder)


def test_it_learns_and_is_evaluated_by_its_own_metric(trained):
    scores = trained.evaluate()
    assert scores["test"]["mean_absolute_error"] < 0.5
    assert "off by" in trained.trained.summary("test", scores["test"])[0]


def test_it_predicts_and_refuses_an_item_in_one_line(trained):
    (found,) = trained.predict(["3 1 4"])
    assert found.as_dict()["sum"] == pytest.approx(8, abs=1)
    with pytest.raises(DataError, match="'a b' is no list of numbers: write it as 3 1 4"):
        trained.predict(["a b"])


def test_the_best_weights_are_those_of_the_lowest_error(trained):
    best = [
        float(line.split('"best_mean_absolute_error": ')[1].split(",")[0].rstrip("}\n"))
        for line in (trained.folder / "metrics.jsonl").read_text().splitlines()
        if '"validation"' in line
    ]
    assert best == sorted(best, reverse=True)


def test_it_is_diagnosed(trained):
    seen = trained.doctor()
    assert "gradient norms" in seen.seen and "future mask" in seen.left_out


def test_its_attention_is_measured(trained):
    assert trained.measure().heads["encoder.self_attention"].entropy.shape == (1, 2)
