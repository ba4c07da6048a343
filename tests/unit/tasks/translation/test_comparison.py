import json
import os
from pathlib import Path

import pytest
import sacrebleu

from regardant.errors import RunError
from regardant.evaluation.translation import TranslationMetrics
from regardant.files import sha256_of
from regardant.tasks.evaluated_weights import keep_evaluated_weights
from regardant.tasks.training_history import names_from_where_paths_part
from regardant.tasks.translation.evaluate.comparison import compare_runs, shared_sets
from regardant.tasks.translation.evaluate.comparison_page import ComparisonReport, summary
from regardant.tasks.translation.evaluate.evaluation import read_evaluated

METRICS = TranslationMetrics(bootstrap_samples=50)
PLAN = {"parameters": 2_093_568, "memory_bytes": 2**30, "seconds": 600.0}
REFERENCES = ["le chat noir dort ici", "un chien court", "la maison rouge est très grande", "il a vu le petit oiseau"]
SOURCES = ["the black cat sleeps here", "a dog runs", "the red house is very big", "he has seen the little bird"]
EVENTS = [
    {"event": "train", "update": 10, "time": 30.0, "tokens_per_second": 400.0, "memory_bytes": 2**30},
    {"event": "validation", "update": 10, "time": 36.0, "loss": 4.5, "bleu": 1.5},
    {"event": "train", "update": 20, "time": 66.0, "tokens_per_second": 1100.0, "memory_bytes": 3 * 2**29},
    {"event": "train", "update": 30, "time": 96.0, "tokens_per_second": 1000.0, "memory_bytes": 2**30},
    {"event": "validation", "update": 30, "time": 102.0, "loss": None, "bleu": 7.25},
]


def write(folder: Path, name: str, *, sources=SOURCES, references=REFERENCES, hypotheses=REFERENCES, beam_size=5):
    """What evaluation leaves of one test set."""
    kept = folder / "evaluation"
    kept.mkdir(parents=True, exist_ok=True)
    for suffix, lines in (("src", sources), ("ref", references), ("hyp", hypotheses)):
        (kept / f"{name}.{suffix}").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    scores = {"bleu": 1.0, "beam_size": beam_size, "length_penalty": 1.0}
    (kept / f"{name}.json").write_text(json.dumps(scores), encoding="utf-8")


def evaluated_run(folder: Path, *sets: str, events=EVENTS, **more) -> Path:
    """A run that compares, without its weights."""
    for name in sets or ("test",):
        write(folder, name, **more)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    return folder


def compare(*folders: Path, plan=PLAN):
    return compare_runs(dict.fromkeys(folders, plan), METRICS)


@pytest.fixture
def first(tmp_path):
    return evaluated_run(tmp_path / "first", "test", "held.out")


@pytest.fixture
def second(tmp_path):
    hypotheses = [*REFERENCES[:3], "il a vu un oiseau"]
    return evaluated_run(tmp_path / "second", "test", "held.out", hypotheses=hypotheses)


# what is compared


def test_scores_are_those_of_the_kept_translations(first, second):
    one, other = compare(first, second).runs
    assert one.tests["test"].bleu == pytest.approx(100)
    expected = sacrebleu.corpus_bleu([*REFERENCES[:3], "il a vu un oiseau"], [REFERENCES]).score
    assert other.tests["test"].bleu == pytest.approx(expected)
    assert other.tests["test"].against_first.difference == pytest.approx(expected - 100)
    assert one.tests["test"].against_first is None


def test_costs_are_those_of_metrics_and_plan(first, second):
    for run in compare(first, second).runs:
        assert run.training.tokens_per_second == 1000  # the median: neither the mean nor the last
        assert run.training.training_seconds == 102
        assert (run.training.parameters, run.training.memory_bytes) == (2_093_568, 3 * 2**29)


def test_validations_are_told_in_minutes(first, second):
    found = compare(first, second).runs[0].training.validations
    assert [(one.minutes, one.scores) for one in found] == [
        (0.6, {"loss": 4.5, "bleu": 1.5}),
        (1.7, {"loss": None, "bleu": 7.25}),
    ]


def test_a_line_of_metrics_that_a_kill_cut_off_is_passed_over(first, second):
    with (first / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"event": "train", "upd')
    assert compare(first, second).runs[0].training.training_seconds == 102


def test_a_line_ends_at_a_line_feed_only(tmp_path):
    odd = [*REFERENCES[:3], "il a vu\u2028le petit\x0coiseau\r"]
    folder = evaluated_run(tmp_path / "odd", references=odd, hypotheses=odd)
    assert read_evaluated(folder)["test"].references == odd


def test_as_json_everything_is_plain(first, second):
    told_by = json.loads(json.dumps(compare(first, second).as_dict(), allow_nan=False))
    one, other = told_by["runs"]
    assert told_by.keys() == {"runs"}
    assert (one["run"], one["parameters"], one["tokens_per_second"]) == (str(first), 2_093_568, 1000)
    assert one["validations"][1] == {"minutes": 1.7, "loss": None, "bleu": 7.25}
    assert list(one["tests"]) == ["test", "held.out"]
    scores = other["tests"]["test"]
    assert scores.keys() == {
        "bleu",
        "interval",
        "chrf",
        "by_length",
        "against_first",
        "sentences",
        "signature",
        "chrf_signature",
    }
    assert (one["tests"]["test"]["against_first"], scores["sentences"]) == (None, 4)
    assert scores["against_first"].keys() == {"difference", "interval", "p"}
    assert [part["words"] for part in scores["by_length"]] == [[3, 3], [5, 5], [6, 6]]
    assert all(part["interval"][0] <= part["bleu"] <= part["interval"][1] for part in scores["by_length"])


# which sets


def test_a_set_that_differs_is_refused_though_another_is_the_same(first, second):
    write(second, "held.out", references=[*REFERENCES[:3], "il a aperçu le petit oiseau"])
    with pytest.raises(
        RunError, match=rf"test sets differ from those of {first} .*second in evaluation/held\.out\.ref"
    ):
        compare(first, second)


def test_a_run_that_was_trained_on_since_it_was_evaluated_is_refused(first, second):
    weights = second / "model.safetensors"
    weights.touch()
    before = (second / "evaluation" / "test.json").stat().st_mtime - 10
    os.utime(weights, (before, before))
    assert len(compare(first, second).runs) == 2
    os.utime(weights, (before + 20, before + 20))
    with pytest.raises(RunError, match=f"{second} was trained further after test was evaluated: evaluate it anew"):
        compare(first, second)


def test_weights_are_known_by_their_content_not_by_their_date(first, second):
    for folder in (first, second):
        (folder / "model.safetensors").write_bytes(b"weights")
        keep_evaluated_weights(folder, ["test", "held.out"], sha256_of(folder / "model.safetensors"))
    later = (second / "evaluation" / "test.json").stat().st_mtime + 20
    os.utime(second / "model.safetensors", (later, later))  # as a copy may have
    assert len(compare(first, second).runs) == 2
    (second / "model.safetensors").write_bytes(b"others")
    os.utime(second / "model.safetensors", (later - 40, later - 40))
    with pytest.raises(RunError, match="was trained further after test was evaluated: evaluate it anew"):
        compare(first, second)
    keep_evaluated_weights(second, ["test"], sha256_of(second / "model.safetensors"))
    with pytest.raises(RunError, match=r"was trained further after held\.out was evaluated: evaluate it anew"):
        compare(first, second)


def test_a_set_that_one_run_lacks_is_left_out(first, second, tmp_path):
    third = evaluated_run(tmp_path / "third", "test", "other")
    assert shared_sets({folder: read_evaluated(folder) for folder in (first, second, third)}) == ["test"]


@pytest.mark.parametrize(("side", "file"), [("sources", "test.src"), ("references", "test.ref")])
def test_runs_whose_sets_differ_are_named_with_the_file(first, second, tmp_path, side, file):
    other = ["something else", *SOURCES[1:]]
    third = evaluated_run(tmp_path / "third", **{side: other})
    with pytest.raises(RunError) as caught:
        compare(first, second, third)
    assert str(caught.value) == (
        f"test sets differ from those of {first} ({third} in evaluation/{file}): "
        "compare runs that were evaluated on the same set"
    )


def test_runs_without_a_common_set_are_told_what_each_has(first, tmp_path):
    other = evaluated_run(tmp_path / "other", "x.tsv")
    with pytest.raises(RunError, match=r"no test set .*first on test, held\.out; .*other on x\.tsv\): evaluate"):
        compare(first, other)


def test_a_run_that_was_not_evaluated_is_named_with_the_command(first, tmp_path):
    bare = tmp_path / "bare"
    bare.mkdir()
    with pytest.raises(RunError, match=f"{bare} was not evaluated: evaluate it first: regardant evaluate {bare}$"):
        compare(first, bare)


# what is broken


@pytest.mark.parametrize("suffix", ["src", "ref", "hyp"])
def test_a_kept_file_that_is_gone_or_cut_is_told(first, second, suffix):
    path = second / "evaluation" / f"test.{suffix}"
    path.write_text("one line\n", encoding="utf-8")
    with pytest.raises(RunError, match=rf"test does not have .*1 in \.{suffix}.*: evaluate the run anew"):
        compare(first, second)
    path.unlink()
    with pytest.raises(RunError, match=rf"cannot be read .*test\.{suffix}.*: evaluate the run anew"):
        compare(first, second)


@pytest.mark.parametrize("events", [[], EVENTS[:1], EVENTS[1:2]])
def test_a_run_without_numbers_of_training_is_told(first, tmp_path, events):
    other = evaluated_run(tmp_path / "other", events=events)
    with pytest.raises(RunError, match=r"other/metrics\.jsonl has no training with a validation"):
        compare(first, other)


def test_a_run_without_its_metrics_is_told(first, second):
    (second / "metrics.jsonl").unlink()
    with pytest.raises(RunError, match=r"second/metrics\.jsonl has no training"):
        compare(first, second)


def test_a_plan_without_a_number_is_told(first, second):
    with pytest.raises(RunError, match=r"first/run\.yaml is damaged \(no plan\.parameters\)"):
        compare(first, second, plan={"memory_bytes": 1})


# how it is told


@pytest.mark.parametrize(
    ("folders", "names"),
    [
        (["runs/a", "runs/b"], ["a", "b"]),
        (["runs/demo", "runs/ladder/lsh"], ["demo", "ladder/lsh"]),
        (["a/run", "b/run"], ["a/run", "b/run"]),
        (["runs/a", "runs/a/b"], ["a", "a/b"]),
        (["runs/../runs/a", "runs/b/."], ["a", "b"]),
    ],
)
def test_names_are_what_is_left_of_paths_where_they_part(folders, names):
    assert names_from_where_paths_part([Path(folder) for folder in folders]) == names


def test_there_is_a_table_a_set_with_a_line_a_run(first, second):
    comparison = compare(first, second)
    lines = summary(comparison)
    assert lines[0].startswith("test: 4 sentences")
    heads, one, other = lines[2], lines[3], lines[4]
    assert (
        " ".join(heads.split()) == "run BLEU chrF first interval p words words words a second training GiB parameters"
    )
    assert one.split()[:3] == ["first", "100.00", "100.00"]
    assert one.split()[-4:] == ["1,000", "1.7", "1.50", "2,093,568"]
    against = comparison.runs[1].tests["test"].against_first
    assert f"{against.difference:+.2f}" in other.split() and f"{against.p:.3f}" in other.split()
    assert [line for line in lines if line.startswith("held.out: ")] and lines.count(one) == 2
    assert any(line.startswith("  BLEU nrefs:1|bs:50|") for line in lines)


def test_a_difference_has_its_sign_also_where_it_is_a_gain(first, second):
    comparison = compare(second, first)
    against = comparison.runs[1].tests["test"].against_first
    low, high = against.interval
    assert against.difference > 0
    gain = f" +{against.difference:.2f}  {low:+.2f} to {high:+.2f}  {against.p:.3f} "
    assert any(gain in line for line in summary(comparison)), gain


def test_runs_that_were_translated_in_different_ways_are_told_apart(first, second):
    assert not any("different settings" in line for line in summary(compare(first, second)))
    write(second, "test", beam_size=1)
    (line,) = (line for line in summary(compare(first, second)) if "different settings" in line)
    assert "first beam size 5, length penalty 1.0; second beam size 1, length penalty 1.0" in line


def test_the_page_holds_tables_intervals_and_curves(first, second):
    text = ComparisonReport(compare(first, second)).page()
    assert [text.count(one) for one in ("<h2>Test set: test</h2>", "<h2>Test set: held.out</h2>")] == [1, 1]
    assert text.count("<table>") == 5 and text.count("<svg role") + text.count('<svg class="fluid"') == 6
    assert text.count('class="curve"') == 4
    assert text.count('<circle class="point"') == 4 + 2  # a loss that is no number is no point
    assert text.count('class="interval"') == 2 * (1 + 2 + 3 * 2)
    assert text.count("difference in BLEU; the axis runs from ") == text.count("BLEU; the axis runs from ") / 2 == 2
    assert "<td>7.250</td>" in text and "<td>–</td><td>7.250</td>" in text


def test_the_page_draws_the_difference_and_the_intervals_of_the_comparison(first, second):
    comparison = compare(first, second)
    text = ComparisonReport(comparison).page()
    scores = comparison.runs[1].tests["test"]
    (low, high), (from_low, from_high) = scores.interval, scores.against_first.interval
    assert f"second: {scores.bleu:.2f}, 95 % interval {low:.2f} to {high:.2f}" in text
    assert f"second: {scores.against_first.difference:+.2f}, 95 % interval {from_low:+.2f} to {from_high:+.2f}" in text
    assert f"<td>{scores.bleu:.2f} ({low:.2f} to {high:.2f})</td>" in text


def test_without_any_loss_there_is_no_chart_of_it(first, second):
    bare = [{**event, "loss": None} for event in EVENTS]
    for folder in (first, second):
        evaluated_run(folder, events=bare)
    assert "validation loss" not in ComparisonReport(compare(first, second)).page()


def test_a_run_s_name_is_no_markup(first, tmp_path):
    odd = evaluated_run(tmp_path / "<b>&odd", "test")
    text = ComparisonReport(compare(first, odd)).page()
    assert "<b>" not in text and "&lt;b&gt;&amp;odd" in text


def test_evaluation_itself_leaves_what_compares(trained, tmp_path, test_set):
    """Not what this test writes, but what the evaluation of a trained run does."""
    from regardant.tasks.translation.evaluate.evaluation import TestSet, evaluate_translator

    run = trained()
    tested = TestSet("test", test_set.sources, test_set.references)
    folders, scores = [], []
    for beam_size in (1, 2):
        folder = evaluated_run(tmp_path / f"beam-{beam_size}")
        generation = run.generation(beam_size=beam_size)
        kept = folder / "evaluation"
        scores.append(
            evaluate_translator(run.translator, tested, kept, generation=generation, metrics=run.config.evaluation)
        )
        folders.append(folder)
    comparison = compare(*folders)
    for one, expected in zip(comparison.runs, scores, strict=True):
        assert one.tests["test"].bleu == pytest.approx(expected["bleu"]) and expected["bleu"] > 0
        assert one.tests["test"].chrf == pytest.approx(expected["chrf"])
    assert any("beam-1 beam size 1" in line for line in summary(comparison))
