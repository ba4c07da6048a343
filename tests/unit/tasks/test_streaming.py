"""Batches of a stream: all rows of a buffer once, as many batches in each process, positions in checkpoints."""

import json
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from regardant import run
from regardant.data.shards import START, Position
from regardant.errors import RunError
from regardant.tasks import load_recipe
from regardant.tasks.language_modelling.streaming import WindowsBuffer
from regardant.tasks.streaming import ShardedBatch, StreamedBatches, StreamedJob, divided
from regardant.training.checkpoints import latest_checkpoint, load_checkpoint, load_weights
from regardant.training.processes import Group
from tests.unit.conftest import ENGLISH

CONTEXT = 8


class Counted:
    """A stream of buffers of numbered tokens."""

    def __init__(self, sizes):
        self.sizes, self.at = sizes, 0

    def seek(self, position, *, rank=0, size=1):
        self.at = position.passes

    def next(self):
        self.at += 1
        tokens = np.arange(self.sizes[self.at - 1])
        return Position(self.at - 1), WindowsBuffer(tokens, context=CONTEXT, batch_tokens=32)


class Threads(Group):
    """A group of threads in the place of processes."""

    def gathered(self, numbers):
        SHARED["rows"][self.rank] = torch.tensor(numbers, dtype=torch.float64)
        SHARED["barrier"].wait()
        rows = torch.stack([SHARED["rows"][rank] for rank in range(2)])
        SHARED["barrier"].wait()
        return rows


SHARED = {"rows": {}, "barrier": threading.Barrier(2)}


def predicted(planned, batches):
    return [t for one in planned if len(one.rows) for t in batches.load(one).own.targets.flatten().tolist()]


def test_every_token_of_a_buffer_but_the_first_is_predicted_once():
    batches = StreamedBatches(Counted([100, 3, 81]), seed=1)
    for epoch, size in enumerate((100, 3, 81)):
        assert sorted(predicted(batches.plan(epoch), batches)) == list(range(1, size))


def test_a_buffer_without_a_batch_is_passed_over():
    batches = StreamedBatches(Counted([1, 0, 20]), seed=1)
    assert len(predicted(batches.plan(0), batches)) == 19
    assert batches.positions == [Position(2)]


def test_the_same_buffer_is_planned_alike_after_a_checkpoint():
    batches = StreamedBatches(Counted([100, 90, 80]), seed=1)
    batches.plan(0)
    before = predicted(batches.plan(1), batches)
    resumed = StreamedBatches(Counted([100, 90, 80]), seed=1)
    resumed.load_state_dict(batches.state_dict())
    assert predicted(resumed.plan(1), resumed) == before
    resumed.share(Group(0, 2))
    with pytest.raises(RunError, match=r"read by 1 processes, and 2 cannot .*training\.processes=1"):
        resumed.load_state_dict(batches.state_dict())


def test_processes_have_as_many_batches_and_count_them_together():
    found = {}

    def work(rank, size):
        batches = StreamedBatches(Counted([size]), seed=1)
        batches.share(Threads(rank, 2))
        planned = batches.plan(0)
        found[rank] = ([one.targets for one in planned], predicted(planned, batches), batches.positions)

    others = [threading.Thread(target=work, args=(rank, size)) for rank, size in ((0, 200), (1, 60))]
    for one in others:
        one.start()
    for one in others:
        one.join()
    (counts, mine, positions), (same, others_, same_positions) = found[0], found[1]
    assert counts == same and positions == same_positions and len(positions) == 2
    assert (sorted(mine), sorted(others_)) == (list(range(1, 200)), list(range(1, 60)))
    assert sum(counts) == 199 + 59


def test_rows_are_divided_until_there_are_as_many_batches():
    batches = divided([np.arange(5), np.array([7])], 9)
    assert len(batches) == 9 and sorted(np.concatenate(batches).tolist()) == [0, 1, 2, 3, 4, 7]


def test_a_part_of_a_process_is_its_own_rows():
    batches = StreamedBatches(Counted([100]), seed=1)
    batch = replace(batches.load(batches.plan(0)[0]), size=2)
    own = batch.own.tokens
    assert torch.equal(batch.part(1, 2).tokens, own)  # rank 1 of 2, read whole
    assert torch.equal(batch.part(1 + 2 * 1, 4).tokens, own[1::2])  # its second half


def test_a_process_without_a_row_reads_a_batch_of_the_sample_for_the_others():
    class Sample:
        def median_batch(self):
            return 3

        def load(self, planned):
            return f"batch {planned} of the sample"

    class Reader:
        def loss(self, model, batch, device):
            return batch

    job = type("Job", (StreamedJob, Reader), {"batches": Sample()})()
    assert job.loss(None, "own rows", None) == "own rows"
    assert job.loss(None, ShardedBatch(None, 5, 2), None) == "batch 3 of the sample"


def write_shards(folder, sizes):
    words = ENGLISH.split()
    random = np.random.default_rng(1)
    for shard, size in enumerate(sizes):
        lines = (" ".join(random.choice(words, 6)) + "\n" for _ in range(size))
        (folder / f"{shard}.txt").write_text("".join(lines))


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    """A language model on six shards of lines."""
    folder = tmp_path_factory.mktemp("stream")
    write_shards(folder, [300] * 6)
    return {
        "task": "language_modelling",
        "data": {"kind": "stream", "shards": f"{folder}/*.txt", "sample_rows": 400, "buffer_rows": 300},
        "tokenizer": {"kind": "code", "vocab_size": 300},
        "model": {"d_model": 16, "num_heads": 2, "d_ff": 32, "num_layers": 1, "max_length": 16, "dropout": 0.1},
        "training": {
            "max_updates": 40,
            "batch_tokens": 256,
            "validate_every": 20,
            "precision": "float32",
            "attention_kernel": "sdpa",
            "processes": 1,
            "schedule": {"kind": "constant", "learning_rate": 1e-2, "warmup_steps": 2},
        },
    }


def train(recipe, folder, **training):
    config = load_recipe({**recipe, "training": {**recipe["training"], **training}})
    return run.train(config, folder, lambda line: None)


@pytest.mark.usefixtures("shapes_unchecked")
def test_a_run_on_a_stream_that_is_resumed_in_a_later_buffer_ends_bit_equal(recipe, tmp_path):
    train(recipe, tmp_path / "whole")
    train(recipe, tmp_path / "parts", max_updates=20)
    state = load_checkpoint(latest_checkpoint(tmp_path / "parts"))
    assert state["cursor"]["epoch"] >= 1 and state["job"]["positions"] != [json.dumps(START)]
    train(recipe, tmp_path / "parts")
    whole, parts = (load_weights(tmp_path / name / "model.safetensors") for name in ("whole", "parts"))
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


@pytest.mark.slow
@pytest.mark.usefixtures("shapes_unchecked")
def test_two_processes_train_on_shards_of_their_own_and_resume(recipe, tmp_path):
    train(recipe, tmp_path / "run", processes=2, max_updates=20)
    state = load_checkpoint(latest_checkpoint(tmp_path / "run"))
    assert len(set(state["job"]["positions"])) == 2 or state["cursor"]["epoch"] == 0
    assert train(recipe, tmp_path / "run", processes=2).cursor.update == 40


@pytest.mark.slow
@pytest.mark.usefixtures("shapes_unchecked")
def test_processes_that_average_gradients_train_on_unequal_shards(recipe, tmp_path):
    write_shards(tmp_path, [300] * 5 + [302])
    data = {**recipe["data"], "shards": f"{tmp_path}/*.txt"}
    outcome = train({**recipe, "data": data}, tmp_path / "run", processes=2, strategy="ddp", max_updates=160)
    assert outcome.cursor.update == 160


def test_a_budget_in_passes_is_refused(recipe):
    with pytest.raises(Exception, match="length of a stream is not known"):
        load_recipe({**recipe, "training": {**recipe["training"], "max_epochs": 3}})


def test_a_run_whose_shards_have_changed_is_not_resumed(recipe, tmp_path):
    folder = tmp_path / "shards"
    shutil.copytree(Path(recipe["data"]["shards"]).parent, folder)
    own = {**recipe, "data": {**recipe["data"], "shards": str(folder)}}
    train(own, tmp_path / "run", max_updates=10)
    (folder / "6.txt").write_text("one more\n")
    with pytest.raises(RunError, match="the data is not what"):
        train(own, tmp_path / "run", max_updates=20)
