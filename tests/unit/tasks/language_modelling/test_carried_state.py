"""A state is carried from batch to batch, whatever divides the batches."""

import pytest
import torch

from regardant import run
from regardant.tasks.language_modelling.task import prepare_training
from regardant.training.checkpoints import latest_checkpoint, load_checkpoint
from regardant.training.job import CarriesState

CPU = torch.device("cpu")
RECURRENT = (
    "model={kind: recurrent, embedding_size: 16, hidden_size: 24, num_layers: 2, max_length: 16}",
    "training.carry_state=true",
)


@pytest.fixture
def jobs(tiny_text_config, tmp_path):
    """Equal jobs, as many as asked for."""

    def make(count, *overrides):
        config = tiny_text_config(*RECURRENT, *overrides)
        return [prepare_training(config, tmp_path / "run", lambda line: None).job for _ in range(count)]

    return make


def losses(job, planned):
    return [job.loss(job.model, job.load(one), CPU) for one in planned]


def assert_equal(states, others):
    torch.testing.assert_close(tuple(states), tuple(others), rtol=0, atol=0)


def test_a_batch_begins_with_the_state_that_the_one_before_it_left(jobs):
    (job,) = jobs(1)
    planned = job.plan(0)[:3]
    streams = torch.cat([job.load(one).tokens[:, :-1] for one in planned], 1)
    _, *found = losses(job, planned)
    with torch.no_grad():
        vectors = job.model.vectors(text=streams)
    torch.testing.assert_close(job.state, vectors.state, rtol=1e-5, atol=1e-6)
    assert found[-1].total.requires_grad and not any(part.requires_grad for part in job.state)


def test_the_state_is_reset_at_the_start_of_an_epoch(jobs):
    job, fresh = jobs(2)
    losses(job, job.plan(0)[:3])
    (again,), (first,) = losses(job, job.plan(1)[:1]), losses(fresh, fresh.plan(1)[:1])
    assert torch.equal(again.total, first.total)
    assert_equal(job.state, fresh.state)


def test_a_resumed_job_goes_on_from_the_state(jobs):
    job, resumed = jobs(2)
    losses(job, job.plan(0)[:2])
    resumed.load_state_dict(job.state_dict())
    (after,), (expected,) = losses(resumed, job.plan(0)[2:3]), losses(job, job.plan(0)[2:3])
    assert torch.equal(after.total, expected.total)
    (job_without,) = jobs(1)
    assert not torch.equal(losses(job_without, job.plan(0)[2:3])[0].total, expected.total)


@pytest.mark.parametrize("streams", [1, 5])
@pytest.mark.parametrize("size", [2, 3])
def test_processes_make_one_state_of_their_rows(jobs, streams, size):
    alone, *ranks = jobs(1 + size, f"training.batch_tokens={16 * streams}")
    for planned in alone.plan(0)[:3]:
        expected = losses(alone, [planned])[0].total
        parts = [alone.load(planned).part(rank, size) for rank in range(size)]
        total = sum(job.loss(job.model, part, CPU).total for job, part in zip(ranks, parts, strict=True) if part.count)
        torch.testing.assert_close(total, expected)
        own = [job.own_state(rank, size) for rank, job in enumerate(ranks)]
        for job in ranks:
            job.load_state_dict({"state": [sum(parts) for parts in zip(*own, strict=True)]})
            torch.testing.assert_close(job.state, alone.state, rtol=1e-5, atol=1e-6)


def test_a_transformer_s_job_has_no_state(tiny_text_config, tmp_path, jobs):
    job = prepare_training(tiny_text_config(), tmp_path / "transformer", lambda line: None).job
    assert not isinstance(job, CarriesState)
    assert isinstance(jobs(1)[0], CarriesState)


SHORT = (*RECURRENT, "training.max_updates=12", "training.averaging={kind: none}", "training.validate_every=100")


@pytest.mark.slow
def test_two_processes_that_stop_and_resume_train_as_one_that_does_not(tiny_text_config, tmp_path):
    states = {}
    for name, processes, stops in (("one", 1, (12,)), ("two", 2, (5, 12))):
        for stop in stops:
            config = tiny_text_config(
                *SHORT,
                f"training.processes={processes}",
                f"training.max_updates={stop}",
                "training.schedule={kind: constant, learning_rate: 1.0e-2, warmup_steps: 2}",
            )
            run.train(config, tmp_path / name, lambda line: None)
        states[name] = load_checkpoint(latest_checkpoint(tmp_path / name))
    for part in ("model", "job"):
        torch.testing.assert_close(states["two"][part], states["one"][part], rtol=1e-4, atol=1e-5)
