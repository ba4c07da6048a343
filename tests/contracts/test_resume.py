"""The same command goes on where a run stopped, and ends bit-equal to a run that never stopped.

Precision and attention kernel are decided by timing, so all runs but the first get its run.yaml: one decision for all.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import torch
import yaml

from regardant import run
from regardant.errors import ConfigError
from regardant.run import Record
from regardant.training.checkpoints import latest_checkpoint, load_checkpoint, load_weights

pytestmark = pytest.mark.usefixtures("shapes_unchecked")

OVERRIDES = (
    "data.train_size=400",
    "training.max_updates=60",
    "training.accumulate=3",
    "training.batch_tokens=250",
    "training.validate_every=25",
    "training.keep_checkpoints=3",
    "model.dropout=0.3",
)
EVERY_UPDATE = "training.checkpoint_minutes=1e-9"
"""How often a checkpoint is written."""

CLOCK = {"time", "took", "tokens_per_second", "memory_bytes", "memory_peak_bytes"}


TEXT_OVERRIDES = (
    "training.max_updates=60",
    "training.accumulate=2",
    "training.batch_tokens=512",
    "training.validate_every=25",
    # Any other kind would follow the budget, which the parts of a training differ in.
    "training.schedule={kind: constant, learning_rate: 1.0e-2, warmup_steps: 2}",
    "model.dropout=0.3",
    "training.optimizer.kind=muon",
)


def quietly(line):
    pass


@pytest.fixture(scope="module")
def uninterrupted(trained):
    folder = trained(*OVERRIDES).folder
    assert latest_checkpoint(folder).stem == "update-00000060"
    return folder


def begin_alike(uninterrupted, folder):
    """A run about to start whose precision and kernel are decided as in the other."""
    folder.mkdir()
    shutil.copy(uninterrupted / "run.yaml", folder)
    return folder


def start_training(config, folder):
    """Start `regardant train` as a process of its own."""
    recipe = folder.with_suffix(".yaml")
    recipe.write_text(yaml.safe_dump(config.model_dump(mode="json", by_alias=True)))
    command = [
        sys.executable,
        "-c",
        "from regardant.cli import main; main()",
        "train",
        str(recipe),
        "--out",
        str(folder),
    ]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, text=True)


def wait_for(process, condition):
    deadline = time.monotonic() + 300
    while not condition():
        assert process.poll() is None, process.stdout.read()
        assert time.monotonic() < deadline
        time.sleep(0.002)


def newest_update(folder):
    return max((int(path.stem.removeprefix("update-")) for path in folder.glob("checkpoints/*.pt")), default=0)


def events(folder):
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [{name: value for name, value in json.loads(line).items() if name not in CLOCK} for line in lines]


def same(one, other):
    """Bit by bit, whatever containers hold."""
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def assert_bit_equal(folder, other):
    assert (folder / "model.safetensors").read_bytes() == (other / "model.safetensors").read_bytes()
    states = [load_checkpoint(latest_checkpoint(one)) for one in (folder, other)]
    for part in ("model", "optimizers", "average"):
        assert same(states[0][part], states[1][part]), part
    for state in states:
        for timed in ("seconds", "validation_seconds"):
            del state["cursor"][timed]
    assert states[0]["cursor"] == states[1]["cursor"]


def test_an_interrupted_run_saves_exits_with_130_and_ends_bit_equal(tmp_path, tiny_config, uninterrupted, capsys):
    folder = begin_alike(uninterrupted, tmp_path / "interrupted")
    metrics = folder / "metrics.jsonl"
    process = start_training(tiny_config(*OVERRIDES), folder)
    wait_for(process, lambda: metrics.is_file() and metrics.stat().st_size)  # told of update 10, in the second epoch
    process.send_signal(signal.SIGINT)
    told, _ = process.communicate(timeout=300)
    assert process.returncode == 130, told
    stopped_at = load_checkpoint(latest_checkpoint(folder))["cursor"]["update"]
    assert 10 <= stopped_at < 60, told
    assert f"stopped at update {stopped_at}, saved" in told and "run the same command again to resume" in told
    assert "Traceback" not in told
    assert run.train(tiny_config(*OVERRIDES), folder, quietly).finished
    assert f"resuming from update {stopped_at} " in capsys.readouterr().err
    assert_bit_equal(folder, uninterrupted)
    assert events(folder) == events(uninterrupted)


def test_what_a_cpu_decides_for_itself_is_resumed_bit_equal_too(tmp_path, tiny_config):
    """bfloat16, plain products and a mean of the last weights, under a rate that does not look at the budget."""
    overrides = (
        *OVERRIDES,
        "training.precision=bfloat16",
        "training.attention_kernel=matmul",
        "training.averaging={kind: last, count: 2}",
        "training.schedule={kind: inverse_sqrt, learning_rate: 1.0e-2, warmup_steps: 20}",
    )
    whole, parted = tmp_path / "whole", tmp_path / "parted"
    assert run.train(tiny_config(*overrides), whole, quietly).finished
    assert run.train(tiny_config(*overrides, "training.max_updates=37"), parted, quietly).finished
    outcome = run.train(tiny_config(*overrides), parted, quietly)
    assert outcome.finished and outcome.cursor.update == 60
    states = [load_checkpoint(latest_checkpoint(one))["model"] for one in (whole, parted)]
    torch.testing.assert_close(states[0], states[1], rtol=0, atol=0)


def test_a_killed_run_goes_on_from_its_last_checkpoint_and_ends_bit_equal(tmp_path, tiny_config, uninterrupted):
    folder = begin_alike(uninterrupted, tmp_path / "killed")
    process = start_training(tiny_config(*OVERRIDES, EVERY_UPDATE), folder)
    wait_for(process, lambda: newest_update(folder) > 26)  # a validation lies behind it
    process.kill()
    process.communicate()
    assert load_checkpoint(latest_checkpoint(folder))["cursor"]["update"] < 60
    assert run.train(tiny_config(*OVERRIDES), folder, quietly).finished
    assert_bit_equal(folder, uninterrupted)
    assert events(folder) == events(uninterrupted)


def test_the_same_seed_and_threads_give_the_same_weights_twice(tmp_path, tiny_config, uninterrupted):
    again = begin_alike(uninterrupted, tmp_path / "again")
    assert run.train(tiny_config(*OVERRIDES), again, quietly).finished
    assert_bit_equal(again, uninterrupted)
    assert events(again) == events(uninterrupted)
    assert (again / "tokenizer.json").read_bytes() == (uninterrupted / "tokenizer.json").read_bytes()


def test_another_seed_gives_other_weights_from_the_same_text(tmp_path, tiny_config, uninterrupted):
    folder = begin_alike(uninterrupted, tmp_path / "seed-2")
    shutil.copy(uninterrupted / "tokenizer.json", folder)
    shutil.copytree(uninterrupted / "data", folder / "data")
    record = Record.read(folder)
    config = record.config.model_copy(update={"seed": 2})
    replace(record, asked=record.asked.model_copy(update={"seed": 2}), config=config).write(folder)
    run.train(tiny_config(*OVERRIDES, "seed=2", "training.max_updates=3"), folder, quietly)
    weights, others = (load_weights(one / "model.safetensors") for one in (folder, uninterrupted))
    assert not any(torch.equal(weights[name], others[name]) for name in others)


def test_a_finished_run_is_left_as_it_is(tmp_path, tiny_config, uninterrupted):
    folder = shutil.copytree(uninterrupted, tmp_path / "finished")
    outcome = run.train(tiny_config(*OVERRIDES), folder, quietly)
    assert outcome.finished and outcome.targets == 0
    assert_bit_equal(folder, uninterrupted)
    assert events(folder) == events(uninterrupted)


def test_a_higher_budget_goes_on_from_the_end(tmp_path, tiny_config, uninterrupted):
    folder = shutil.copytree(uninterrupted, tmp_path / "longer")
    outcome = run.train(tiny_config(*OVERRIDES, "training.max_updates=65"), folder, quietly)
    assert outcome.finished and outcome.cursor.update == 65
    assert events(folder)[: len(events(uninterrupted))] == events(uninterrupted)
    assert events(folder)[-1]["update"] == 65


def test_training_on_a_text_stops_in_any_epoch_and_ends_bit_equal(tmp_path, tiny_text_config, trained_on_text):
    whole = trained_on_text(*TEXT_OVERRIDES).folder
    assert len({event["epoch"] for event in events(whole) if event["event"] == "train"}) > 2
    folder = tmp_path / "in-parts"
    for updates in (1, 17, 41, 60):
        outcome = run.train(tiny_text_config(*TEXT_OVERRIDES, f"training.max_updates={updates}"), folder, quietly)
        assert outcome.cursor.update == updates
    states = [load_checkpoint(latest_checkpoint(one)) for one in (folder, whole)]
    for part in ("model", "optimizers", "average"):
        assert same(states[0][part], states[1][part]), part


CARRIED_OVERRIDES = (
    "model={kind: recurrent, embedding_size: 16, hidden_size: 24, num_layers: 2, max_length: 16}",
    "model.dropout=0.3",
    "training.carry_state=true",
    "training.max_updates=60",
    "training.accumulate=2",
    "training.batch_tokens=256",
    "training.validate_every=25",
    "training.schedule={kind: constant, learning_rate: 1.0e-2, warmup_steps: 2}",
)


@pytest.fixture(scope="module")
def carried(trained_on_text):
    folder = trained_on_text(*CARRIED_OVERRIDES).folder
    epochs = {event["epoch"] for event in events(folder) if event["event"] == "train"}
    assert len(epochs) > 1 and load_checkpoint(latest_checkpoint(folder))["cursor"]["batch"] > 1
    return folder


def test_a_killed_run_that_carries_a_state_ends_bit_equal(tmp_path, tiny_text_config, carried):
    folder = begin_alike(carried, tmp_path / "killed")
    process = start_training(tiny_text_config(*CARRIED_OVERRIDES, EVERY_UPDATE), folder)
    wait_for(process, lambda: newest_update(folder) > 3)
    process.kill()
    process.communicate()
    stopped = load_checkpoint(latest_checkpoint(folder))
    assert stopped["cursor"]["batch"] > 0 and any(part.any() for part in stopped["job"]["state"])
    assert run.train(tiny_text_config(*CARRIED_OVERRIDES), folder, quietly).finished
    assert_bit_equal(folder, carried)
    assert same(*(load_checkpoint(latest_checkpoint(one))["job"] for one in (folder, carried)))
    assert events(folder) == events(carried)


def test_a_checkpoint_without_a_carried_state_is_resumed(tmp_path, tiny_text_config, trained_on_text):
    folder = shutil.copytree(trained_on_text(*TEXT_OVERRIDES).folder, tmp_path / "longer")
    assert "job" not in load_checkpoint(latest_checkpoint(folder))
    outcome = run.train(tiny_text_config(*TEXT_OVERRIDES, "training.max_updates=62"), folder, quietly)
    assert outcome.cursor.update == 62


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("model.dropout=0.2", "model.dropout was 0.3, is 0.2"),
        ("training.schedule.learning_rate=1e-3", "training.schedule.learning_rate was 0.01, is 0.001"),
        ("seed=2", "seed was 1, is 2"),
    ],
)
def test_changed_settings_are_refused_in_a_line_that_names_them(override, told, tmp_path, tiny_config, uninterrupted):
    folder = shutil.copytree(uninterrupted, tmp_path / "changed")  # the original is locked by one test at a time
    before = (folder / "metrics.jsonl").read_bytes()
    with pytest.raises(ConfigError, match=told) as refusal:
        run.train(tiny_config(*OVERRIDES, override), folder, quietly)
    assert "\n" not in str(refusal.value) and "give another --out" in str(refusal.value)
    assert (folder / "metrics.jsonl").read_bytes() == before
