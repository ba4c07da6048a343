"""Checks of the settings, the data and the memory."""

from typing import Any

from regardant.checks.doctor.case import Case, DoctorCheck, Finding, LeftOut, Seen
from regardant.data.vocabulary import UNK
from regardant.models.base import CausalModel
from regardant.models.transformer import TransformerConfig
from regardant.tasks.base import TaskConfig
from regardant.training.events import peak_bytes

MOST_PADDING = 0.4
"""Maximum share of padding in the batches of an epoch."""
MOST_UNKNOWN = 0.05
"""Maximum share of unknown tokens in validation data."""

LEAST_WARMUP = 10
"""Minimum number of updates up to the peak learning rate that counts as warm-up."""

OVER_PLAN = 1.5
"""Maximum peak memory of training, as a multiple of the planned memory."""
MEMORY_SLACK = 512 << 20
"""Bytes above the planned memory that are ignored."""


def warm_up(case: Case) -> Seen:
    """Check that a post-norm Transformer is trained with warm-up."""
    model, schedule = case.config.model, case.config.training.schedule
    paths = {"model": model, **{f"model.{name}": part for name, part in model}}  # or the encoders of its inputs
    norms = {path: part.norm for path, part in paths.items() if isinstance(part, TransformerConfig)}
    if not norms:
        raise LeftOut("the model has no Transformer")
    path, norm = max(norms.items(), key=lambda one: one[1] != "pre")
    peak = max(schedule.rate(update, 0.0) for update in range(1, 10_001))
    reached = next(update for update in range(1, 10_001) if schedule.rate(update, 0.0) > 0.99 * peak)
    measured = f"{path}.norm={norm}, the learning rate reaches its peak of {peak:.2g} at update {reached:,}"
    if norm == "pre" or reached >= LEAST_WARMUP:
        return Seen(measured)
    updates = case.plan["updates"]
    evidence = f"{measured}, of {updates:,}"
    if len(case.training) > 1:
        first, last = case.training[0], case.training[-1]
        numbers = [
            f"{'not finite' if event['loss'] is None else format(event['loss'], '.2f')}" for event in (first, last)
        ]
        evidence += f"; the training loss went from {numbers[0]} to {numbers[1]}"
    finding = Finding(
        "a post-norm Transformer is trained without warm-up",
        evidence,
        f"set training.schedule.warmup_steps={max(LEAST_WARMUP, min(4000, updates // 10))}, or {path}.norm=pre",
    )
    return Seen(measured, [finding])


def padding_share(case: Case) -> Seen:
    """Check that padding is a small share of the batches."""
    shares = {name.removesuffix("_padding"): share for name, share in case.plan.items() if name.endswith("_padding")}
    if not shares:
        raise LeftOut("the batches of this task have no padding")
    measured = ", ".join(f"{share:.0%} of the {side} blocks" for side, share in shares.items())
    if max(shares.values()) <= MOST_PADDING:
        return Seen(measured)
    training = case.config.training
    finding = Finding(
        "much of the computation is spent on padding",
        f"{measured}, in the batches of the first epoch, of at most {training.batch_tokens:,} tokens",
        f"lower training.batch_tokens (now {training.batch_tokens:,}), and raise training.accumulate by the same "
        "factor, so that items of similar length share a batch; leave out items much longer than the rest, or lower "
        f"model.max_length (now {getattr(case.config.model, 'max_length', 0):,})",
    )
    return Seen(measured, [finding])


def unknown_tokens(case: Case) -> Seen:
    """Check that few tokens are unknown to the vocabulary."""
    probe, model = case.probe, case.trained.model
    names = [name for name in probe.inputs if case.unit(name) == "token"]
    if not names:
        raise LeftOut("no input of this task is text")
    shares = {name: float((probe.inputs[name] == UNK).sum()) / sum(case.lengths(name)) for name in names}
    measured = ", ".join(f"{share:.1%} of the {name}" for name, share in shares.items())
    if max(shares.values()) <= MOST_UNKNOWN:
        return Seen(measured)
    path, tokenizer = _tokenizer(case.config, max(shares, key=shares.__getitem__))
    other = "byte" if isinstance(model, CausalModel) else "bpe"
    finding = Finding(
        "many tokens are unknown to the vocabulary",
        f"{measured} in validation, with {tokenizer.kind} tokens",
        f"set {path}.kind={other}, which can encode any text, or raise {path}.vocab_size (now "
        f"{tokenizer.vocab_size or 'chosen'})",
    )
    return Seen(measured, [finding])


def _tokenizer(config: TaskConfig, name: str) -> tuple[str, Any]:
    """Return the path of the tokenizer of an input in a recipe, and its configuration.

    In `sequence_to_sequence`, `input.tokenizer` reads the source, and `tokenizer` the texts that are written.
    """
    if name == "source" and hasattr(config, "input"):
        return "input.tokenizer", config.input.tokenizer
    if hasattr(config, "tokenizer"):
        return "tokenizer", config.tokenizer
    return f"{name}.tokenizer", getattr(config, name).tokenizer


def memory(case: Case) -> Seen:
    """Compare the peak memory of training with the plan."""
    updates = [event for event in case.training if event.get("memory_bytes")]
    if not updates:
        raise LeftOut("no update has been logged yet")
    peak, planned = peak_bytes(updates), case.plan["memory_bytes"]
    measured = f"{_gib(peak)} at most, {_gib(planned)} planned"
    cure = (
        f"lower training.batch_tokens (now {case.config.training.batch_tokens:,}) and raise training.accumulate by "
        "the same factor, lower model.max_length, or set model.residual=reversible, which keeps no activations between "
        "layers"
    )
    if peak <= OVER_PLAN * planned or peak <= planned + MEMORY_SLACK:
        return Seen(measured)
    return Seen(measured, [Finding("training took more memory than planned", measured, cure)])


def precision(case: Case) -> Seen:
    """Report the precision and kernel, which are never a finding: they were measured to be the fastest."""
    return Seen(case.decided.summary())


SETTINGS = (
    DoctorCheck("warm-up", warm_up),
    DoctorCheck("padding share", padding_share),
    DoctorCheck("unknown tokens", unknown_tokens),
    DoctorCheck("memory", memory),
    DoctorCheck("precision", precision),
)


def _gib(count: int) -> str:
    return f"{count / 2**30:.2f} GiB"
