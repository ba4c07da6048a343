"""A recipe's header says of its measurement what the result says, or nothing."""

import json
import re
from pathlib import Path

import pytest

from benchmarks import headers
from benchmarks.records import RESULTS
from regardant import config


@pytest.mark.parametrize("name", sorted(config.recipes()))
def test_a_header_says_what_the_result_says(name):
    said = [line for line in config.header(name).splitlines() if line.split(" ")[0] in headers.MEASURED]
    path = RESULTS / f"{name}.json"
    told = headers.lines_of(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else []
    assert [f"# {line}" for line in said] == told
    assert f"regardant {'demo' if name == 'demo' else f'train {name}'}" in config.header(name)


def test_a_new_measurement_takes_the_place_of_the_earlier_one(tmp_path, monkeypatch):
    recipe = tmp_path / "copy.yaml"
    recipe.write_text("# Copies.\n# command   regardant train copy\n# More.\n# commit    old\nseed: 1\n")
    monkeypatch.setattr(headers, "RECIPES", tmp_path)
    scores, cpu = {"accuracy": 0.991, "sentences": 1000}, {"cpu": "X", "cores": 2, "instructions": "AVX2"}
    result = {"recipe": "copy", "scores": scores, "training_seconds": 299, "wall_seconds": 360, "seed": 1}
    headers.write(result | {"machine": cpu, "commit": "new"})
    assert recipe.read_text().splitlines() == [
        "# Copies.",
        "# command   regardant train copy",
        "# hardware  2 cores of X (AVX2)",
        "# time      299 s of training, 6.0 min in all",
        "# score     99.1 % of 1,000 unseen sequences exactly right",
        "# commit    new",
        "# More.",
        "seed: 1",
    ]


README = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")
TOLD = re.findall(r"^\| `([\w-]+)`.*\| (.+) \| (.+) \|$", README, re.MULTILINE)


@pytest.mark.parametrize(("name", "training", "result"), TOLD, ids=[name for name, *_ in TOLD])
def test_the_readme_says_what_the_result_says(name, training, result):
    kept = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    seconds, scores = kept["training_seconds"], kept["scores"]
    assert training.startswith((f"{seconds:.0f} s", f"{seconds / 60:.0f} minutes"))
    assert (f"{100 * scores['accuracy']:.1f} %" if name == "reverse" else f"{scores['bleu']:.1f}") in result


def test_the_readme_tells_of_what_matters_most():
    assert {"demo", "translation", "multi30k-en-de", "multi30k-en-de-raw", "multi30k-en-fr", "reverse"} == {
        name for name, *_ in TOLD
    }
