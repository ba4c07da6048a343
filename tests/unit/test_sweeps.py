import json
import math
import re
from types import SimpleNamespace

import pytest

from regardant.errors import ConfigError, RunError
from regardant.run.folder import Record
from regardant.studies import scaling, tuning, tuning_page
from regardant.tasks import load_recipe
from regardant.training.metrics import Metric

SMALL = {
    "task": "translation",
    "data": {"kind": "copy", "train_size": 500, "validation_size": 40, "test_size": 10},
    "tokenizer": {"kind": "word"},
    "model": {"preset": None, "d_model": 16, "num_heads": 2, "d_ff": 32, "dropout": 0.1, "max_length": 32,
              "encoder": {"num_layers": 1}, "decoder": {"num_layers": 1}},
    "training": {"max_minutes": 1, "batch_tokens": 512, "validate_every": 5, "precision": "float32",
                 "best_by": "loss", "schedule": {"kind": "constant", "learning_rate": 1e-4, "warmup_steps": 4}},
}  # fmt: skip


def small(overrides):
    return load_recipe(SMALL, overrides)


def tuned(again=None, settings=("training.schedule.learning_rate=0.003",), higher=True):
    trainings = [
        tuning.Training(1, "recipe", (), 2.0, 1, 0.5),
        tuning.Training(2, "learning rate", settings, 1.0, 1, 0.4),
    ]
    return tuning.Tuned(
        Metric("accuracy", higher), trainings, settings, again, ["dropout: the recipe has no model.dropout"]
    )


def test_stages_come_in_the_order_of_the_lectures():
    assert [stage.name for stage in tuning.STAGES] == ["learning rate", "warm-up", "batch", "dropout", "layers"]


@pytest.mark.parametrize(
    ("stage", "current", "values"),
    [(0, 3e-3, [1e-3, 9e-3]), (1, 100, [25, 400]), (1, 1, [4]), (2, 100, [64, 200]), (3, 0.1, [0.0, 0.3]), (4, 1, [2])],
)
def test_values_are_around_the_current_one(stage, current, values):
    assert tuning.STAGES[stage].candidates({"a": current}) == [{"a": value} for value in values]


@pytest.mark.parametrize(
    ("encoder", "decoder", "layers"),
    [(6, 2, [(5, 1), (7, 3)]), (1, 2, [(1, 1), (2, 3)]), (1, 1, [(2, 2)])],
)
def test_each_stack_changes_from_its_own_number_of_layers(encoder, decoder, layers):
    found = tuning.STAGES[-1].candidates({"encoder": encoder, "decoder": decoder})
    assert found == [{"encoder": first, "decoder": second} for first, second in layers]


def test_a_stage_tries_the_values_of_each_field(tmp_path, monkeypatch):
    config = small(["model.encoder.num_layers=6", "model.decoder.num_layers=2"])
    sweep, tried = tuning.Sweep(small, tmp_path, 1.0, print), []
    sweep.made.append(tuning.Training(1, "recipe", (), 1.0, 1, 0.5))
    monkeypatch.setattr(Record, "read", lambda folder: SimpleNamespace(config=config))
    monkeypatch.setattr(sweep, "score", lambda study, stage, settings, share, seed: tried.append(settings) or 0.5)
    tuning._run_stage(sweep, tuning.STAGES[-1], tuning.Tuned(Metric("accuracy", True), sweep.made), 0.5)
    assert set(tried) == {
        (),
        ("model.encoder.num_layers=5", "model.decoder.num_layers=1"),
        ("model.encoder.num_layers=7", "model.decoder.num_layers=3"),
    }


@pytest.mark.parametrize(
    ("again", "higher", "beats"),
    [
        (None, True, False),
        ((0.5, 0.6), True, True),
        ((0.6, 0.5), True, False),
        ((0.6, 0.5), False, True),
        ((0.5, 0.5), True, False),
    ],
)
def test_better_is_better_with_another_seed_too(again, higher, beats):
    assert tuned(again, higher=higher).beats is beats


def test_a_verdict_is_a_sentence():
    assert tuned((0.5, 0.6)).verdict() == (
        "better with another seed as well: accuracy is 0.6, with the recipe's own settings 0.5"
    )
    assert tuned((0.6, 0.5)).verdict().startswith("not confirmed with another seed: accuracy is 0.5")
    assert tuned(settings=()).verdict() == "no setting was better than the recipe's own"
    assert "the time was up" in tuned().verdict()


def test_lines_and_page_have_every_training():
    found = tuned((0.5, 0.6))
    text = "\n".join(tuning_page.lines(found))
    assert "best settings   --set training.schedule.learning_rate=0.003" in text
    assert "left out: dropout: the recipe has no model.dropout" in text
    page = tuning_page.page(found, "copy")
    assert page.count("<tr>") >= 3 and "<script" not in page


def test_a_sweep_without_minutes_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"--minutes is 0.01; must be at least 0.05"):
        tuning.tune(small, tmp_path, 0.01)


@pytest.mark.parametrize(("short", "promoted"), [(0.6, True), (0.4, False)])
def test_a_value_trains_wholly_if_its_short_training_is_the_best_so_far(tmp_path, short, promoted):
    study = tuning.Sweep(small, tmp_path, 1.0, print).study("learning rate")
    tuning._report(study, 0.5, 0.9)
    trial = study.ask()
    trial.report(short, 1)
    assert trial.should_prune() is not promoted


def test_without_optuna_one_line_names_the_command_that_installs_it(regardant, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    said = regardant("tune", "copy")
    assert said.code == 2 and "pip install 'regardant[tune]'" in said.err


@pytest.mark.parametrize("verb", ["tune", "scale"])
def test_an_interrupted_sweep_is_130_and_says_how_to_continue(regardant, monkeypatch, tmp_path, verb):
    def interrupted(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"regardant.studies.{'tuning' if verb == 'tune' else 'scaling'}.{verb}", interrupted)
    said = regardant(verb, "copy", "--out", tmp_path)
    assert said.code == 130 and said.err.endswith("stopped; run the same command again to resume\n")


DIVERGES = tuning.Stage("learning rate", ["training.schedule.learning_rate"], lambda current: [1e30])


@pytest.fixture(scope="module")
def open_schedule(text_file):
    """A language model whose task chooses the schedule."""
    document = {
        "task": "language_modelling",
        "data": {"source": str(text_file)},
        "model": {"d_model": 16, "num_heads": 2, "num_layers": 1, "d_ff": 32, "max_length": 16},
        "training": {"max_minutes": 1, "batch_tokens": 256, "validate_every": 5, "precision": "float32",
                     "attention_kernel": "sdpa", "processes": 1},
    }  # fmt: skip
    return lambda overrides: load_recipe(document, overrides)


@pytest.fixture(scope="module")
def swept(open_schedule, tmp_path_factory):
    """A sweep, its folder and its lines: the recipe's own rate is chosen by the task, and the other one diverges."""
    folder, lines = tmp_path_factory.mktemp("sweep"), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuning, "STAGES", (DIVERGES,))
        patch.setattr(tuning.Sweep, "remaining", lambda sweep: 1e9)  # others may be at work
        yield tuning.tune(open_schedule, folder, 0.5, lines.append), folder, lines


def test_a_candidate_that_diverges_is_the_worst_and_the_sweep_continues(swept, open_schedule):
    found, folder, lines = swept
    own, short, diverged = found.trainings
    assert math.isfinite(own.score) and math.isfinite(short.score) and diverged.score == math.inf
    assert found.settings == () and len(lines) == 3
    assert "failed: the gradients of 9 updates in a row were not finite" in lines[2] and "\n" not in lines[2]
    assert json.loads(json.dumps(found.as_dict(), allow_nan=False))["trainings"][2]["score"] is None
    assert "failed" in tuning_page.lines(found)[3] and "failed" in tuning_page.page(found, "text")
    again = []
    assert tuning.tune(open_schedule, folder, 0.5, again.append).as_dict() == found.as_dict()
    assert again == []


def test_a_recipe_that_diverges_itself_ends_the_sweep(open_schedule, tmp_path):
    def diverging(overrides):
        return open_schedule(["training.schedule={kind: constant, learning_rate: 1e30, warmup_steps: 0}", *overrides])

    with pytest.raises(RunError, match=r"^the gradients of 9 updates in a row were not finite"):
        tuning.tune(diverging, tmp_path, 0.5, lambda line: None)


def test_a_stage_changes_one_field_of_a_schedule_that_the_task_has_chosen(swept):
    _, folder, _ = swept
    own, short, diverged = (
        Record.read(folder / str(number)).config.training.schedule.model_dump() for number in (1, 2, 3)
    )
    assert own["learning_rate"] > 0.01 and short == own  # far above the default of the class
    assert diverged == own | {"learning_rate": 1e30}


def test_a_sweep_with_other_settings_is_refused(swept, open_schedule):
    _, folder, _ = swept
    with pytest.raises(ConfigError, match=r"\(minutes was 0.5, is 0.6\): give the same, or another --out$"):
        tuning.tune(open_schedule, folder, 0.6, print)
    with pytest.raises(ConfigError, match=r"was begun with other settings \(model.dropout was 0.0, is 0.2\)"):
        tuning.tune(lambda overrides: open_schedule(["model.dropout=0.2", *overrides]), folder, 0.5, print)


def test_a_sweep_of_an_earlier_version_is_refused(tmp_path):
    (tmp_path / tuning.JOURNAL).touch()
    with pytest.raises(RunError, match=r"was begun by an earlier version, which kept no tuning.json: give another"):
        tuning.tune(small, tmp_path, 1.0, print)


@pytest.mark.slow
def test_a_sweep_finds_a_better_rate_and_continues_without_training_again(tmp_path, monkeypatch):
    monkeypatch.setattr(tuning, "STAGES", (tuning.STAGES[0], tuning.STAGES[-1]))
    monkeypatch.setattr(tuning.Sweep, "remaining", lambda sweep: 1e9)  # others may be at work
    lines = []
    found = tuning.tune(small, tmp_path, 2.0, lines.append)
    assert found.settings and any("learning_rate=0.0003" in one for one in found.settings)
    assert found.beats
    assert {one.stage for one in found.trainings} >= {"recipe", "learning rate"}
    whole = max(one.minutes for one in found.trainings)
    assert {round(one.minutes / whole, 2) for one in found.trainings} == {0.33, 1.0}
    again = []
    assert tuning.tune(small, tmp_path, 2.0, again.append).as_dict()["again"] == list(found.again)
    assert again == []


@pytest.mark.slow
def test_a_point_of_each_sweep_grows_and_continues(tmp_path, monkeypatch):
    monkeypatch.setattr(scaling, "SEEDS", 1)
    for by in ("size", "data", "compute"):
        found = scaling.scale(small, tmp_path, by, 0.3, lambda line: None)
        assert [point.x for point in found.points] == sorted(point.x for point in found.points)
        assert json.loads(json.dumps(found.as_dict()))["by"] == by
        assert "Fit" in found.page("copy")


def test_points_of_a_resumed_sweep_have_the_updates_that_were_measured_first(tmp_path, monkeypatch):
    monkeypatch.setattr(scaling, "SEEDS", 1)
    _, updates = scaling._budget(small, tmp_path, "size", 0.3, print)
    kept = tmp_path / "budget-size.json"
    assert json.loads(kept.read_text(encoding="utf-8")) == {"minutes": 0.3, "updates": updates}
    kept.write_text(json.dumps({"minutes": 0.3, "updates": 9}), encoding="utf-8")  # as of a slower machine
    assert scaling._budget(small, tmp_path, "size", 0.3, print)[1] == 9
    with pytest.raises(ConfigError, match=r"was begun with --minutes 0.3: give the same, or another --out$"):
        scaling.scale(small, tmp_path, "size", 0.4, print)
    kept.write_text("{}", encoding="utf-8")
    with pytest.raises(RunError, match=r"budget-size.json is damaged"):
        scaling.scale(small, tmp_path, "size", 0.3, print)


def test_minutes_that_leave_no_updates_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(scaling, "LEAST_UPDATES", 10**9)
    with pytest.raises(ConfigError, match=r"--minutes 0.3 leaves [0-9]+ updates per training"):
        scaling.scale(small, tmp_path, "size", 0.3, lambda line: None)


def test_a_sweep_of_what_a_recipe_lacks_is_refused():
    base = load_recipe({"task": "language_modelling", "data": {"source": "a.txt"}, "training": {"max_updates": 5}}, ())
    with pytest.raises(ConfigError, match="--by data needs data with a train_size"):
        scaling._settings(base, "data", 0.5, 10)


def test_points_of_three_sizes_are_fitted_without_a_floor():
    points = [scaling.Point(f"size-{x}", x, seed, 1 + 9 / x) for x in (10.0, 20.0, 40.0) for seed in (1, 2)]
    found = scaling.Scaling("size", points, scaling.fit_points(points))
    assert found.as_dict()["law"]["floor"] is None
    for text in ("\n".join(found.lines()), found.page("copy")):
        assert "no fit: fewer than four sizes" in text and "exponent above it" not in text


def test_the_points_of_a_sweep_spread_over_the_width_of_its_chart():
    losses = {1e4: 3.0, 2e4: 2.6, 4e4: 2.3, 8e4: 2.1}
    points = [scaling.Point(f"size-{x}", x, 1, loss) for x, loss in losses.items()]
    page = scaling.Scaling("size", points, scaling.fit_points(points)).page("copy")
    across = [float(x) for x in re.findall(r'class="point" cx="([\d.]+)"', page)]
    assert len(across) == 4 + 2  # of the seed, and the ends of the fit
    assert max(across) - min(across) > 400  # pixels


@pytest.mark.parametrize("spread", [0, 1e-3])
def test_seeds_of_a_share_are_one_observation_though_each_has_its_own_flops(tmp_path, monkeypatch, spread):
    losses = dict(zip((f"compute-{factor:g}" for factor in scaling.FACTORS), [3.0, 2.0, 2.0, 2.0], strict=True))
    flops = dict(zip(losses, map(math.exp, range(9, 13)), strict=True))
    monkeypatch.setattr(scaling, "_budget", lambda *given: (small(()), 8))
    monkeypatch.setattr(scaling, "train_in_turn", lambda *given: SimpleNamespace(finished=True))
    monkeypatch.setattr(
        scaling,
        "_point",
        lambda name, out, by, seed: scaling.Point(name, flops[name] * (1 + spread * seed), seed, losses[name]),
    )
    found = scaling.scale(small, tmp_path, "compute", 1, lambda line: None)
    assert found.law.interval == pytest.approx((0.122 - 0.302, 0.122 + 0.302), abs=1e-3)
    assert found.verdict() == "no trend is shown: the interval of the exponent contains 0"
    assert len({point.x for point in found.points}) == (12 if spread else 4)


def test_widths_stay_multiples_of_the_heads():
    settings = scaling._settings(small(()), "size", 1 / 4, 10)
    assert "model.d_model=8" in settings and "model.d_ff=16" in settings
    assert "training.max_updates=10" in settings
