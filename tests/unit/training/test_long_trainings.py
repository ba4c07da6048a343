"""A training survives gradients that are not finite, batches that do not fit into memory, and signals at any time."""

import os
import signal
import sys

import pytest
import torch

from regardant.errors import OutOfMemory, RunError
from regardant.training.checkpoints import latest_checkpoint, load_checkpoint
from regardant.training.config import TrainingConfig
from regardant.training.engine import Trainer
from regardant.training.processes import Group, started
from regardant.training.strategies import make_fabric
from tests.unit.training.test_engine import TinyJob, assert_same_weights, events, trainer, weights_of  # noqa: F401


class SickJob(TinyJob):
    """Some batches have a loss that is not finite, by their number in the order of reading."""

    def __init__(self, *sick, **options):
        super().__init__(**options)
        self.sick = set(sick)

    def loss(self, model, batch, device):
        loss = super().loss(model, batch, device)
        return loss._replace(total=loss.total * torch.nan) if len(self.losses) - 1 in self.sick else loss


def test_an_update_whose_gradient_is_not_finite_is_left_out_and_counted(trainer):  # noqa: F811
    sick = SickJob(3)
    made = trainer(sick, max_updates=8)
    outcome = made.fit()
    assert outcome.finished and outcome.cursor.skipped == 1
    assert_same_weights(sick.weights_at_batches[4], sick.weights_at_batches[3])
    moved = [not torch.equal(*(one["head.weight"] for one in pair)) for pair in zip(*two(sick), strict=True)]
    assert moved == [True, True, True, False, True, True, True]
    steps = {float(state["step"]) for state in made.optimizers[0].state_dict()["state"].values()}
    assert steps == {7.0}
    (event,) = events(made, "train")
    assert event["skipped"] == 1 and event["loss"] is not None and event["gradient_norm"] is not None


def two(job):
    """The weights before each batch but the last, and before the one after it."""
    return job.weights_at_batches[:-1], job.weights_at_batches[1:]


def test_healthy_updates_count_nothing(trainer):  # noqa: F811
    made = trainer(TinyJob(), max_updates=20)
    made.fit()
    assert all("skipped" not in event for event in events(made, "train"))


def test_many_such_updates_in_a_row_stop_training_and_keep_the_batch(trainer):  # noqa: F811
    job = TinyJob()
    with torch.no_grad():
        job.model.head.weight[7] = torch.inf
    made = trainer(job, max_updates=40, checkpoint_minutes=1e-9)
    with pytest.raises(
        RunError, match=r"10 updates in a row were not finite, .*in .*not-finite-00000010.pt: "
    ) as error:
        made.fit()
    assert "\n" not in str(error.value)
    assert not list(made.run.glob("checkpoints/*"))
    kept = load_checkpoint(made.run / "not-finite-00000010.pt")
    assert (kept["update"], kept["epoch"]) == (10, 1)
    (batch,) = kept["batches"]
    expected = job.load(job.seen[9])
    assert torch.equal(batch["source"], expected.source)
    assert_same_weights(kept["model"], weights_of(job.model))


def test_five_such_updates_in_a_row_are_too_many_whatever_the_weights_are(trainer):  # noqa: F811
    """The newest checkpoint is of the last update that was made, since a skipped one may be due to the weights."""
    made = trainer(SickJob(*range(5, 40)), max_updates=40, checkpoint_minutes=1e-9)
    with pytest.raises(RunError, match="the gradients of 5 updates in a row were not finite, the last at update 10"):
        made.fit()
    assert latest_checkpoint(made.run).name == "update-00000005.pt"


def test_such_updates_with_others_in_between_do_not_stop_training(trainer):  # noqa: F811
    job = SickJob(*(number for number in range(40) if number % 5))
    outcome = trainer(job, max_updates=40).fit()
    assert outcome.finished and outcome.cursor.skipped == 32


class LargeJob(TinyJob):
    """No more than `most` rows fit into memory; the last rows of a batch less often than the others."""

    most = 1

    def loss(self, model, batch, device):
        if len(batch.source) > self.most:
            raise RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory")
        return super().loss(model, batch, device)


def test_a_batch_that_does_not_fit_is_read_in_parts_with_the_same_gradients(trainer, capsys):  # noqa: F811
    """The norm of the first gradient, and the weights after some updates, whose sums come in another order."""
    whole, parts = TinyJob(), LargeJob()
    made = [trainer(job, name, max_updates=4, accumulate=2) for job, name in ((whole, "whole"), (parts, "parts"))]
    for one in made:
        assert one.fit().finished
    assert made[1].cursor.parts == 4  # of batches of four rows, three and two
    assert_same_weights(weights_of(parts.model), weights_of(whole.model), tolerance=2e-5)
    norms, losses = ([events(one, "train")[0][name] for one in made] for name in ("gradient_norm", "loss"))
    assert norms[0] == pytest.approx(norms[1], rel=1e-4) and losses[0] == pytest.approx(losses[1], rel=1e-5)
    told = [line for line in capsys.readouterr().err.splitlines() if "did not fit into memory" in line]
    assert told == ["update 1 did not fit into memory: from now on a batch is read in 4 parts, with the same gradients"]


def test_what_a_failed_attempt_has_added_is_forgotten(trainer):  # noqa: F811
    """The first micro-batch fits and the second does not, so the first one's gradients are there twice."""
    job = LargeJob()
    job.most = 2
    job.batches = [job.batches[2], job.batches[0]]  # two rows, then four
    whole = TinyJob()
    whole.batches = [whole.batches[2], whole.batches[0]]
    for one, name in ((job, "parts"), (whole, "whole")):
        trainer(one, name, max_updates=1, accumulate=2).fit()
    assert_same_weights(weights_of(job.model), weights_of(whole.model), tolerance=1e-6)


def test_a_run_that_reads_batches_in_parts_goes_on_so(trainer):  # noqa: F811
    trainer(LargeJob(), max_updates=2).fit()
    resumed = trainer(TinyJob(), max_updates=3)
    assert resumed.cursor.parts == 4


class Beside(Group):
    """The group of a process beside one that reads its batches in four parts, after the second update."""

    def __init__(self, strategy="sum"):
        super().__init__(size=2, strategy=strategy)
        object.__setattr__(self, "shared", [])

    def agree(self, *numbers):
        return list(numbers)

    def add_up(self, parameters, *sums):
        pass

    def gathered(self, numbers):
        self.shared.append(numbers)
        return torch.tensor([numbers, [1.0 if len(self.shared) < 2 else 4.0]])


def test_all_processes_read_batches_in_as_many_parts_as_the_one_with_least_memory(trainer):  # noqa: F811
    """Those of rank 0 are in the checkpoint, and masks of dropout are drawn for each part."""
    made = trainer(TinyJob(), group=Beside(), max_updates=3)
    made.fit()
    assert made.group.shared == [[1], [1], [4]]
    assert load_checkpoint(latest_checkpoint(made.run))["cursor"]["parts"] == 4
    resumed = trainer(TinyJob(), group=Beside("ddp"), max_updates=3)
    assert resumed.cursor.parts == 4
    resumed.update()
    assert resumed.group.shared == [], "there a batch that does not fit ends the training"


FOLLOWER = """import sys
from pathlib import Path
from regardant.training.processes import joined
from tests.unit.training.test_long_trainings import LargeJob, trainer_of
with joined() as group:
    made = trainer_of(LargeJob(), Path(sys.argv[1]), group)
    made.follow()
    assert made.cursor.parts == 2, made.cursor.parts
"""


def trainer_of(job, run, group):
    """The trainer of one of two processes."""
    config, fabric = TrainingConfig(max_updates=3), make_fabric("float32", group)
    return Trainer(job, config, run, fabric=fabric, dropout_key=job.model.dropout_key, seed=1, group=group)


@pytest.mark.slow
def test_rank_0_saves_the_parts_of_a_process_that_ran_out_of_memory(tmp_path):
    with started(2, [sys.executable, "-c", FOLLOWER, str(tmp_path / "follower")]) as group:
        made = trainer_of(TinyJob(), tmp_path / "run", group)
        made.fit()
    assert load_checkpoint(latest_checkpoint(made.run))["cursor"]["parts"] == 2


@pytest.mark.parametrize("divisible", [True, False])
def test_a_batch_that_cannot_be_divided_is_one_line(trainer, divisible):  # noqa: F811
    job = LargeJob()
    job.most, job.divisible = 0, divisible
    with pytest.raises(OutOfMemory, match=r"a batch of update 1 does not fit .*lower training\.batch_tokens"):
        trainer(job, max_updates=2).fit()


class SignalledJob(TinyJob):
    """A signal comes in a validation, by its number."""

    def __init__(self, at=None, **options):
        super().__init__(validate_every=3, losses=(3.0, 2.0, 1.0), **options)
        self.at = at

    def validate(self, model, device):
        found = super().validate(model, device)
        if len(self.validated) == self.at:
            self.at = None
            os.kill(os.getpid(), signal.SIGTERM)
            raise AssertionError("the validation goes on")
        return found


@pytest.mark.parametrize("averaging", [{"kind": "ema"}, {"kind": "last", "count": 2}], ids=["ema", "last"])
def test_a_signal_in_a_validation_saves_at_once_and_the_resumed_run_ends_bit_equal(trainer, averaging):  # noqa: F811
    whole = trainer(SignalledJob(), "whole", max_updates=10, averaging=averaging)
    whole.fit()
    stopped = trainer(SignalledJob(at=2), "parts", max_updates=10, averaging=averaging)
    outcome = stopped.fit()
    assert not outcome.finished and outcome.cursor.update == 6 and outcome.cursor.validated_at == 3
    assert [path.name for path in stopped.run.glob("checkpoints/*")] == ["update-00000006.pt"]
    job = SignalledJob()
    job.found["loss"] = (2.0, 1.0)
    resumed = trainer(job, "parts", max_updates=10, averaging=averaging)
    assert resumed.fit().finished
    assert_same_weights(weights_of(job.model), weights_of(whole.job.model))
    files = [(one.run / "model.safetensors").read_bytes() for one in (whole, resumed)]
    assert files[0] == files[1]
    assert [event["update"] for event in events(resumed, "validation")] == [3, 6, 9, 10]
    assert resumed.cursor.best_update == whole.cursor.best_update == 9


def test_a_signal_in_the_last_validation_is_no_end(trainer):  # noqa: F811
    job = SignalledJob(at=1)
    job.validate_every = 1000
    assert not trainer(job, max_updates=4).fit().finished
    again = SignalledJob()
    again.validate_every = 1000
    assert trainer(again, max_updates=4).fit().finished
    assert len(again.validated) == 1 and not again.losses
