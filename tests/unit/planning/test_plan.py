import json
import math
import os
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from regardant import run
from regardant.attention.masks import View
from regardant.attention.scaled_dot_product import KERNELS, ScaledDotProduct, matmul
from regardant.planning import plan as planning
from regardant.planning.flops import flop_counter
from regardant.planning.plan import GATHERING, OVERHEAD, _as_in_training, plan_training
from regardant.planning.probes import Decisions
from regardant.tasks.translation.task import Translation
from regardant.training.config import TRAINING_SHARE
from regardant.training.lora import LoraConfig, adapt
from regardant.training.reporting import memory

CPU = torch.device("cpu")

JSON_KEYS = {
    "parameters",
    "memory_bytes",
    "flops_per_token",
    "tokens_per_epoch",
    "tokens_per_second",
    "seconds",
    "updates",
    "epochs",
    "unit",
    "source_padding",
    "target_padding",
    "validation_targets",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One for all plans: the text is the same."""
    return tmp_path_factory.mktemp("plan")


@pytest.fixture(scope="module")
def plan(folder, tiny_config):
    """What is prepared and planned for TINY with fields set."""

    def make(*overrides):
        prepared, _, planned = run.plan(tiny_config(*overrides), folder, lambda line: None)
        return prepared, planned

    return make


@pytest.fixture(scope="module")
def tiny_plan(plan):
    return plan()


def parameters_by_hand(vocab_size, d, f, *, final_norms):
    """One encoder and one decoder layer, all embeddings tied, positions without weights."""
    norm, attention, feed_forward = 2 * d, 4 * (d * d + d), d * f + f + f * d + d
    encoder, decoder = attention + feed_forward + 2 * norm, 2 * attention + feed_forward + 3 * norm
    return vocab_size * d + encoder + decoder + final_norms * norm


def test_parameters_are_exact_and_tied_ones_count_once(tiny_plan):
    prepared, planned = tiny_plan
    vocab_size = prepared.job.corpus.tokenizers.target.vocab_size
    assert planned.parameters == parameters_by_hand(vocab_size, 32, 64, final_norms=2)


def test_untied_embeddings_and_learned_positions_count_too(tiny_plan, plan):
    prepared, planned = plan("model.norm=post", "model.tie_embeddings=none", "model.positions.kind=learned")
    vocab_size = prepared.job.corpus.tokenizers.target.vocab_size
    more = 2 * vocab_size * 32 + 2 * 48 * 32
    assert planned.parameters == parameters_by_hand(vocab_size, 32, 64, final_norms=0) + more


def test_tokens_and_padding_are_those_of_an_epoch(tiny_plan):
    prepared, planned = tiny_plan
    batches = [prepared.job.load(planned_batch) for planned_batch in prepared.job.plan(0)]
    assert planned.tokens_per_epoch == sum(batch.count for batch in batches)
    places = sum(batch.source.numel() for batch in batches)
    assert planned.padding["source"] == pytest.approx(sum(int((b.source == 0).sum()) for b in batches) / places)
    places = sum(batch.target[:, 1:].numel() for batch in batches)
    assert planned.padding["target"] == pytest.approx(sum(int((b.target == 0).sum()) for b in batches) / places)


def test_the_computing_is_six_flops_a_weight_and_token(tiny_plan):
    """Two forward and four backward, embeddings not multiplied, and those of attention."""
    prepared, planned = tiny_plan
    batch = prepared.job.load(prepared.job.batches.median_batch())
    vocab_size, d, f = prepared.job.corpus.tokenizers.target.vocab_size, 32, 64
    a_source_token = 4 * d * d + 2 * d * f + 2 * d * d  # the encoder, and its keys and values for the decoder
    a_target_token = 4 * d * d + 2 * d * d + 2 * d * f + d * vocab_size
    source, target = batch.source.shape, batch.target[:, 1:].shape
    weights = math.prod(source) * a_source_token + math.prod(target) * a_target_token
    n, m = source[1], target[1]
    attention = 12 * d * source[0] * (n * n + m * m + m * n)
    assert planned.flops_per_token == pytest.approx((6 * weights + attention) / batch.count, rel=0.02)


@pytest.mark.parametrize("view", [View(), View(causal=True), View(keys=torch.tensor([[True] * 4 + [False]] * 2))])
@pytest.mark.parametrize("kernel", ["sdpa", "matmul"])
def test_kernels_count_the_products_of_attention_and_of_its_gradient(kernel, view):
    q, k, v = (torch.randn(2, 3, 5, 8, requires_grad=True) for _ in range(3))
    with flop_counter() as counter:
        KERNELS[kernel](q, k, v, view, 1.0).sum().backward()
    assert counter.get_total_flops() == 6 * 2 * (2 * 3 * 5 * 5 * 8)


def test_the_computing_does_not_depend_on_the_kernel_that_was_the_fastest(tiny_plan, plan):
    prepared, planned = plan("training.attention_kernel=matmul")
    assert planned.flops_per_token == tiny_plan[1].flops_per_token
    assert {one.kernel for one in prepared.job.model.modules() if isinstance(one, ScaledDotProduct)} == {matmul}


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="the peak cannot be reset here")
def test_memory_is_not_that_of_a_larger_model_that_was_planned_before(plan):
    _, before = plan()
    plan("model.d_model=512", "model.d_ff=4096", "training.max_updates=null", "training.max_minutes=0.1")
    _, after = plan()
    assert after.memory_bytes < before.memory_bytes + (128 << 20)  # buffers of libraries stay


def test_what_is_computed_again_is_counted_again(tiny_plan, plan):
    _, again = plan("model.activation_checkpointing=true")
    # A second forward pass of the layers, not of the vocabulary, up to the last number that the gradient needs.
    assert 1.1 < again.flops_per_token / tiny_plan[1].flops_per_token < 4 / 3


def test_memory_holds_at_least_weights_gradients_and_adam(tiny_plan):
    _, planned = tiny_plan
    assert 16 * planned.parameters < planned.memory_bytes < 8 << 30


@pytest.mark.parametrize(
    ("averaging", "floats"), [({"kind": "none"}, 3), ({"kind": "ema"}, 4), ({"kind": "last", "count": 5}, 8)]
)
def test_what_training_holds_of_a_model_is_its_gradients_adam_and_the_average(
    tiny_plan, tiny_config, averaging, floats
):
    model = tiny_plan[0].job.model
    training = tiny_config().training.replaced(averaging=averaging)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    with _as_in_training(model, training) as held:
        parameters = sum(parameter.numel() for parameter in before)
        assert 0 <= held - 4 * floats * parameters <= 4 * len(before)  # and a count of updates for each of them
    assert all(map(torch.equal, before, model.parameters()))


@pytest.mark.parametrize("averaging", [{"kind": "none"}, {"kind": "last", "count": 2}])
def test_a_training_that_may_return_after_a_spike_holds_its_state_twice(tiny_plan, tiny_config, averaging):
    model, held = tiny_plan[0].job.model, []
    for factor in (None, 2.0):
        training = tiny_config().training.replaced(averaging=averaging, spike_factor=factor)
        with _as_in_training(model, training) as one:
            held.append(one)
    buffers = sum(buffer.nbytes for buffer in model.buffers())
    assert 2 * held[0] <= held[1] <= 2 * held[0] + buffers


def test_muon_holds_one_mean_of_a_matrix_where_adam_holds_two(tiny_plan, tiny_config):
    model, held = tiny_plan[0].job.model, []
    for kind in ("adamw", "muon"):
        training = tiny_config().training.replaced(optimizer={"kind": kind})
        with _as_in_training(model, training) as one:
            held.append(one)
    matrices = sum(module.weight.nbytes for module in model.modules() if isinstance(module, torch.nn.Linear))
    assert held[0] - held[1] == pytest.approx(matrices, rel=0.01)


def test_other_processes_hold_the_model_again_and_their_share_of_a_batch(tiny_plan):
    job, training, decisions = tiny_plan[0].job, tiny_plan[0].config.training, Decisions("float32", "matmul", 2)
    resident = memory().current
    alone, both = (
        plan_training(job, training, replace(decisions, processes=n), 100.0, CPU, resident).memory_bytes for n in (1, 2)
    )
    assert 1.5 * alone < both < 2.1 * alone


def test_an_adapted_model_is_planned_with_its_products_merged_for_the_validation(tiny_config, folder):
    config = tiny_config()
    job = Translation().prepare(config, folder, lambda line: None).job
    adapt(job.model, LoraConfig(rank=2), ["encoder"])
    before = {name: weight.clone() for name, weight in job.model.state_dict().items()}
    decisions = Decisions("float32", "matmul", 1)
    planned = plan_training(job, config.training, decisions, 100.0, CPU, memory().current)
    assert planned.parameters == sum(parameter.numel() for parameter in job.model.parameters())
    assert all(torch.equal(weight, before[name]) for name, weight in job.model.state_dict().items())


def test_updates_follow_the_budget_that_ends_first(plan):
    prepared, one = plan("training.max_updates=null", "training.max_epochs=3", "training.accumulate=4")
    updates_per_epoch = math.ceil(len(prepared.job.plan(0)) / 4)
    assert (one.updates, one.epochs) == (3 * updates_per_epoch, 3)
    _, both = plan("training.max_updates=2", "training.max_epochs=3", "training.accumulate=4")
    assert both.updates == 2 and both.epochs == pytest.approx(2 / updates_per_epoch)


def test_the_time_expected_is_that_of_all_tokens_and_some_validation(tiny_plan):
    _, planned = tiny_plan
    training = planned.epochs * planned.tokens_per_epoch / planned.tokens_per_second
    assert training < planned.seconds < 1.2 * training


class Clock:
    """A clock that moves only when a part of an update takes some seconds."""

    now = 0.0

    def read(self, device):
        return self.now

    def taking(self, seconds):
        def part(*parts):
            self.now += seconds

        return part


def test_the_time_of_clipping_the_optimizers_and_the_average_is_that_of_a_whole_step(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(planning, "finished_at", clock.read)
    monkeypatch.setattr(planning, "clip_grad_norm_", clock.taking(1.0))
    adamw, muon = (SimpleNamespace(step=clock.taking(seconds), state={}) for seconds in (10.0, 100.0))
    training = SimpleNamespace(
        clip_norm=0.0,
        optimizer=SimpleNamespace(build=lambda model: [adamw, muon]),
        averaging=SimpleNamespace(build=lambda model: SimpleNamespace(update=clock.taking(1000.0))),
    )
    model = torch.nn.Linear(2, 2)
    assert planning.optimizer_seconds(model, training, CPU, until=math.inf) == 1111.0
    assert model.weight.grad is None


@pytest.mark.parametrize("accumulate", [1, 4])
def test_updates_that_are_planned_have_time_for_the_step_of_the_optimizer(plan, monkeypatch, accumulate):
    given = (
        "training.max_updates=null",
        "training.max_minutes=2",
        "training.processes=1",
        "training.precision=float32",
    )
    monkeypatch.setattr(planning, "dry_run", lambda *given: 0.1)
    found = []
    for seconds in (0.0, 0.2):
        monkeypatch.setattr(planning, "optimizer_seconds", lambda *given, took=seconds: took)
        found.append(plan(*given, "training.attention_kernel=matmul", f"training.accumulate={accumulate}")[1])
    without, with_step = (planned.seconds / planned.updates for planned in found)
    assert (with_step - without) * TRAINING_SHARE == pytest.approx(0.2, rel=0.1)
    assert without * TRAINING_SHARE == pytest.approx(OVERHEAD * 0.1 * accumulate, rel=0.1)


def test_a_step_whose_processes_gather_shards_is_expected_to_take_longer(tiny_plan, monkeypatch):
    prepared, _ = tiny_plan
    monkeypatch.setattr(planning, "dry_run", lambda *given: 0.1)
    found = {}
    for strategy in ("sum", "ddp", "fsdp"):
        decisions = Decisions("float32", "matmul", 2, processes=2, strategy=strategy)
        _, found[strategy] = planning.sample_of_training(prepared.job, decisions, CPU, math.inf)
    assert found["ddp"] == found["sum"]
    assert found["fsdp"] == pytest.approx(GATHERING * found["sum"])


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_compiling_kernels_for_new_shapes_is_not_taken_for_the_speed_of_an_accelerator(monkeypatch, kind):
    met = []

    def step(job, batch, device, processes):
        met.append(batch)
        return 7.0 if met.count(batch) == 1 else 0.5

    monkeypatch.setattr(planning, "dry_run", step)
    batches = SimpleNamespace(sample_batches=lambda: ["short", "long"])
    job = SimpleNamespace(batches=batches, load=lambda batch: SimpleNamespace(count=len(batch)))
    of_float32 = Decisions("float32", "sdpa", 2)
    targets, seconds = planning.sample_of_training(job, of_float32, torch.device(kind), until=0.0)
    assert targets == 9
    assert seconds == pytest.approx(OVERHEAD * (1.0 if kind == "cuda" else 14.0))


@pytest.mark.parametrize(
    ("budget", "noted"),
    [
        (["training.max_minutes=auto"], "the expected time is too long"),  # beside the updates of TINY
        (["training.max_minutes=auto", "training.max_updates=null"], "too few updates are planned"),
    ],
)
def test_a_busy_machine_is_noted_with_what_depends_on_its_speed(tiny_config, folder, monkeypatch, budget, noted):
    monkeypatch.setattr(planning.Waiting, "share", lambda self: 0.9)
    lines = []
    run.plan(tiny_config(*budget), folder, lines.append)
    (note,) = [line for line in lines if "this machine is busy" in line]
    assert noted in note


@pytest.mark.parametrize("multiplies", [True, False])
def test_a_processor_without_bfloat16_is_noted_where_it_is_asked_for(tiny_config, folder, monkeypatch, multiplies):
    monkeypatch.setattr(planning, "multiplies_bfloat16", lambda device: multiplies)
    noted = {}
    for precision in ("auto", "float32", "bfloat16"):
        lines = []
        run.plan(tiny_config(f"training.precision={precision}"), folder / precision, lines.append)
        noted[precision] = [
            line for line in lines if line.startswith("this processor has no instructions for bfloat16")
        ]
    assert noted["auto"] == noted["float32"] == []
    assert [line.endswith(": leave training.precision out") for line in noted["bfloat16"]] == [True] * (not multiplies)


def test_a_run_bounded_by_minutes_is_expected_to_take_them(plan):
    _, planned = plan("training.max_updates=null", "training.max_minutes=2")
    assert planned.seconds == pytest.approx(120, rel=0.01)
    assert planned.updates > 100


def test_planning_changes_no_weight_and_leaves_no_gradient(tiny_plan, tiny_config, folder):
    prepared, _ = tiny_plan
    model, fresh = prepared.job.model, Translation().prepare(tiny_config(), folder, lambda line: None).job.model
    assert all(torch.equal(weight, fresh.state_dict()[name]) for name, weight in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_what_json_gets(tiny_plan):
    _, planned = tiny_plan
    assert json.loads(json.dumps(planned.as_dict())).keys() == JSON_KEYS


def test_people_get_a_line_a_subject(tiny_plan):
    _, planned = tiny_plan
    lines = planned.lines()
    assert lines[0].split() == ["parameters", f"{planned.parameters:,}"]
    assert any(f"{planned.updates:,} updates" in line for line in lines)
    assert not any("\n" in line for line in lines)
