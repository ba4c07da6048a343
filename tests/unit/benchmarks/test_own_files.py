import gzip
import json
import wave

import numpy as np
import pytest
from PIL import Image

from benchmarks import own_files
from benchmarks.bars import verdict


@pytest.fixture
def data(tmp_path):
    """A few rows of each data set."""
    root = tmp_path / "data"
    for name in ("sst2", "ud_english_ewt", "etth1", "cora", "free_spoken_digits"):
        (root / name).mkdir(parents=True)
    for name in ("train", "dev"):
        (root / "sst2" / f"{name}.tsv").write_text("a good , film\t1\nbad\t0\n", encoding="utf-8")
    (root / "cora" / "nodes.tsv.gz").write_bytes(gzip.compress(b"node\tlabel\tsplit\twords\n0\t3\ttrain\t1 2\n"))
    (root / "cora" / "edges.tsv").write_text("source\ttarget\n0\t1\n", encoding="utf-8")
    (root / "etth1" / "ETTh1.csv.gz").write_bytes(gzip.compress(b"date,OT\n"))
    with own_files.zipfile.ZipFile(root / "free_spoken_digits" / "train.zip", "w") as archive:
        for name in ("7_theo_9.wav", "7_theo_10.wav"):
            with archive.open(name, "w") as file, wave.open(file, "wb") as sound:
                sound.setparams((1, 2, 8000, 0, "NONE", ""))
    return root


def test_tables_have_names_of_columns_and_are_given_to_train_and_evaluate(data, tmp_path):
    settings, options = own_files.texts(data, tmp_path)
    assert settings == [f"data.source={tmp_path / 'train.csv'}"]
    assert options == ["--data", str(tmp_path / "dev.csv")]
    assert (tmp_path / "train.csv").read_text().splitlines() == ["review,sentiment", '"a good , film",1', "bad,0"]


def test_a_graph_is_two_tables(data, tmp_path):
    settings, options = own_files.graph(data, tmp_path)
    assert (tmp_path / "nodes.csv").read_text().splitlines() == ["node,label,split,words", "0,3,train,1 2"]
    assert [setting.partition("=")[0] for setting in settings] == ["data.nodes", "data.edges"] and not options


def test_recordings_lie_in_folders_and_low_indices_are_tested_on(data, tmp_path):
    own_files.recordings(data, tmp_path)
    assert sorted(str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.wav") if "data" not in file.parts) == [
        "test/7/7_theo_9.wav",
        "train/7/7_theo_10.wav",
    ]


def test_images_are_those_of_the_recipe(tmp_path):
    own_files.images(tmp_path, tmp_path)
    assert len(list(tmp_path.glob("train/*/*.png"))) == 1437 and len(list(tmp_path.glob("test/*/*.png"))) == 360
    with Image.open(next(tmp_path.glob("test/3/*.png"))) as image:
        pixels = np.array(image)
    assert pixels.shape == (8, 8) and pixels.max() == 255


@pytest.mark.parametrize(
    ("name", "score", "updates", "seconds", "verdicts"),
    [
        ("classification", 0.7761, 1290, 129, ["pass", "pass", "pass"]),
        ("classification", 0.7759, 1000, 131, ["MISSED", "pass", "MISSED"]),
        ("classification", 0.7761, 1310, 100, ["pass", "MISSED", "pass"]),
        ("forecasting", 0.4, 690, 69, ["pass", "MISSED", "MISSED"]),
        ("forecasting", 0.82474, 710, 71, ["pass", "pass", "pass"]),
        ("forecasting", 0.8248, 710, 71, ["MISSED", "pass", "pass"]),
    ],
)
def test_scores_are_held_to_the_recipe_s_and_updates_and_time_to_those_announced(
    name, score, updates, seconds, verdicts
):
    task = own_files.TASKS[name]
    found = {"scores": {task.score: score}, "updates": updates, "announced_updates": 1000}
    found |= {"wall_seconds": seconds, "announced_seconds": 100, "training_seconds": 100}
    assert [verdict(one) for one in own_files.bars_of(task, 0.8, found)] == verdicts


def test_the_first_model_of_the_recipe_s_family_is_what_a_task_is_held_to(data, tmp_path, monkeypatch):
    kept = {"models": {"first": {"mean": {"accuracy": 0.8}}, "second": {"mean": {"accuracy": 0.9}}}}
    (tmp_path / "families").mkdir()
    (tmp_path / "families" / "sst2.json").write_text(json.dumps(kept))
    monkeypatch.setattr(own_files, "RESULTS", tmp_path)
    monkeypatch.setattr(own_files, "FILES", tmp_path / "files")
    commands = []

    def trained(command, run, options):
        commands.append((command, options))
        time = {"wall_seconds": 1, "announced_seconds": 1}
        return {"scores": {"accuracy": 0.8}, "updates": 9, "announced_updates": 9, **time}

    monkeypatch.setattr(own_files, "trained", trained)
    found = own_files.measure("classification", data)
    assert found["tuned"] == 0.8 and [verdict(one) for one in found["bars"]] == ["pass"] * 3
    folder = tmp_path / "files" / "classification"
    source = f"data.source={folder / 'train.csv'}"
    assert commands == [(["classification", "--set", source], ["--data", str(folder / "dev.csv")])]


def test_a_recipe_without_a_result_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("REGARDANT_DATA", str(tmp_path))
    monkeypatch.setattr(own_files, "RESULTS", tmp_path)
    with pytest.raises(SystemExit, match=r'run make bench-families BENCH="digits-vit sst2" first$'):
        own_files.main(["--scratch", "classification", "image_classification"])
