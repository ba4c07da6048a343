"""A training that teaches a head alignments keeps what every training promises: it goes on bit-equal where it stopped,
two processes make the updates of one, and bfloat16 rounds what it does without changing it."""

import pytest
import torch
from torch.testing import assert_close

from regardant import run
from regardant.tasks.translation.task import Translation
from regardant.training.checkpoints import latest_checkpoint, load_checkpoint, load_weights

GUIDED = ("data.links=gold", "alignment_guidance.weight=0.5", "data.train_size=300")
RECURRENT = "model={kind: recurrent, embedding_size: 32, hidden_size: 32, dropout: 0, max_length: 48}"
"""Bahdanau's, by default."""

MODELS = {"transformer": (), "bahdanau": (RECURRENT,)}
PRECISIONS = ["float32", "bfloat16"]

AS_IT_IS = ("model.dropout=0.3", "training.schedule={kind: constant, learning_rate: 1.0e-2, warmup_steps: 2}")
"""Dropout, and a rate that does not look at the budget, which the parts of a training differ in."""

pytestmark = [pytest.mark.parametrize("model", MODELS), pytest.mark.usefixtures("shapes_unchecked")]


@pytest.fixture
def guided(tiny_config, tmp_path):
    """Train a guided model into a folder, so many updates after each other."""

    def train(folder, model, *overrides, updates=(8,)):
        for many in updates:
            asked = (*GUIDED, *MODELS[model], *overrides, f"training.max_updates={many}")
            assert run.train(tiny_config(*asked), tmp_path / folder, lambda line: None).finished
        return tmp_path / folder

    return train


def assert_bit_equal(folder, other):
    one, two = (load_checkpoint(latest_checkpoint(each)) for each in (folder, other))
    assert one["cursor"]["update"] == two["cursor"]["update"]
    assert one["model"].keys() == two["model"].keys()
    for name, value in one["model"].items():
        assert torch.equal(value, two["model"][name]), name
    weights, others = (load_weights(each / "model.safetensors") for each in (folder, other))
    assert all(torch.equal(weights[name], others[name]) for name in others)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_guided_training_that_stopped_ends_bit_equal(guided, model, precision):
    asked = (f"training.precision={precision}", *AS_IT_IS)
    assert_bit_equal(guided("whole", model, *asked), guided("parted", model, *asked, updates=(3, 6, 8)))


@pytest.mark.slow
@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_guided_training_of_two_processes_that_stopped_ends_bit_equal(guided, model, precision):
    asked = (f"training.precision={precision}", *AS_IT_IS, "training.processes=2")
    assert_bit_equal(guided("whole", model, *asked), guided("parted", model, *asked, updates=(3, 8)))


@pytest.mark.slow
@pytest.mark.parametrize("batch_tokens", [250, 40], ids=["", "of few rows"])
def test_two_processes_teach_as_one_does(guided, model, batch_tokens):
    """With an eps above the rounding, of which Adam would make steps."""
    asked = ("training.optimizer.eps=0.01", f"training.batch_tokens={batch_tokens}", "training.accumulate=2")
    one, two = (
        load_weights(guided(str(many), model, *asked, f"training.processes={many}") / "model.safetensors")
        for many in (1, 2)
    )
    assert one.keys() == two.keys()
    for name in one:
        assert_close(two[name], one[name], rtol=0, atol=1e-5, msg=name)


def test_in_bfloat16_the_alignments_loss_is_that_of_float32_but_for_rounding(tiny_config, tmp_path, model):
    torch.manual_seed(0)
    job = Translation().prepare(tiny_config(*GUIDED, *MODELS[model]), tmp_path / "run", lambda line: None).job
    batch, found = job.load(job.plan(0)[0]), []
    for narrow in (False, True):
        job.model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
            guided = job.loss(job.model, batch, torch.device("cpu"))
            plain = job.model(**batch.inputs, targets=batch.targets)
        nats = guided.total - plain.total
        nats.backward()
        found.append((nats.detach(), [p.grad.clone() for p in job.model.parameters() if p.grad is not None]))
    (nats, gradients), (rounded, narrow) = found
    assert rounded.dtype == torch.float32
    assert_close(rounded, nats, rtol=2**-8, atol=0)  # bfloat16 has eight bits
    flat, other = (torch.cat([gradient.flatten() for gradient in each]) for each in (gradients, narrow))
    assert torch.cosine_similarity(flat, other, 0) > 0.99
