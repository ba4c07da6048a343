"""A forecaster of two waves: its windows, its scores, and all verbs on its run."""

import json
import re
import shutil
import weakref

import numpy as np
import pytest
import torch
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st

from regardant import config, run
from regardant.errors import ConfigError, DataError
from regardant.studio.app import make_app
from regardant.tasks import load_recipe, task_named
from regardant.tasks.forecasting.windows import WindowBatches, windows_of
from regardant.tasks.items.data import read_splits

HISTORY, HORIZON = 48, 12
CPU = torch.device("cpu")


@pytest.fixture
def prepared(tiny_series_config, tmp_path):
    """The job of TINY_SERIES and the lines that were logged."""
    lines = []
    return task_named("forecasting").prepare(tiny_series_config(), tmp_path / "run", lines.append), lines


@settings(deadline=None)
@given(st.integers(1, 30), st.integers(1, 4), st.integers(1, 12))
def test_windows_are_all_stretches_of_every_column(rows, columns, length):
    values = np.arange(rows * columns).reshape(rows, columns)
    if rows < length:
        with pytest.raises(DataError, match="rows are too few for a history and a horizon of"):
            windows_of(values, length)
        return
    split = windows_of(values, length)
    found = {tuple(window.tolist()) for window in split.items}
    expected = {tuple(values[s : s + length, c]) for s in range(rows - length + 1) for c in range(columns)}
    assert found == expected and len(split) == len(expected)


def test_no_window_of_training_reads_a_later_split(tmp_path, tiny_series_config):
    """Every number names its row: training windows end before validation, and no target is in two splits."""
    rows = [f"{row},{row}" for row in range(600)]
    (tmp_path / "rows.csv").write_text("time,row\n" + "\n".join(rows) + "\n")
    recipe = tiny_series_config(f"data.root={tmp_path}", "data.source=rows.csv")
    prepared = task_named("forecasting").prepare(recipe, tmp_path / "run", lambda line: None)
    codec = prepared.job.batches.codec
    test = windows_of(read_splits(tmp_path / "run" / "data")[0]["test"].items[0], HISTORY + HORIZON)

    def numbers(split):
        windows = np.stack([split.items[number] for number in range(len(split))])
        return codec.restored(windows[None], ["row"])[0].round().astype(int)

    train, validation, test = map(numbers, (prepared.job.batches.split, prepared.job.validation.split, test))
    assert (train.min(), train.max()) == (0, 399)
    assert set(validation[:, HISTORY:].ravel()) == set(range(400, 500))
    assert set(test[:, HISTORY:].ravel()) == set(range(500, 600))
    assert (validation[:, :HISTORY].min(), test[:, :HISTORY].min()) == (400 - HISTORY, 500 - HISTORY)


def test_the_scale_is_that_of_training_rows_alone(waves, tmp_path, tiny_series_config):
    other = tmp_path / "waves.csv"
    lines = waves.read_text().splitlines()
    other.write_text("\n".join([*lines[:401], *(f"{line.split(',')[0]},999,-999" for line in lines[401:])]) + "\n")
    statistics = []
    for number, root in enumerate((waves.parent, tmp_path)):
        folder = tmp_path / f"run-{number}"
        task_named("forecasting").prepare(tiny_series_config(f"data.root={root}"), folder, lambda line: None)
        statistics.append((folder / "series.json").read_text())
    assert statistics[0] == statistics[1]


def test_batches_hold_histories_and_the_values_after_them(prepared):
    (done, lines) = prepared
    batches = done.job.batches
    batch = batches.load(batches.plan(0)[0])
    windows = np.stack([batches.split.items[number] for number in batches.plan(0)[0].indices])
    np.testing.assert_array_equal(batch.inputs["input"], windows[:, :HISTORY])
    np.testing.assert_array_equal(batch.targets[..., 0], windows[:, HISTORY:])
    assert batch.count == len(windows) * HORIZON
    parts = [batch.part(number, 3) for number in range(3)]
    assert sum(part.count for part in parts) == batch.count
    assert batches.targets_per_epoch == 2 * 341 * HORIZON
    assert lines[-1].startswith("682 windows to train, 178 windows to validation, 178 windows to test; 2 series")


def test_validation_scores_are_means_over_all_values(prepared):
    job = prepared[0].job
    model = job.model.eval()
    with torch.inference_mode():
        scores = job.validate(model, CPU)
        batches = [job.validation.load(planned) for planned in job.validation.plan(0)]
        errors = torch.cat([(model.scores(**one.inputs) - one.targets).flatten() for one in batches])
    assert scores["mse"] == pytest.approx(float(errors.square().mean()), rel=1e-5)
    assert scores["loss"] == pytest.approx(scores["mse"], rel=1e-5)
    assert scores["mae"] == pytest.approx(float(errors.abs().mean()), rel=1e-5)


@pytest.mark.parametrize("kind", ["encoder_only", "dlinear", "bag", "recurrent"])
def test_waves_are_learned(trained_on_series, kind):
    """Noise of 0.02 is 0.006 of the deviation of `warm` and 0.03 of that of `cold`; the last value as forecast gives
    an error of 0.9."""
    overrides = () if kind == "encoder_only" else (f"model.kind={kind}",)
    assert trained_on_series(*overrides).evaluate()["test"]["mse"] < 0.1


def test_evaluate_gives_scores_of_all_columns_and_of_each(regardant, trained_on_series):
    said = regardant("evaluate", trained_on_series().folder, "--json")
    scores = json.loads(said.out)
    assert said.code == 0 and list(scores["columns"]) == ["warm", "cold"]
    for name in ("mse", "mae"):
        assert scores[name] == pytest.approx(np.mean([one[name] for one in scores["columns"].values()]), rel=1e-5)
    assert scores["items"] == 2 * (100 - HORIZON + 1)
    said = regardant("evaluate", trained_on_series().folder)
    assert f"MSE {scores['mse']:.4f}, MAE {scores['mae']:.4f} in standard deviations of the training rows" in said.out


def test_evaluate_compares_the_model_with_repeating_the_last_values(regardant, trained_on_series, waves):
    rows = np.array([line.split(",")[1:] for line in waves.read_text().splitlines()[1:]], float)
    scaled = (rows - rows[:400].mean(0)) / rows[:400].std(0)
    starts = range(500, 600 - HORIZON + 1)
    said = regardant("evaluate", trained_on_series().folder, "--json")
    naive = json.loads(said.out)["naive"]
    for name, count in (("last value", 1), ("last 24 values", 24)):
        errors = [scaled[at + step] - scaled[at - count + step % count] for at in starts for step in range(HORIZON)]
        assert naive[name]["mse"] == pytest.approx(np.square(errors).mean(), rel=1e-4)
        assert naive[name]["mae"] == pytest.approx(np.abs(errors).mean(), rel=1e-4)
    assert list(naive) == ["last value", "last 24 values"]
    said = regardant("evaluate", trained_on_series().folder)
    assert said.code == 0, said.err
    lines, (value, day) = said.lines, naive.values()
    assert lines[1] == f"  last value, repeated: MSE {value['mse']:.4f}, MAE {value['mae']:.4f}"
    assert lines[2] == f"  last 24 values, repeated: MSE {day['mse']:.4f}, MAE {day['mae']:.4f}"


def test_another_file_is_evaluated(trained_on_series, waves, tmp_path):
    trained = trained_on_series()
    assert trained.evaluate(data=[waves])["waves.csv"]["items"] == 2 * (620 - HISTORY - HORIZON + 1)
    (tmp_path / "short.csv").write_text("\n".join(waves.read_text().splitlines()[:50]) + "\n")
    with pytest.raises(DataError, match=r"--data .*short.csv: 49 rows are too few for a history and a horizon of 60"):
        trained.evaluate(data=[tmp_path / "short.csv"])


def test_evaluation_holds_no_batch_but_the_one_that_it_scores(trained_on_series, monkeypatch):
    trained, load, loaded, alive = trained_on_series().trained, WindowBatches.load, [], []
    monkeypatch.setattr("regardant.tasks.items.trained.BATCH_ELEMENTS", 250)

    def load_and_count(batches, planned):
        batch = load(batches, planned)
        loaded.append(weakref.ref(batch))
        alive.append(sum(one() is not None for one in loaded))
        return batch

    monkeypatch.setattr(WindowBatches, "load", load_and_count)
    trained.evaluated("test", trained._splits()["test"])
    assert len(alive) > 6 and max(alive) <= 2  # the one before is dropped when the next has been loaded


@pytest.fixture
def past(waves, tmp_path):
    """waves.csv without its last twelve rows, and these."""
    lines = waves.read_text().splitlines()
    (tmp_path / "past.csv").write_text("\n".join(lines[:-HORIZON]) + "\n")
    return tmp_path / "past.csv", [line.split(",") for line in lines[-HORIZON:]]


def test_the_next_values_of_every_column_are_forecast_in_its_own_units(regardant, trained_on_series, past):
    path, future = past
    (found,) = trained_on_series().predict([str(path)])
    assert found.details["time"] == [row[0].replace(" ", "T") + ":00" for row in future]
    for number, (name, spread) in enumerate([("warm", 5), ("cold", 1)], 1):
        expected = [float(row[number]) for row in future]
        np.testing.assert_allclose(found.details["forecast"][name], expected, atol=0.5 * spread)
    said = regardant("predict", trained_on_series().folder, path)
    assert said.code == 0 and said.lines == [found.answer]
    assert re.fullmatch(r"warm [\d.]+ [\d.]+ [\d.]+ \.\.\.; cold -[\d.]+ -[\d.]+ -[\d.]+ \.\.\.", found.answer)
    (alone,) = json.loads(regardant("predict", trained_on_series().folder, f"{path}:cold", "--json").out)["predictions"]
    assert alone["forecast"] == {"cold": pytest.approx(found.details["forecast"]["cold"], rel=1e-4)}


def test_a_short_forecast_is_whole_in_its_line(trained_on_series, past):
    brief = ("training.max_updates=5", "training.validate_every=5")
    for horizon, more in ((3, ""), (4, r" \.\.\.")):
        (found,) = trained_on_series(f"head.horizon={horizon}", *brief).predict([str(past[0])])
        assert re.fullmatch(rf"warm( -?[\d.e+-]+){{3}}{more}; cold( -?[\d.e+-]+){{3}}{more}", found.answer)


def test_quantiles_are_forecast_in_order(trained_on_series, past):
    trained = trained_on_series("head.quantiles=[0.1, 0.5, 0.9]")
    assert trained.evaluate()["test"]["mse"] < 0.1
    (found,) = trained.predict([str(past[0])])
    low, middle, high = (np.array(found.details["quantiles"][share]["warm"]) for share in ("0.1", "0.5", "0.9"))
    assert (low < high).mean() > 0.9
    np.testing.assert_array_equal(middle, found.details["forecast"]["warm"])
    assert any("Forecast scores no classes" in note for note in trained.measure().notes)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "there is no file"),
        ("date,warm\n2026-01-01,1\n2026-01-02,1\n", "has no column cold; did you mean"),
        ("date,warm,cold\n2026-01-01,1,1\n2026-01-02,1,1\n", "a table of 2 rows was given, and the model reads 48"),
        ("date,warm,cold\n2026-01-01,1,1\n2026-01-02,1,x\n", "line 3: column cold holds 'x', not a number"),
    ],
)
def test_a_table_that_cannot_be_forecast_is_one_line(regardant, trained_on_series, tmp_path, content, told):
    if content is not None:
        (tmp_path / "a.csv").write_text(content)
    said = regardant("predict", trained_on_series().folder, tmp_path / "a.csv")
    assert (said.code, said.out, said.err.count("\n")) == (2, "", 1)
    assert told in said.err or "(there are: date, warm)" in said.err


def test_a_column_is_inspected_by_its_patches(regardant, trained_on_series, waves, tmp_path):
    trained = trained_on_series()
    found = trained.inspect(str(waves))
    (picture,) = found.pictures
    assert found.item == f"{waves}:warm" and picture.source[0] == "-48 to -41" and picture.source[-1] == "-8 to -1"
    assert picture.weights.shape == (2, 2, 11, 11)
    (series,) = trained.predict([f"{waves}:cold"])
    assert trained.inspect(f"{waves}:cold").answer == series.answer
    for name in ("a.html", "a.svg", "a.json"):
        said = regardant("inspect", trained.folder, f"{waves}:cold", "--out", tmp_path / name)
        assert said.code == 0 and said.out == f"{series.answer}\n"
    with pytest.raises(ConfigError, match="a run of forecasting is inspected without target: leave that out"):
        trained.inspect(str(waves), target="x")


def test_a_model_without_attention_answers_and_refuses_in_one_line(regardant, trained_on_series, waves, tmp_path):
    folder = trained_on_series("model.kind=dlinear").folder
    assert regardant("inspect", folder, waves, "--out", tmp_path / "a.json").code == 0
    said = regardant("measure", folder)
    assert (said.code, said.err.count("\n")) == (2, 1) and "no attention to measure" in said.err


def test_attention_is_measured(trained_on_series, tmp_path):
    trained = run.load(shutil.copytree(trained_on_series().folder, tmp_path / "run"))
    found = trained.measure()
    assert found.title() == "validation: 100 items"
    assert found.heads["encoder.self_attention"].entropy.shape == (2, 2)
    assert any("Forecast scores no classes" in note for note in found.notes)


def test_a_healthy_run_is_diagnosed(regardant, trained_on_series):
    trained = trained_on_series()
    seen = trained.doctor()
    assert not seen.findings
    assert seen.left_out["more than frequencies"] == "the targets are numbers, which have no frequencies"
    assert regardant("doctor", trained.folder).code == 0


def test_runs_are_compared_by_their_errors(regardant, trained_on_series):
    folders = [trained_on_series(*overrides).folder for overrides in ((), ("model.kind=dlinear",))]
    for folder in folders:
        assert regardant("evaluate", folder).code == 0
    said = regardant("compare", *folders)
    assert said.code == 0 and "mse" in said.out and "lower wins" in said.out


def test_a_run_is_planned_in_values(regardant, waves, tmp_path):
    recipe = tmp_path / "a.yaml"
    recipe.write_text(
        f"task: forecasting\ndata: {{source: {waves}}}\ninput: {{kind: series, history: 48}}\nhead: {{horizon: 12}}\n"
        "training: {max_updates: 5, precision: float32, attention_kernel: sdpa}\n"
    )
    said = regardant("plan", recipe)
    assert said.code == 0, said.err
    assert "values" in said.out + said.err


@pytest.mark.parametrize(
    ("rows", "horizon", "history", "patches"), [(144, 7, 46, 6), (40, 2, 13, 6), (620, 31, 201, 25)]
)
def test_history_and_horizon_are_chosen_for_a_short_table(waves, tmp_path, rows, horizon, history, patches):
    table = tmp_path / "short.csv"
    table.write_text("\n".join(waves.read_text().splitlines()[: rows + 1]) + "\n")
    recipe, lines = load_recipe(config.recipe("forecasting"), [f"data.source={table}"]), []
    prepared = task_named("forecasting").prepare(recipe, tmp_path / "run", lines.append)
    chosen = prepared.config
    assert (chosen.head.horizon, chosen.input.shape.history, chosen.input.shape.patches) == (horizon, history, patches)
    assert lines[0] == (
        f"{horizon} steps are forecast (head.horizon) from {history} (input.history), chosen for "
        f"{int(0.7 * rows)} training rows"
    )
    assert chosen.head.elements == patches and len(prepared.job.validation.split) >= 2


def test_a_run_of_chosen_sizes_is_opened_and_resumed(waves, tmp_path):
    small = ["model.num_layers=1", "training.max_minutes=null", "training.precision=float32", "training.processes=1"]
    for updates in (1, 2):
        overrides = [f"data.source={waves}", *small, f"training.max_updates={updates}"]
        recipe = load_recipe(config.recipe("forecasting"), overrides)
        assert run.train(recipe, tmp_path / "run", log=lambda line: None).cursor.update == updates
    (found,) = run.load(tmp_path / "run").predict([str(waves)])
    assert len(found.details["forecast"]["warm"]) == 31


def test_sizes_that_are_set_are_not_chosen(tiny_series_config, waves, tmp_path):
    recipe = load_recipe(config.recipe("forecasting"), [f"data.source={waves}", "head.horizon=5", "input.stride=3"])
    prepared = task_named("forecasting").prepare(recipe, tmp_path / "run", lambda line: None)
    assert (prepared.config.head.horizon, prepared.config.input.stride) == (5, 3)
    long = load_recipe(config.recipe("forecasting"), [f"data.source={waves}", "head.horizon=96"])
    with pytest.raises(DataError, match=r"^data.validation: 62 of 620 rows are too few to forecast 96 rows from 169:"):
        task_named("forecasting").prepare(long, tmp_path / "other", lambda line: None)


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        (["head.horizon=null"], "pooling flatten reads all elements for one horizon: set horizon"),
        (["head.pooling=last", "head.horizon=null"], "a forecast needs a number of steps: set head.horizon, as in"),
        (["head.horizon=101"], r"data.validation: 100 of 620 rows are too few to forecast 101 rows from 48"),
        (["model.max_length=10"], r"a history has 11 patches, of which at most 10 are read: raise model.max_length"),
        (["model.kind=dlinear", "head.pooling=mean"], "dlinear forecasts from the whole history: set head="),
        (["data.columns=[wram]"], r"has no column wram; did you mean warm\?"),
        (["data.time=warm"], r"line \d+: .* is not after .* in the row before: sort the rows by time"),
    ],
)
def test_what_cannot_be_trained_is_one_line(tiny_series_config, tmp_path, overrides, told):
    with pytest.raises((ConfigError, DataError), match=told):
        run.train(tiny_series_config(*overrides), tmp_path / "run", log=lambda line: None)


def test_examples_are_histories_that_can_be_forecast(trained_on_series, tmp_path):
    trained = trained_on_series().trained
    found = trained.examples(3, tmp_path)
    assert len(found) == 3 and all(one.picture.startswith("data:image/svg+xml;base64,") for one in found)
    first, *_, last = trained.predict([one.item for one in found])
    assert first.answer != last.answer and first.details["time"][0] == "48.0"


def test_the_studio_shows_examples_and_takes_files(trained_on_series, waves):
    folder = trained_on_series().folder
    client = TestClient(make_app([folder]), base_url="http://localhost")
    name = folder.as_posix()
    examples = client.get("/api/examples", params={"run": name}).json()
    seen = client.post("/api/look", json={"run": name, "text": examples[0]["item"]}).json()
    assert seen["pictures"]["title"] == "example-1.csv" and list(seen["forecast"]) == ["warm"]
    sent = client.post("/api/item", params={"run": name, "name": "mine.csv"}, content=waves.read_bytes()).json()["item"]
    looked = client.post("/api/look", json={"run": name, "text": sent}).json()
    assert looked["answer"] == trained_on_series().predict([f"{waves}:warm"])[0].answer
    refused = client.post("/api/item", params={"run": name, "name": "mine.png"}, content=b"x")
    assert (refused.status_code, refused.json()["detail"].split(":")[0]) == (
        422,
        "'mine.png' is not a file that this run reads",
    )
