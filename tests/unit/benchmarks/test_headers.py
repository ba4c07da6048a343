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
    path = next(
        (file for file in (RESULTS / "families" / f"{name}.json", RESULTS / f"{name}.json") if file.is_file()), None
    )
    told = headers.lines_of(json.loads(path.read_text(encoding="utf-8"))) if path else []
    assert [f"# {line}" for line in said] == told
    assert f"regardant {'demo' if name == 'demo' else f'train {name}'}" in config.header(name)


def test_a_header_scores_what_the_task_is_judged_by():
    scores = {"loss": 3.5, "perplexity": 33.0, "accuracy": 0.31234, "tokens": 5000}
    said = headers.score_of({"recipe": "x", "seed": 2, "scores": scores})
    assert said == "loss 3.500 nats per masked token, 31.2 % of them named"


@pytest.mark.parametrize(
    ("aligned", "told"), [({}, ""), ({"alignment_error_rate": 0.0704}, "; alignment error rate 0.070")]
)
def test_a_model_without_attention_has_no_alignment_error_rate(aligned, told):
    scores = {"bleu": 79.326, "heldout": {"bleu": 65.861}, **aligned}
    said = headers.score_of({"recipe": "x", "seed": 1, "scores": scores})
    assert said == f"BLEU 79.33 on unseen sentences, 65.86 on held-out combinations{told}"


def test_a_new_measurement_takes_the_place_of_the_earlier_one(tmp_path, monkeypatch):
    recipe = tmp_path / "copy.yaml"
    old = "# commit    old\n# Not measured yet.\n# Measured before today.\n"
    recipe.write_text(f"# Copies.\n# command   regardant train copy\n# More.\n{old}seed: 1\n")
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


def test_a_recipe_of_another_model_says_where_its_scores_are(tmp_path, monkeypatch):
    recipe = tmp_path / "cnn.yaml"
    recipe.write_text("# A network.\n# Not measured yet.\nseed: 1\n")
    monkeypatch.setattr(headers, "RECIPES", tmp_path)
    for _ in range(2):
        headers.refer("cnn", "digits-vit")
        assert recipe.read_text() == "# A network.\n# docs/results.md has its scores, under digits-vit.\nseed: 1\n"


README = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (.+) \| (.+) \| (.+) \| `(\w+)` \|$", README, re.MULTILINE)
NAMES = (
    "demo",
    "translation",
    "translation-seed-2",
    "multi30k-en-de",
    "multi30k-en-de-seed-2",
    "multi30k-en-de-raw",
    "multi30k-en-fr",
    "reverse",
)
"""Results of the README's rows, in their order."""

NUMBER = re.compile(r"(?<![\w-])\d[\d,]*(?:\.\d+)?(?!\w)")
"""A number, and not a part of a name, as in test2016 or 13a."""


def numbers(name, kept):
    """The numbers that the README states of a result: time, then scores."""
    seconds, scores = kept["training_seconds"], kept["scores"]
    yield f"{seconds:.0f}" if seconds < 300 else f"{seconds / 60:.0f}"
    if name == "reverse":
        yield from (f"{100 * headers.exact_match(scores):.1f}", f"{scores['sentences']:,}")
        return
    yield f"{scores['bleu']:.1f}"
    if name == "demo":
        yield from (f"{scores['heldout']['bleu']:.1f}", f"{scores['alignment_error_rate']:.3f}")


@pytest.mark.parametrize(("name", "row"), list(zip(NAMES, ROWS, strict=True)), ids=NAMES)
def test_every_number_of_the_readme_is_that_of_its_result_and_has_its_commit(name, row):
    kept = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    recipe, training, result, commit = row
    assert NUMBER.findall(f"{training} {result}") == list(numbers(name, kept))
    assert commit == kept["commit"]
    assert recipe.startswith(f"`{kept['recipe']}`")
    assert (f"from seed {kept['seed']}" in recipe) == (kept["seed"] != 1)
    assert kept["machine"]["cores"] == 2
    assert "13a" not in result or "|tok:13a|" in kept["scores"]["signature"]
