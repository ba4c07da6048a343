"""A spike of the loss: training returns to the weights before it, in every process, and can be resumed at any time."""

import copy
from types import SimpleNamespace

import pytest
import torch

from regardant.errors import RunError
from regardant.training import calm
from regardant.training.calm import MOST_RETURNS, act_after
from regardant.training.cursor import Cursor
from regardant.training.processes import Act, Group
from tests.unit.training.test_engine import TinyJob, assert_same_weights, events, trainer, weights_of  # noqa: F401

SETTINGS = {"spike_factor": 2.0, "averaging": {"kind": "ema"}, "clip_norm": 0}


class SpikingJob(TinyJob):
    """Some updates, by their number, have a loss of many times the usual one."""

    def __init__(self, *spikes, **options):
        super().__init__(**options)
        self.spikes = set(spikes)

    def loss(self, model, batch, device):
        loss = super().loss(model, batch, device)
        if model.dropout_key.update in self.spikes:
            loss = loss._replace(total=50 * loss.total, plain=50 * loss.plain)
        return loss


def test_a_spike_returns_to_the_weights_of_the_last_calm_report(trainer, capsys):  # noqa: F811
    job = SpikingJob(17)
    made = trainer(job, max_updates=30, **SETTINGS)
    outcome = made.fit()
    assert outcome.finished and outcome.cursor.update == 30
    before = job.weights_at_batches
    assert_same_weights(before[20], before[10])  # after update 20 as after update 10
    assert not torch.equal(before[20]["head.weight"], before[19]["head.weight"])
    assert job.seen[:20] != job.seen[10:30] and len(job.seen) == 30, "the batches since are left out"
    steps = {float(state["step"]) for state in made.optimizers[0].state_dict()["state"].values()}
    assert steps == {20.0}, "the optimizer returns, too"
    told = [line for line in capsys.readouterr().err.splitlines() if "returned to the weights" in line]
    assert len(told) == 1 and told[0].startswith("update 20: the loss is ")


def test_the_average_returns_too(trainer):  # noqa: F811
    job = SpikingJob(17)
    made = trainer(job, max_updates=20, **SETTINGS)
    made.fit()
    usual = trainer(SpikingJob(), "usual", max_updates=10, **SETTINGS)
    usual.fit()
    for mine, other in zip(made.average.held(), usual.average.held(), strict=True):
        assert torch.equal(mine, other)


def tensors_in(state):
    """The tensors in nested containers."""
    if isinstance(state, torch.Tensor):
        return [state]
    parts = state.values() if isinstance(state, dict) else state if isinstance(state, list | tuple) else ()
    return [tensor for part in parts for tensor in tensors_in(part)]


@pytest.mark.parametrize("kind", ["adamw", "muon"])
@pytest.mark.parametrize("averaging", [{"kind": "ema"}, {"kind": "last", "count": 2}, {"kind": "none"}])
def test_a_snapshot_stays_as_it_is_where_training_goes_on_from_it(trainer, averaging, kind):  # noqa: F811
    made = trainer(TinyJob(), max_updates=40, averaging=averaging, optimizer={"kind": kind})
    made.update()
    made.average.snapshot(made.job.model)
    made.calm.keep()
    kept = copy.deepcopy(made.calm.snapshot)
    for _ in range(2):
        made.update()
        made.average.snapshot(made.job.model)
        made.calm.restore()
        state = made.state()
        for name in ("model", "optimizers", "average"):
            for found in (state, made.calm.snapshot):
                assert all(map(torch.equal, tensors_in(found[name]), tensors_in(kept[name])))
    assert made.calm.nbytes() == sum(one.nbytes for one in tensors_in(kept)) - tied_bytes(made.job.model)


def tied_bytes(model):
    """The bytes of tensors of a state dict that are another one's, too."""
    own = model.state_dict().values()
    return sum(one.nbytes for one in own) - sum({one.data_ptr(): one.nbytes for one in own}.values())


def test_a_return_copies_the_state_of_the_optimizers_alone(trainer, monkeypatch):  # noqa: F811
    """Anything else would take the memory of a third state for the moment."""
    made = trainer(TinyJob(), max_updates=40, **SETTINGS)
    made.update()
    made.calm.keep()
    copied = []

    def deepcopy(state):
        copied.extend(tensors_in(state))
        return copy.deepcopy(state)

    monkeypatch.setattr(calm, "copy", SimpleNamespace(deepcopy=deepcopy))
    made.calm.restore()
    assert len(copied) == len(tensors_in(made.calm.snapshot["optimizers"])) > 0


def test_without_the_setting_a_spike_changes_nothing(trainer, capsys):  # noqa: F811
    made = trainer(SpikingJob(17), max_updates=30)
    assert made.fit().finished and "calm" not in made.state()
    assert "returned to the weights" not in capsys.readouterr().err


@pytest.mark.parametrize("stop", [13, 20, 24])
def test_a_run_with_a_spike_is_resumed_bit_equal(trainer, stop, monkeypatch, capsys):  # noqa: F811
    whole = trainer(SpikingJob(17), "whole", max_updates=40, **SETTINGS)
    whole.fit()
    first = trainer(SpikingJob(17), "parts", max_updates=40, **SETTINGS)
    monkeypatch.setattr(first, "_is_over", lambda: setattr(first, "stop_asked", first.cursor.update == stop))
    assert not first.fit().finished
    second = trainer(SpikingJob(17), "parts", max_updates=40, **SETTINGS)
    assert second.cursor.update in (stop, stop + 1) and second.fit().finished
    assert capsys.readouterr().err.count("returned to the weights") == 2, "one of each training"
    assert_same_weights(weights_of(second.job.model), weights_of(whole.job.model))


def test_a_loss_that_stays_high_stops_training(trainer):  # noqa: F811
    with pytest.raises(
        RunError, match=f"even after {MOST_RETURNS} returns to earlier weights: train anew with a lower"
    ):
        trainer(SpikingJob(*range(11, 100)), max_updates=100, **SETTINGS).fit()


def test_the_usual_loss_follows_calm_reports_alone():
    cursor = Cursor()
    assert act_after(4.0, 2.0, cursor) == Act.KEEP and cursor.usual_loss == 4.0
    assert act_after(3.0, 2.0, cursor) == Act.KEEP and cursor.usual_loss == pytest.approx(3.9)
    assert act_after(7.9, 2.0, cursor) == Act.RETURN and cursor.usual_loss == pytest.approx(3.9)
    assert act_after(7.7, 2.0, cursor) == Act.KEEP and cursor.returns_in_a_row == 0
    assert act_after(float("nan"), 2.0, cursor) is None


class Told(Group):
    """The group of a follower, whose leader decides these acts."""

    def __init__(self, *acts):
        super().__init__(rank=1, size=2)
        object.__setattr__(self, "acts", list(acts))

    def agree(self, *numbers):
        return [float(self.acts.pop(0)), 0.0] if self.acts else [float(Act.STOP), 0.0]

    def add_up(self, parameters, *sums):
        pass

    def gathered(self, numbers):
        return torch.tensor([numbers, numbers])


def test_a_follower_returns_with_its_leader(trainer):  # noqa: F811
    job = TinyJob()
    acts = (Act.UPDATE, Act.KEEP, Act.UPDATE, Act.UPDATE, Act.UPDATE, Act.RETURN, Act.UPDATE)
    trainer(job, group=Told(*acts), max_updates=40).follow()
    before = job.weights_at_batches
    assert_same_weights(before[4], before[1])
    assert not torch.equal(before[3]["head.weight"], before[1]["head.weight"])
