"""Batches of a stream: all rows of a buffer once, as many batches in each process, positions in checkpoints."""

import json
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from regardant import run
from regardant.data.batching import Arrays, pad
from regardant.data.shards import START, Position
from regardant.data.tokenizers import Tokenizers
from regardant.errors import RunError
from regardant.tasks import load_recipe, task_named
from regardant.tasks.language_modelling.streaming import WindowsBuffer
from regardant.tasks.streaming import ShardedBatch, StreamedBatches, StreamedJob, divided
from regardant.tasks.translation.learn.streaming import PairsBuffer
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
    """A group of two threads in the place of processes."""

    def __init__(self, rank, rows, barrier):
        super().__init__(rank, 2)
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "barrier", barrier)

    def gathered(self, numbers):
        self.rows[self.rank] = torch.tensor(numbers, dtype=torch.float64)
        self.barrier.wait()
        rows = torch.stack([self.rows[rank] for rank in range(2)])
        self.barrier.wait()
        return rows


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
    rows, barrier = {}, threading.Barrier(2, timeout=20)  # a thread that fails ends the wait of the other

    def work(rank, size):
        batches = StreamedBatches(Counted([size]), seed=1)
        batches.share(Threads(rank, rows, barrier))
        planned = batches.plan(0)
        return [one.targets for one in planned], predicted(planned, batches), batches.positions

    with ThreadPoolExecutor(2) as pool:
        (counts, mine, positions), (same, others, same_positions) = pool.map(work, (0, 1), (200, 60))
    assert counts == same and positions == same_positions and len(positions) == 2
    assert (sorted(mine), sorted(others)) == (list(range(1, 200)), list(range(1, 60)))
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


@pytest.mark.parametrize("named", [False, True], ids=["by share", "by name"])
def test_no_held_out_document_is_trained_on(recipe, tmp_path, named):
    shards = Path(recipe["data"]["shards"])
    data = {**recipe["data"], "validation_share": 0.1, "test_share": 0.1, "sample_rows": 2000}
    if named:
        data["validation"] = str(shards.parent / "5.txt")
    config = load_recipe({**recipe, "data": data})
    job = task_named("language_modelling").prepare(config, tmp_path / "run", lambda line: None).job
    documents = [line for path in sorted(shards.parent.glob("*.txt")) for line in path.read_text().splitlines()]
    held_out = {name: set(texts) for name, texts in config.data._sets().items() if name != "train"}
    assert set(held_out) == {"validation", "test"} and all(len(texts) > 100 for texts in held_out.values())
    if named:
        assert held_out["validation"] == set((shards.parent / "5.txt").read_text().splitlines())
    tokenizer, trained = Tokenizers.load(tmp_path / "run" / "tokenizer.json").target, set()
    while (read := job.stream.stream.next())[0].passes == 0:
        trained |= set(tokenizer.decode(read[1].tokens.tolist()).splitlines())
    assert trained == set(documents) - held_out["validation"] - held_out["test"]


class Ids:
    """The codec of sources that are ids, with EOS after each."""

    def lengths(self, lengths):
        return lengths + 1

    def collate(self, rows):
        return pad(rows)


def test_a_buffer_of_pairs_has_every_pair_that_fits_once_and_counts_its_targets():
    lengths = [3, 30, 5, 2, 9, 40, 4] * 5
    sources, targets = (
        Arrays.join([[np.arange(5, 5 + length, dtype=np.int32) for length in order]])
        for order in (lengths, lengths[::-1])
    )
    buffer = PairsBuffer(Ids(), sources, targets, batch_tokens=48, max_length=16)
    fits = [row for row, pair in enumerate(zip(lengths, lengths[::-1], strict=True)) if max(pair) < 16]
    assert 5 < len(fits) < len(lengths)
    for size in (1, 2):
        planned = buffer.plan(np.random.default_rng(0), size)
        assert sorted(np.concatenate(planned).tolist()) == fits
        for rows in planned:
            batch = buffer.load(rows)
            assert buffer.count(rows) == batch.count == sum(lengths[::-1][row] + 1 for row in rows)
            assert batch.targets.numel() <= 48 // size


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
