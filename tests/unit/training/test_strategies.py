"""Whole trainings of several processes, by each strategy, against one process with the same batches."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import yaml
from torch.testing import assert_close

from regardant import run
from regardant.errors import ConfigError
from regardant.run import Record
from regardant.training import fit
from regardant.training.checkpoints import latest_checkpoint, load_checkpoint, load_weights
from tests.unit.training.test_processes import is_running, wait_until

UPDATES = 50
ALIKE = (
    f"training.max_updates={UPDATES}",
    "training.validate_every=50",
    "training.averaging={kind: ema, decay: 0.9}",
    "training.schedule={kind: constant, learning_rate: 1.0e-3, warmup_steps: 2}",
    "training.optimizer.eps=1.0e-3",  # above the rounding, of which Adam would make steps
    "training.precision=float32",
    "training.attention_kernel=sdpa",
    "model.dropout=0",
)
FEW_ROWS = ("training.batch_tokens=20", "training.accumulate=3")
"""Batches of a few rows, some of fewer than there are processes."""


def silent(line):
    pass


@pytest.fixture
def every_step(monkeypatch):
    """Every update is a line of metrics."""
    monkeypatch.setattr(fit, "LOG_EVERY", 1)


def losses(folder):
    events = map(json.loads, (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    return [event["loss"] for event in events if event["event"] == "train"]


def trained(config, folder):
    run.train(config, folder, silent)
    return load_weights(folder / "model.safetensors")


@pytest.fixture(params=["translation", "language_modelling", "classification"])
def configured(request, tiny_config, tiny_text_config, tiny_labels_config):
    """The configuration of a task, with overrides."""
    build = {
        "translation": tiny_config,
        "language_modelling": tiny_text_config,
        "classification": tiny_labels_config,
    }[request.param]
    return lambda *given: build(*ALIKE, *given)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_the_curve_of_two_processes_is_that_of_one(configured, strategy, tmp_path, every_step):
    one = trained(configured(*FEW_ROWS), tmp_path / "one")
    two = trained(configured(*FEW_ROWS, "training.processes=2", f"training.strategy={strategy}"), tmp_path / "two")
    assert Record.read(tmp_path / "two").decided.strategy == strategy
    before, after = losses(tmp_path / "one"), losses(tmp_path / "two")
    assert len(before) == UPDATES
    assert after == pytest.approx(before, rel=1e-6, abs=0)
    assert one.keys() == two.keys()
    for name in one:
        assert_close(two[name], one[name], rtol=0, atol=1e-5, msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("recomputed", [False, True])
def test_shards_have_the_masks_and_gradients_of_replicas(tiny_config, tmp_path, every_step, recomputed):
    """With dropout, whose masks each process draws for its rows, and with sublayers that are computed again."""
    given = (*ALIKE[:-1], "model.dropout=0.3", "training.processes=2", "training.max_updates=10")
    again = f"model.activation_checkpointing={str(recomputed).lower()}"
    for strategy in ("sum", "fsdp"):
        run.train(tiny_config(*given, again, f"training.strategy={strategy}"), tmp_path / strategy, silent)
    assert losses(tmp_path / "fsdp") == pytest.approx(losses(tmp_path / "sum"), rel=1e-6)


HALF, WHOLE = "training.max_updates=6", "training.max_updates=12"
WAYS = {"one": (1, "auto"), "two, sum": (2, "sum"), "two, sharded": (2, "fsdp"), "three, sharded": (3, "fsdp")}


def in_way(name):
    count, strategy = WAYS[name]
    return f"training.processes={count}", f"training.strategy={strategy}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("two, sharded", "one"),
        ("two, sharded", "three, sharded"),
        ("three, sharded", "two, sum"),
        ("one", "two, sharded"),
        ("two, sum", "one"),
    ],
)
def test_a_training_resumes_on_another_number_of_processes_and_by_another_strategy(
    tiny_config, made_once, tmp_path, first, second
):
    def asked(*more):
        return tiny_config(*ALIKE, *FEW_ROWS, *more)

    at_once = made_once("at-once", lambda folder: run.train(asked(WHOLE), folder / "run", silent)) / "run"
    expected = load_weights(at_once / "model.safetensors")
    folder = tmp_path / "run"
    run.train(asked(HALF, *in_way(first)), folder, silent)
    assert latest_checkpoint(folder).is_dir() == ("sharded" in first)
    found = trained(asked(WHOLE, *in_way(second)), folder)
    assert latest_checkpoint(folder).is_dir() == ("sharded" in second)
    for name in expected:
        assert_close(found[name], expected[name], rtol=0, atol=1e-5, msg=name)


@pytest.mark.slow
def test_shards_that_were_interrupted_end_bit_equal_to_shards_that_were_not(tiny_text_config, tmp_path):
    asked = (*ALIKE[:-1], "model.dropout=0.3", *in_way("two, sharded"))
    for name, parts in (("at once", [WHOLE]), ("in parts", [HALF, WHOLE])):
        for many in parts:
            run.train(tiny_text_config(*asked, many), tmp_path / name, silent)
    at_once, in_parts = (load_weights(tmp_path / name / "model.safetensors") for name in ("at once", "in parts"))
    assert all(torch.equal(at_once[name], in_parts[name]) for name in at_once)
    states = [load_checkpoint(latest_checkpoint(tmp_path / name)) for name in ("at once", "in parts")]
    moments = [state["optimizers"][0]["state"][0]["exp_avg"] for state in states]
    assert torch.equal(*moments) and moments[0].abs().max() > 0


def torchrun(config, folder, count, *more):
    """`regardant train` by torchrun, as a process of its own."""
    recipe = folder.with_suffix(".yaml")
    recipe.write_text(yaml.safe_dump(config.model_dump(mode="json", by_alias=True)))
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(count), *more]
    command = [*launcher, "-m", "regardant", "train", str(recipe), "--out", str(folder)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_torchrun_starts_the_processes_of_a_training(tiny_config, tmp_path):
    asked = tiny_config(*ALIKE, "training.max_updates=12", "training.strategy=fsdp")
    expected = trained(asked, tmp_path / "one")
    with torchrun(asked, tmp_path / "two", 2, "--standalone") as launcher:
        out, told = launcher.communicate(timeout=300)
    assert launcher.returncode == 0, told
    assert (out + told).count("use it:") == 1, "one process speaks"
    decided = Record.read(tmp_path / "two").decided
    assert (decided.processes, decided.strategy) == (2, "fsdp")
    found = load_weights(tmp_path / "two" / "model.safetensors")
    for name in expected:
        assert_close(found[name], expected[name], rtol=0, atol=1e-5, msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_a_training_of_torchrun_ends_with_the_number_of_a_rank_that_was_killed(tiny_config, tmp_path, strategy):
    asked = tiny_config(*ALIKE, "training.max_updates=1000000", f"training.strategy={strategy}")
    with torchrun(asked, tmp_path / "run", 2, "--standalone") as launcher:
        try:
            events = tmp_path / "run" / "metrics.jsonl"
            wait_until(lambda: launcher.poll() is not None or (events.is_file() and events.stat().st_size), 300)
            children = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()
            ranks = {rank_of(child): int(child) for child in children}
            start = time.monotonic()
            os.kill(ranks["1"], signal.SIGKILL)
            _, told = launcher.communicate(timeout=60)
        finally:
            launcher.kill()
    assert time.monotonic() - start < 60
    assert launcher.returncode != 0
    # Rank 0 may be stopped by torchrun before it can tell: torchrun's own report has the number in any case.
    assert re.search(r"rank\s*: 1 \(local_rank: 1\)", told), told
    assert not any(is_running(process) for process in ranks.values())


def rank_of(process):
    variables = Path(f"/proc/{process}/environ").read_bytes().decode().split("\0")
    return dict(one.split("=", 1) for one in variables if "=" in one)["RANK"]


@pytest.mark.slow
def test_torchrun_forwards_a_signal_and_the_training_is_saved(tiny_config, tmp_path):
    asked = tiny_config(*ALIKE, "training.max_updates=1000000", "training.strategy=fsdp")
    with torchrun(asked, tmp_path / "run", 2, "--standalone") as launcher:
        try:
            events = tmp_path / "run" / "metrics.jsonl"
            wait_until(lambda: launcher.poll() is not None or (events.is_file() and events.stat().st_size), 300)
            launcher.terminate()
            _, told = launcher.communicate(timeout=60)
        finally:
            launcher.kill()
    assert "run the same command again to resume" in told
    saved = latest_checkpoint(tmp_path / "run")
    assert saved is not None and saved.is_dir()


BASE = (
    "model.preset=base",
    "model.d_model=512",
    "model.num_heads=8",
    "model.d_ff=2048",
    "model.encoder={num_layers: 6}",
    "model.decoder={num_layers: 6}",
)


@pytest.mark.slow
def test_shards_of_base_take_less_than_seven_tenths_of_the_memory_of_replicas(tiny_config, tmp_path):
    """Beside the interpreter and its libraries, which are all that TINY takes."""

    def taken(strategy):
        asked = (*ALIKE, "training.batch_tokens=100", "training.max_updates=4", f"training.strategy={strategy}")
        whole, libraries = (peaks(tiny_config(*asked, *of), tmp_path / strategy / str(len(of))) for of in (BASE, ()))
        return [peak - least for peak, least in zip(whole, libraries, strict=True)]

    shards, replicas = taken("fsdp"), taken("ddp")
    print(f"MiB of a rank: {shards} of shards, {replicas} of replicas")
    assert all(one <= 0.7 * other for one, other in zip(shards, replicas, strict=True))


def peaks(config, folder):
    """Most resident MiB of each of two processes that train, the least first."""
    folder.parent.mkdir(exist_ok=True)
    recipe = folder.with_suffix(".yaml")
    recipe.write_text(yaml.safe_dump(config.model_dump(mode="json", by_alias=True)))
    command = [sys.executable, "-m", "regardant", "train", str(recipe), "--out", str(folder)]
    command += ["--set", "training.processes=2"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as leader:
        seen: dict[int, int] = {}
        while leader.poll() is None:
            for process in (leader.pid, *children_of(leader.pid)):
                seen[process] = max(seen.get(process, 0), memory_of(process))
            time.sleep(0.02)
    assert leader.returncode == 0 and len(seen) == 2
    return sorted(peak // 1024 for peak in seen.values())


def children_of(process):
    try:
        return [int(one) for one in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


def memory_of(process):
    """The peak of a process, in KiB."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("training.optimizer.kind=muon", "muon needs whole matrices: set training.optimizer.kind=adamw, or"),
        ("training.averaging.kind=last", "the average of the last weights keeps whole models: set"),
        ("model.residual=reversible", "reversible residuals compute gradients where ddp and fsdp cannot see them: set"),
    ],
)
def test_a_model_that_cannot_be_shared_is_refused_in_a_line(tiny_config, tmp_path, given, told):
    with pytest.raises(ConfigError, match=rf"^training\.strategy: given fsdp; {told} .*"):
        run.train(tiny_config(given, "training.processes=2", "training.strategy=fsdp"), tmp_path / "run", silent)
