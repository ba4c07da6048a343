"""Runs of any task side by side: scores on shared sets, what chance may be in them, costs, curves and settings."""

import json
import shutil
from types import SimpleNamespace

import pytest

from regardant import run
from regardant.errors import ConfigError, RunError
from regardant.tasks.comparison import _wrapped, compare_runs
from regardant.training.metrics import Metric


@pytest.fixture
def pair(trained_on_labels, tmp_path):
    """A classifier and one that was trained for a moment, evaluated."""
    folders = []
    for name, overrides in (("whole", ()), ("brief", ("training.max_updates=5",))):
        folder = shutil.copytree(trained_on_labels(*overrides).folder, tmp_path / name)
        run.load(folder).evaluate()
        folders.append(folder)
    return folders


def test_the_answers_to_all_items_are_kept_in_their_order(pair, labelled_files):
    lines = (pair[0] / "evaluation" / "test.predictions.jsonl").read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in (labelled_files / "test.tsv").read_text("utf-8").splitlines()]
    kept = [json.loads(line) for line in lines]
    assert [one["target"] for one in kept] == [label for _, label in rows]
    predicted = run.load(pair[0]).predict([item for item, _ in rows])
    assert [one["answer"] for one in kept] == [one.answer for one in predicted]
    shares = [one.details["probability"] for one in predicted]
    assert [one["probability"] for one in kept] == pytest.approx(shares, abs=1e-5)


def test_other_data_may_not_take_the_name_of_another_set(pair, labelled_files, tmp_path):
    opened = run.load(pair[0])
    before = (pair[0] / "evaluation" / "test.json").read_text("utf-8")
    for name in ("test", "validation", "test.tsv"):
        shutil.copy(labelled_files / "train.tsv", tmp_path / name)
    for name in ("test", "validation"):
        with pytest.raises(ConfigError, match=rf"^--data {name} has the name of a test set of .*: rename the file$"):
            opened.evaluate(data=[tmp_path / name])
    with pytest.raises(ConfigError, match=r"^--data was given 2 files named test.tsv: rename all but one$"):
        opened.evaluate(data=[labelled_files / "test.tsv", tmp_path / "test.tsv"])
    assert (pair[0] / "evaluation" / "test.json").read_text("utf-8") == before
    shutil.rmtree(pair[0] / "data")
    (tmp_path / "test").rename(tmp_path / "test.tsv")
    assert list(run.load(pair[0]).evaluate(data=[tmp_path / "test.tsv"])) == ["test.tsv"]


def test_classifiers_are_compared_with_the_first(pair):
    found = run.compare(pair)
    first, other = found.runs
    assert list(found.sets) == ["test", "validation"] and not first.accuracy_from_first
    for name in found.sets:
        accuracies = [one.scores[name]["accuracy"] for one in found.runs]
        tested = other.accuracy_from_first[name]
        assert tested.difference == pytest.approx(accuracies[1] - accuracies[0])
        assert tested.interval[0] <= tested.difference <= tested.interval[1] and 0 < tested.p <= 1
    assert other.accuracy_from_first["test"].difference < -0.1 and other.accuracy_from_first["test"].p < 0.05
    assert "training.max_updates was 300, is 5" in other.settings and not first.settings


def test_the_table_names_the_direction_of_each_metric_and_the_settings(pair, regardant):
    said = regardant("compare", *pair)
    assert said.code == 0, said.err
    assert "higher wins" in said.out and "lower wins" in said.out
    head = said.lines.index("test")
    assert "accuracy" in said.lines[head + 1] and "macro_f1" in said.lines[head + 1]
    assert "settings of brief that differ from whole" in said.out
    assert "  training.max_updates was 300, is 5" in said.lines


def test_json_and_page_have_all(pair, regardant, tmp_path):
    said = regardant("compare", *pair, "--json", "--page", tmp_path / "a.html")
    told = json.loads(said.out, parse_constant=pytest.fail)
    assert {one["name"]: one["higher_is_better"] for one in told["metrics"]} == {
        "accuracy": True,
        "loss": False,
        "macro_f1": True,
    }
    first, other = told["runs"]
    assert first["tests"]["test"]["accuracy_from_first"] is None
    assert other["tests"]["test"]["accuracy_from_first"]["difference"] < -0.1
    assert first["validations"][-1].keys() == {"minutes", "accuracy", "loss", "macro_f1"}
    text = (tmp_path / "a.html").read_text("utf-8")
    assert text.count("<svg role") == 3 and "training.max_updates was 300, is 5" in text
    assert text.count('<svg class="fluid"') == text.count("difference in accuracy; the axis runs from ") == 2


def test_language_models_are_compared_by_their_own_metrics(trained_on_text, tmp_path):
    folders = []
    for name, overrides in (("whole", ()), ("brief", ("training.max_updates=5",))):
        folder = shutil.copytree(trained_on_text(*overrides).folder, tmp_path / name)
        run.load(folder).evaluate()
        folders.append(folder)
    found = run.compare(folders)
    first, other = (one.scores["validation"] for one in found.runs)
    assert list(first) == ["loss", "perplexity", "bits_per_character"] and first["loss"] < other["loss"]
    assert not found.runs[1].accuracy_from_first and "accuracy minus" not in "\n".join(found.lines())


def test_language_models_with_other_tokens_are_compared_on_the_same_text(trained_on_text, tmp_path):
    folders, text = [], tmp_path / "text"
    text.write_text("then the tree sees a bird and likes the old dog " * 5, encoding="utf-8")
    for kind in ("character", "code"):
        loaded = trained_on_text("training.max_updates=5", f"tokenizer.kind={kind}")
        folders.append(shutil.copytree(loaded.folder, tmp_path / kind))
        run.load(folders[-1]).evaluate(data=[text])
    kept = [folder / "evaluation" / "text.json" for folder in folders]
    scores = [json.loads(path.read_text("utf-8")) for path in kept]
    assert scores[0]["characters"] != scores[1]["characters"]
    assert [one.scores["text"]["loss"] for one in run.compare(folders).runs] == [one["loss"] for one in scores]
    (folders[1] / "evaluation" / "SHA256SUMS").unlink()
    more = scores[1] | {"text_characters": scores[1]["text_characters"] + 1}
    kept[1].write_text(json.dumps(more), "utf-8")
    with pytest.raises(RunError, match=r"text has \d+ text_characters in .*character and \d+ in .*code: compare"):
        run.compare(folders)
    del more["text_characters"]  # as of an earlier version
    kept[1].write_text(json.dumps(more), "utf-8")
    assert len(run.compare(folders).runs) == 2


def test_a_set_that_differs_between_seeds_is_left_out_and_named(trained_on_labels, regardant, tmp_path):
    """The seed draws the validation set; the test set is the same for all."""
    folders = []
    for seed in (1, 2):
        trained = trained_on_labels("training.max_updates=5", f"seed={seed}")
        folders.append(shutil.copytree(trained.folder, tmp_path / f"seed-{seed}"))
        run.load(folders[-1]).evaluate()
    found = run.compare(folders)
    assert list(found.sets) == list(found.runs[1].accuracy_from_first) == ["test"]
    (line,) = found.left_out
    assert line.startswith("validation ") and all(str(folder) in line for folder in folders)
    said = regardant("compare", *folders, "--page", tmp_path / "a.html")
    assert said.code == 0 and f"not compared: {line}" in said.lines, said.err
    assert line in (tmp_path / "a.html").read_text("utf-8") and line in found._repr_html_()
    assert json.loads(regardant("compare", *folders, "--json").out)["left_out"] == [line]


def test_an_evaluation_without_a_name_is_compared(pair):
    """Earlier versions named the scores of `--data .` by an empty text."""
    for folder in pair:
        shutil.copy(folder / "evaluation" / "test.json", folder / "evaluation" / ".json")
    assert list(run.compare(pair).sets) == ["", "test", "validation"]


def test_runs_that_make_no_comparison_are_one_line(pair, trained_on_text, tmp_path):
    with pytest.raises(ConfigError, match=r"is a run of classification, .* of language_modelling: give runs of one"):
        run.compare([pair[0], trained_on_text().folder])
    (pair[1] / "evaluation" / "SHA256SUMS").unlink()  # as of an evaluation of an earlier version
    kept = pair[1] / "evaluation" / "test.predictions.jsonl"
    lines = kept.read_text("utf-8").splitlines()
    kept.write_text("{", "utf-8")
    with pytest.raises(RunError, match=r"test.predictions.jsonl is damaged .*: evaluate .*brief anew"):
        run.compare(pair)
    kept.unlink()
    assert list(run.compare(pair).runs[1].accuracy_from_first) == ["validation"]
    (pair[1] / "evaluation" / "validation.json").unlink()  # no other set is common to both
    kept.write_text("\n".join(reversed(lines)), "utf-8")
    with pytest.raises(RunError, match=r"^test of .*brief has other targets than that of .*whole: compare runs that"):
        run.compare(pair)
    scores = json.loads((pair[1] / "evaluation" / "test.json").read_text("utf-8"))
    (pair[1] / "evaluation" / "test.json").write_text(json.dumps({**scores, "items": 3}), "utf-8")
    with pytest.raises(RunError, match=r"^test has 60 items in .*whole and 3 in .*brief: compare runs that"):
        run.compare(pair)
    shutil.rmtree(pair[1] / "evaluation")
    with pytest.raises(RunError, match="brief was not evaluated: evaluate it first: regardant evaluate"):
        run.compare(pair)


def evaluated_tagger(folder, texts, wrong=()):
    """Write what is compared of a tagger. `texts` has the number of words of each text, `wrong` texts without a right
    answer."""
    (folder / "evaluation").mkdir(parents=True)
    lines = [
        {"item": text, "target": "NOUN", "answer": "VERB" if text in wrong else "NOUN"}
        for text, words in enumerate(texts)
        for _ in range(words)
    ]
    keep_lines(folder, lines)
    right = sum(one["answer"] == one["target"] for one in lines)
    scores = {"accuracy": right / len(lines), "words": len(lines), "items": len(texts)}
    (folder / "evaluation" / "test.json").write_text(json.dumps(scores), "utf-8")
    events = [
        {"event": "train", "update": 10, "time": 30.0, "tokens_per_second": 400.0, "memory_bytes": 2**30},
        {"event": "validation", "update": 10, "time": 36.0, "accuracy": 0.5},
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events), "utf-8")
    return folder


def keep_lines(folder, lines):
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "evaluation" / "test.predictions.jsonl").write_text(text, "utf-8")


def compare_taggers(*folders):
    config = SimpleNamespace(metrics=[Metric("accuracy", higher_is_better=True)], model_dump=lambda mode: {})
    return compare_runs(dict.fromkeys(folders, (config, {"parameters": 1})))


def test_taggers_that_differ_in_one_text_are_not_told_apart(tmp_path):
    texts = [10] * 40
    first = evaluated_tagger(tmp_path / "first", texts)
    found = compare_taggers(first, evaluated_tagger(tmp_path / "second", texts, wrong=[7]))
    tested = found.runs[1].accuracy_from_first["test"]
    assert tested.difference == pytest.approx(-10 / 400)
    assert tested.interval[0] < tested.interval[1] == 0 and tested.p > 0.5
    many = compare_taggers(first, evaluated_tagger(tmp_path / "third", texts, wrong=range(20)))
    assert many.runs[1].accuracy_from_first["test"].p < 0.05


def test_taggers_of_other_texts_are_not_compared(tmp_path):
    first, second = evaluated_tagger(tmp_path / "first", [4, 6]), evaluated_tagger(tmp_path / "second", [6, 4])
    with pytest.raises(RunError, match=r"test of .*second has other targets than that of .*first: compare runs"):
        compare_taggers(first, second)


def test_a_tagger_evaluated_by_an_earlier_version_is_to_be_evaluated_anew(tmp_path):
    first, second = (evaluated_tagger(tmp_path / name, [4, 6]) for name in ("first", "second"))
    for folder in (first, second):
        keep_lines(folder, [{"target": "NOUN", "answer": "NOUN"}] * 10)
    with pytest.raises(RunError, match=r"test.predictions.jsonl has no numbers of items, .*: evaluate .*first anew$"):
        compare_taggers(first, second)


def test_a_matcher_that_answered_copies_of_an_item_is_to_be_evaluated_anew(tmp_path):
    folders = [evaluated_tagger(tmp_path / name, [4, 6]) for name in ("first", "second")]
    for folder in folders:
        keep_lines(folder, [{"target": "cat", "answer": "cat"}] * 10)
        scores = {"zero_shot_accuracy": 1.0, "items": 10, "first_items": 2}
        (folder / "evaluation" / "test.json").write_text(json.dumps(scores), "utf-8")
    with pytest.raises(RunError, match=r"test.predictions.jsonl has no numbers of items, .*: evaluate .*first anew$"):
        compare_taggers(*folders)


@pytest.mark.parametrize(
    ("key", "head", "score"),
    [
        ("accuracy", "accuracy minus\nfirst", "accuracy"),
        ("exact_match", "exact match\nminus\nfirst", "exact match"),
        ("zero_shot_accuracy", "zero-shot\naccuracy minus\nfirst", "zero-shot accuracy"),
    ],
)
def test_the_tested_score_is_named(tmp_path, key, head, score):
    folders = [
        evaluated_tagger(tmp_path / "first", [10] * 4),
        evaluated_tagger(tmp_path / "second", [10] * 4, wrong=[1]),
    ]
    for folder in folders:
        (folder / "evaluation" / "test.json").write_text(json.dumps({key: 0.5, "items": 4}), "utf-8")
    found = compare_taggers(*folders)
    assert head in found._table("test").heads and found.as_dict()["tested"] == score
    (chart,) = found._differences("test")
    assert f"difference in {score}; the axis runs from " in chart


def test_long_names_of_metrics_are_broken_after_underscores():
    names = ["macro_f1", "bits_per_character", "reverse_class_recall_at_1"]
    assert [_wrapped(name) for name in names] == ["macro_f1", "bits_per_\ncharacter", "reverse_\nclass_\nrecall_at_1"]
