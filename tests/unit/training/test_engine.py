"""The loop, on a job small enough to be reckoned by hand: a Transformer of one layer over random tokens.

The job drives the clock: reading a batch takes half a second, a validation two.
"""

import json
from types import SimpleNamespace

import pytest
import torch

from regardant.data.batching import PairBatch, pad
from regardant.errors import ConfigError, RunError
from regardant.models.encoder_decoder import EncoderDecoderConfig
from regardant.training import fit
from regardant.training.checkpoints import load_weights, save_checkpoint
from regardant.training.config import TrainingConfig
from regardant.training.engine import Trainer
from regardant.training.metrics import Metric
from regardant.training.processes import ALONE, Group
from regardant.training.strategies import make_fabric
from tests.models import over_pairs

VOCAB_SIZE = 12
BATCH_SECONDS, VALIDATION_SECONDS = 0.5, 2.0
STANDSTILL = {"kind": "constant", "learning_rate": 1e-30}


class TinyJob:
    """Six batches an epoch, their sentences of one length in a batch and another in the next.

    `losses` and `bleus` are the results of the validations in order, the last one repeated.
    """

    unit = "target token"
    metrics = (Metric("loss", higher_is_better=False), Metric("bleu", higher_is_better=True))

    def __init__(self, *, batches=6, losses=(1.0,), bleus=(50.0,), validate_every=1000, dropout=0.0, **head):
        torch.manual_seed(7)
        sizes = {"d_model": 16, "num_heads": 2, "d_ff": 16, "dropout": dropout, "max_length": 16}
        stacks = {"encoder": {"num_layers": 1}, "decoder": {"num_layers": 1}}
        self.model = over_pairs(EncoderDecoderConfig(preset=None, **sizes, **stacks), VOCAB_SIZE, **head)
        self.batches = [[self._pair(2 + 2 * number) for _ in range(4 - number % 3)] for number in range(batches)]
        self.found = {"loss": losses, "bleu": bleus}
        self.validate_every = validate_every
        self.divisible = True
        self.seconds = 100.0
        self.seen, self.weights_at_batches, self.losses, self.validated = [], [], [], []

    def _pair(self, length):
        return [torch.randint(5, VOCAB_SIZE, (length,)).tolist() for _ in range(2)]

    def plan(self, epoch):
        """The batches' numbers, one further on each epoch."""
        numbers = list(range(len(self.batches)))
        return numbers[epoch % len(numbers) :] + numbers[: epoch % len(numbers)]

    def load(self, planned):
        self.seconds += BATCH_SECONDS
        self.seen.append(planned)
        self.weights_at_batches.append(weights_of(self.model))
        sources, targets = zip(*self.batches[planned], strict=True)
        return PairBatch(pad(sources), pad(targets, sos=True))

    def loss(self, model, batch, device):
        self.losses.append(model(**batch.inputs, targets=batch.targets))
        return self.losses[-1]

    def validate(self, model, device):
        self.seconds += VALIDATION_SECONDS
        self.validated.append(weights_of(model))
        return {name: values[min(len(self.validated), len(values)) - 1] for name, values in self.found.items()}

    def observe(self, model, device):
        return {}


def weights_of(model):
    return {name: weight.clone() for name, weight in model.state_dict().items()}


@pytest.fixture
def trainer(tmp_path, monkeypatch):
    """Builds the trainer of a job in the folder `run`; fields of TrainingConfig by name."""

    def build(job, run="run", seed=1, group=ALONE, **fields):
        monkeypatch.setattr(fit, "time", SimpleNamespace(perf_counter=lambda: job.seconds))
        fields = {"averaging": {"kind": "none"}, "schedule": {"kind": "constant"}} | fields
        config = TrainingConfig.model_validate(fields)
        key = job.model.dropout_key
        fabric = make_fabric("float32")
        return Trainer(job, config, tmp_path / run, fabric=fabric, dropout_key=key, seed=seed, group=group)

    return build


def gradients_of_an_update(trainer):
    """By parameter, as the optimizer meets them."""
    found = {}

    def record(optimizer, args, kwargs):
        found.update({name: weight.grad.clone() for name, weight in trainer.job.model.named_parameters()})

    trainer.optimizers[0].optimizer.register_step_pre_hook(record)
    assert trainer.fit().cursor.update == 1
    return found


def events(trainer, name):
    lines = (trainer.run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == name]


def assert_same_weights(weights, others, tolerance=0.0):
    assert weights.keys() == others.keys()
    torch.testing.assert_close(weights, others, rtol=0, atol=tolerance)


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
def test_accumulated_batches_give_the_gradients_of_one_big_batch(trainer, label_smoothing):
    parts, whole = (TinyJob(batches=3, label_smoothing=label_smoothing) for _ in range(2))
    assert len({len(batch) * len(batch[0][1]) for batch in parts.batches}) > 1, "else a mean of means would pass"
    whole.batches = [[pair for batch in whole.batches for pair in batch]]
    accumulated = gradients_of_an_update(trainer(parts, "parts", max_updates=1, accumulate=3, clip_norm=0))
    at_once = gradients_of_an_update(trainer(whole, "whole", max_updates=1, clip_norm=0))
    assert max(float(gradient.abs().max()) for gradient in at_once.values()) > 0.05
    torch.testing.assert_close(accumulated, at_once, rtol=0, atol=1e-6)


def test_a_long_gradient_is_shortened_to_clip_norm_and_its_own_length_is_told(trainer):
    free, clipped = (trainer(TinyJob(), f"clip {norm}", max_updates=1, clip_norm=norm) for norm in (0, 0.01))
    before, after = gradients_of_an_update(free), gradients_of_an_update(clipped)
    norm = float(torch.stack([gradient.norm() for gradient in before.values()]).norm())
    assert norm > 0.1
    told = [events(made, "train")[0]["gradient_norm"] for made in (free, clipped)]
    assert told == pytest.approx([norm, norm], rel=1e-5)
    shortened = {name: gradient * (0.01 / norm) for name, gradient in before.items()}
    torch.testing.assert_close(after, shortened, rtol=1e-3, atol=1e-7)


def test_a_short_gradient_is_not_lengthened(trainer):
    free, clipped = (trainer(TinyJob(), f"clip {norm}", max_updates=1, clip_norm=norm) for norm in (0, 1000))
    torch.testing.assert_close(gradients_of_an_update(clipped), gradients_of_an_update(free), rtol=0, atol=0)


def test_a_part_learns_at_its_factor_of_the_rate(trainer):
    updates = {"max_updates": 2, "schedule": {"kind": "constant", "learning_rate": 0.01, "warmup_steps": 0}}
    job = TinyJob()
    before = weights_of(job.model)
    frozen = trainer(job, optimizer={"rate_factors": {"decoder": 0.0}}, **updates)
    frozen.fit()
    moved = {name for name, weight in weights_of(job.model).items() if not torch.equal(weight, before[name])}
    assert moved and moved == {name for name in before if not name.startswith("decoder.")}
    assert events(frozen, "train")[-1]["learning_rate"] == 0.01


def test_every_batch_of_an_epoch_is_trained_on_once_and_an_update_stays_in_its_epoch(trainer):
    job = TinyJob(batches=5)
    outcome = trainer(job, max_epochs=2, accumulate=2).fit()
    assert job.seen == [0, 1, 2, 3, 4, 1, 2, 3, 4, 0]
    assert outcome.finished and outcome.cursor.update == 6  # 2 + 2 + 1 batches, twice
    assert outcome.targets == 2 * sum(len(target) + 1 for batch in job.batches for _, target in batch)


def test_max_updates_is_exact(trainer):
    job = TinyJob()
    outcome = trainer(job, max_updates=8).fit()
    assert outcome.finished and outcome.cursor.update == len(job.seen) == 8


def test_the_budget_that_ends_first_ends_the_run(trainer):
    assert trainer(TinyJob(), max_updates=50, max_epochs=1).fit().cursor.update == 6


@pytest.mark.parametrize("kind", ["linear", "cosine"])
def test_a_run_bounded_by_minutes_ends_on_time_with_its_rate_run_down(trainer, kind):
    job = TinyJob(validate_every=20)
    schedule = {"kind": kind, "learning_rate": 1e-3, "warmup_steps": 5}
    made = trainer(job, max_minutes=1, schedule=schedule)
    outcome = made.fit()
    assert outcome.finished
    assert 60 <= outcome.cursor.seconds <= 60 + BATCH_SECONDS + VALIDATION_SECONDS
    assert outcome.cursor.validation_seconds == VALIDATION_SECONDS * len(job.validated)
    rates = [event["learning_rate"] for event in events(made, "train")]
    assert max(rates) > 0.8e-3 and rates[-1] < 0.05e-3


def test_a_resumed_run_has_the_minutes_that_are_left(trainer):
    trainer(TinyJob(), max_updates=60, max_minutes=1).fit()
    outcome = trainer(TinyJob(), max_minutes=1).fit()
    assert 60 <= outcome.cursor.seconds <= 60 + BATCH_SECONDS + 2 * VALIDATION_SECONDS
    assert outcome.cursor.update > 100


def test_a_checkpoint_whose_cursor_has_fields_that_were_removed_is_resumed(trainer):
    made = trainer(TinyJob(), max_updates=2)
    made.fit()
    state = made.state()
    state["cursor"]["returns"] = 3
    save_checkpoint(made.run, state, 2, keep=1)
    assert trainer(TinyJob(), max_updates=3).fit().cursor.update == 3
    state["cursor"]["turns"] = 3
    save_checkpoint(made.run, state, 2, keep=1)
    with pytest.raises(RunError, match=r"was written by another version \(its cursor differs\)"):
        trainer(TinyJob(), max_updates=3)


def test_patience_ends_a_run_that_gets_no_better(trainer):
    job = TinyJob(losses=[3.0, 2.0, 2.5, 1.9, 1.9, 2.1, 5.0], validate_every=2)
    outcome = trainer(job, max_updates=100, patience=3).fit()
    assert outcome.finished and outcome.cursor.update == 14
    assert (outcome.best, outcome.cursor.best_update) == (1.9, 8)


def test_the_weights_kept_are_those_of_the_best_validation(trainer):
    job = TinyJob(losses=[3.0, 2.0, 2.5, 1.5, 1.5, 2.0], validate_every=2)
    made = trainer(job, max_updates=12)
    made.fit()
    kept = load_weights(made.run / "model.safetensors")
    assert_same_weights(kept, job.validated[3])
    assert not torch.equal(kept["head.weight"], job.validated[4]["head.weight"])


def test_later_weights_are_kept_if_validation_cannot_tell_them_from_the_best(trainer):
    job = TinyJob(losses=[3.0, 2.0, 1.0], bleus=[10.0, 30.0, 29.75], validate_every=2)
    job.metrics = (Metric("bleu", higher_is_better=True, noise=0.5),)
    made = trainer(job, max_updates=6)
    outcome = made.fit()
    assert (outcome.best, outcome.cursor.best_update, outcome.cursor.kept_update) == (30.0, 4, 6)
    assert_same_weights(load_weights(made.run / "model.safetensors"), job.validated[2])


def test_the_highest_bleu_is_best_where_bleu_decides(trainer):
    job = TinyJob(losses=[3.0, 2.0, 1.0], bleus=[10.0, 30.0, 20.0], validate_every=2)
    made = trainer(job, max_updates=6, best_by="bleu")
    outcome = made.fit()
    assert (outcome.metric.name, outcome.best, outcome.cursor.best_update) == ("bleu", 30.0, 4)
    assert [event["best_bleu"] for event in events(made, "validation")] == [10.0, 30.0, 30.0]


@pytest.mark.parametrize(("higher_is_better", "best"), [(True, -1.0), (False, -4.0)])
def test_a_metric_s_direction_selects_and_its_sign_is_kept(trainer, higher_is_better, best):
    job = TinyJob(losses=[-4.0, -1.0, -2.0], validate_every=2)
    job.metrics = (Metric("loss", higher_is_better),)
    outcome = trainer(job, max_updates=6).fit()
    assert outcome.best == best


def test_an_unknown_metric_is_one_line_with_the_allowed_ones(trainer):
    with pytest.raises(ConfigError) as refusal:
        trainer(TinyJob(), max_updates=1, best_by="blue")
    assert str(refusal.value) == "training.best_by: given 'blue'; allowed: loss, bleu; did you mean bleu?"


def test_a_batch_of_an_indivisible_loss_is_not_divided_into_micro_batches(trainer):
    job = TinyJob()
    job.divisible = False
    with pytest.raises(ConfigError, match=r"^training\.accumulate: given 2; .* set training\.accumulate=1"):
        trainer(job, max_updates=1, accumulate=2)
    assert trainer(job, max_updates=1).fit().finished


def test_a_batch_of_an_indivisible_loss_is_not_divided_among_processes(trainer):
    job = TinyJob()
    job.divisible = False
    with pytest.raises(ConfigError, match=r"^training\.processes: given 2; .* set training\.processes=1"):
        trainer(job, max_updates=1, group=Group(0, 2))


def test_validation_is_without_dropout(trainer):
    """Two forward passes under different keys give equal losses, as they do not while training."""
    job = TinyJob(dropout=0.5)
    found = []

    def validate(model, device):
        batch = job.load(0)
        for update in (0, 1):
            model.dropout_key.update = update
            found.append(float(model(**batch.inputs, targets=batch.targets).plain))
        return {"loss": found[0], "bleu": 0.0}

    job.validate = validate
    made = trainer(job, max_updates=1)
    made.fit()
    job.model.train()
    validate(job.model, None)
    assert found[0] == found[1]
    assert found[2] != found[3], "else dropout would not show"
    assert [event["loss"] for event in events(made, "validation")] == [found[0]]


def test_the_last_weights_are_validated_too_but_once(trainer):
    for max_updates, validated_at in ((6, [4, 6]), (8, [4, 8])):
        made = trainer(TinyJob(validate_every=4), f"to {max_updates}", max_updates=max_updates)
        made.fit()
        assert [event["update"] for event in events(made, "validation")] == validated_at


def test_without_averaging_the_weights_themselves_are_validated_and_kept(trainer):
    job = TinyJob(losses=[3.0, 2.0, 1.0], validate_every=2)
    made = trainer(job, max_updates=6)
    made.fit()
    assert_same_weights(job.validated[0], job.weights_at_batches[2])
    assert_same_weights(load_weights(made.run / "model.safetensors"), weights_of(job.model))


def test_ema_keeps_a_running_mean_over_all_updates_and_trains_on_the_weights_themselves(trainer):
    averaged, plain = TinyJob(losses=[3.0, 2.0, 1.0], validate_every=2), TinyJob(validate_every=2)
    made = trainer(averaged, max_updates=6, averaging={"kind": "ema", "decay": 0.6})
    made.fit()
    after = [*averaged.weights_at_batches[1:], weights_of(averaged.model)]
    expected = dict(averaged.weights_at_batches[0])
    for update, weights in enumerate(after, 1):
        decay = min(0.6, (1 + update) / (10 + update))
        expected = {name: decay * mean + (1 - decay) * weights[name] for name, mean in expected.items()}
    assert_same_weights(averaged.validated[-1], expected, tolerance=1e-6)
    assert_same_weights(load_weights(made.run / "model.safetensors"), averaged.validated[-1])
    trainer(plain, "plain", max_updates=6).fit()
    assert_same_weights(weights_of(averaged.model), weights_of(plain.model))
    assert_same_weights(made.whole_weights(), expected, tolerance=1e-6)
    assert_same_weights(made.newest_weights(), weights_of(averaged.model))


def test_last_keeps_the_mean_of_the_weights_at_the_last_validations(trainer):
    job = TinyJob(losses=[3.0, 2.0, 1.0], validate_every=2)
    made = trainer(job, max_updates=6, averaging={"kind": "last", "count": 2})
    made.fit()
    at_4, at_6 = job.weights_at_batches[4], weights_of(job.model)
    mean = {name: (weight + at_6[name]) / 2 for name, weight in at_4.items()}
    assert_same_weights(job.validated[-1], mean, tolerance=1e-7)
    assert_same_weights(load_weights(made.run / "model.safetensors"), job.validated[-1])


def test_dropout_draws_anew_for_every_update_batch_and_seed(trainer):
    """Equal weights and equal batches: what differs is what is dropped."""
    losses = []
    for number, seed in enumerate((1, 1, 2)):
        job = TinyJob(batches=1, dropout=0.3)
        job.batches *= 2
        trainer(job, f"run {number}", seed=seed, max_updates=2, accumulate=2, schedule=STANDSTILL).fit()
        losses.append([float(loss.plain) for loss in job.losses])
    first, again, other = losses
    assert first == again
    assert len({*first, *other}) == 8


def test_masks_of_an_accelerator_depend_on_seed_update_and_rank_alone(trainer, monkeypatch):
    """There dropout draws from torch's generator, from which the dry runs of planning have drawn before."""

    def seeds(seed, group=ALONE):
        made, found = trainer(TinyJob(), seed=seed, max_updates=3), []
        made.group = group
        made.fabric = SimpleNamespace(device=torch.device("cuda"))
        with monkeypatch.context() as pretended:
            pretended.setattr(torch.cuda, "manual_seed", found.append)
            pretended.setattr(Group, "add_up", lambda *given: None)
            pretended.setattr(Group, "gathered", lambda group, numbers: torch.tensor([numbers] * group.size))
            pretended.setattr(made, "_gradients", lambda: torch.zeros(()))
            pretended.setattr(made, "_clip", lambda: torch.zeros(()))
            for _ in range(3):
                made.update()
        return found

    assert seeds(1) == seeds(1)
    assert len({*seeds(1), *seeds(2)}) == 6
    assert len({*seeds(1, Group(0, 2)), *seeds(1, Group(1, 2))}) == 6


def test_numbers_are_told_every_tenth_update_over_all_targets_since(trainer):
    job = TinyJob()
    made = trainer(job, max_updates=20, schedule=STANDSTILL)
    made.fit()
    told = events(made, "train")
    assert [event["update"] for event in told] == [10, 20]
    for event, losses in zip(told, (job.losses[:10], job.losses[10:]), strict=True):
        mean = sum(float(loss.plain) for loss in losses) / sum(int(loss.count) for loss in losses)
        assert event["loss"] == pytest.approx(mean, rel=1e-5)


@pytest.mark.parametrize("at", [13, 25], ids=["on the way", "in the last update"])
def test_an_interrupt_leaves_no_trace_in_the_numbers(trainer, at):
    whole, stopped, resumed = TinyJob(), TinyJob(), TinyJob()
    options = {"max_updates": 25, "optimizer": {"rate_factors": {"decoder": 0.5}}}
    uninterrupted = trainer(whole, "whole", **options)
    uninterrupted.fit()
    made = trainer(stopped, **options)

    def load(planned):
        made.stop_asked = len(stopped.seen) == at - 1  # Ctrl-C in the middle of update `at`
        return TinyJob.load(stopped, planned)

    stopped.load = load
    outcome = made.fit()
    assert (outcome.finished, outcome.cursor.update) == (False, at)
    assert trainer(resumed, **options).fit().finished
    for name in ("train", "validation"):
        measured = {"tokens_per_second": 0, "memory_bytes": 0, "memory_peak_bytes": 0}
        told = [[event | measured for event in events(one, name)] for one in (made, uninterrupted)]
        assert told[0] == told[1]
    assert_same_weights(weights_of(resumed.model), weights_of(whole.model))


def test_the_batches_of_an_epoch_are_freed_before_the_next_is_planned():
    """Those of a stream hold a buffer, and the next is read while they are planned."""
    held = []

    def plan(epoch):
        held.append(list(training.planned))
        return [epoch]

    cursor = SimpleNamespace(epoch=0, batch=0)
    training = SimpleNamespace(
        cursor=cursor, planned=[], job=SimpleNamespace(plan=plan), config=SimpleNamespace(accumulate=1)
    )
    assert [list(Trainer._take(training)) for _ in range(3)] == [[0], [1], [2]]
    assert held == [[], [], []]
