"""Tests of the trained model on its own validation data, with input changes that must, or must not, change the scores.

The properties of the model and the probe decide which tests apply: the padding test needs rows of unequal length, the
future test an autoregressive model. A test that does not apply is left out with a reason.

Shape legend: N rows, T elements of an input, V answers to choose from.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from regardant.checks.doctor.case import Case, DoctorCheck, Finding, LeftOut, Seen, differences, lower_rate, worst
from regardant.data.vocabulary import PAD
from regardant.errors import RunError
from regardant.models.base import CausalModel, Model, SequenceToSequenceModel
from regardant.models.representations import Blocks

NOTHING = 1e-3
"""Largest change of scores that rounding explains, in standard deviations of the scores."""

ORDER = 1e-4
"""Largest change of scores by reversed elements that rounding explains. Summation in another order changes scores by a
hundredth of it."""

FEW_ROWS = 4
"""Maximum number of rows that are run alone, without padding."""

NATS_OFF = 1.0
"""Nats by which the loss of the probe, a part of the data, may exceed the validation loss."""

AS_FREQUENCIES = 0.97
"""Minimum ratio of validation loss to the entropy of target frequencies, for a model that learned only these."""

SIGMAS = 2.0
"""Standard errors by which accuracy must exceed that of the most frequent answer to show that more was learned."""

REPEATS = 0.5
"""Minimum share of positions with the token just read as prediction, for a model that repeats its input."""


def written_input(model: Model) -> str | None:
    """Return the name of the input that a model writes token by token. None: the model is not autoregressive."""
    return model.inputs[-1] if isinstance(model, SequenceToSequenceModel | CausalModel) else None


class ScoreChange(NamedTuple):
    """Largest change of scores by an edit of the input that must not change them."""

    size: float
    """Size of the change, in standard deviations of all scores."""
    where: str
    """Item or position of the change."""
    rows: int = 0
    """Number of rows that were tried."""
    bound: float = NOTHING
    """Largest size that rounding explains."""


def padding_change(case: Case) -> ScoreChange:
    """Compare the scores of items in a padded batch with those of each item alone. Raises LeftOut without padding."""
    probe, padded = case.probe, {name: width for name, width in _padded(case)}
    if not padded:
        raise LeftOut("no input of this task is padded, or all rows that were tried are equally long")
    name, width = next(iter(padded.items()))
    lengths = {one: torch.tensor(case.lengths(one)) for one in padded}
    changes = {}
    for row in lengths[name].argsort()[:FEW_ROWS].tolist():
        if lengths[name][row] == width:
            continue
        cut = {one: int(lengths[one][row]) for one in padded}
        alone = {
            one: _alone(value, row, cut[one]) if one in cut else value[row : row + 1]
            for one, value in probe.inputs.items()
        }
        scores = case.scores(alone)[0]
        together = case.answers[row]
        if together.dim() > 1:  # one answer for each element
            together = together[: len(scores)]
        changes[row] = _change(case, together, scores)
    row = worst(changes, changes.__getitem__)
    where = f"an item of {int(lengths[name][row])} {case.unit(name)}s, padded to {width}"
    return ScoreChange(changes[row], where, len(changes))


def padding_mask(case: Case) -> Seen:
    """Find scores that depend on padding."""
    change = padding_change(case)
    measured = f"scores change by {change.size:.1g} standard deviations when {change.rows} items lose their padding"
    if change.size <= change.bound:
        return Seen(measured)
    if math.isnan(change.size):
        return Seen(measured, [_no_number(case, change.where)])
    finding = Finding(
        "padding changes the scores: a padding mask is missing",
        f"{change.where}: its scores change by "
        f"{change.size:.2g} standard deviations without padding; rounding explains less than {NOTHING:g}",
        "mask padding as keys: View(keys=tokens != PAD) for every attention to a padded input, exclude it from "
        "the head's pooling, and zero it before other layers that mix elements",
    )
    return Seen(measured, [finding])


def future_change(case: Case) -> ScoreChange:
    """Compare the scores of the first positions before and after a change of later tokens. Raises LeftOut if the model
    is not autoregressive or the data too short."""
    name = _require_written(case)
    written, lengths = case.probe.inputs[name], torch.tensor(case.lengths(name))
    cut = int(lengths.max()) // 2
    if cut < 1 or len(written) < 2:
        raise LeftOut("the validation data has a single row, or no row of two tokens or more")
    changed = written.clone()
    changed[:, cut:] = written.roll(1, 0)[:, cut:]
    before = _real(case, name)[:, :cut]
    after = case.scores(case.probe.replaced(name, changed))
    change = _change(case, case.answers[:, :cut][before], after[:, :cut][before])
    return ScoreChange(change, f"position {cut}", len(written))


def future_mask(case: Case) -> Seen:
    """Find scores that depend on later tokens."""
    change = future_change(case)
    cut = change.where.removeprefix("position ")
    measured = (
        f"scores of the first {cut} positions change by {change.size:.1g} standard deviations when later tokens change"
    )
    if change.size <= change.bound:
        return Seen(measured)
    if math.isnan(change.size):
        return Seen(measured, [_no_number(case, f"other tokens from {change.where} on")])
    finding = Finding(
        "scores depend on later tokens: a causal mask is missing",
        f"other tokens from {change.where} on change the scores before it by {change.size:.2g} standard "
        f"deviations; rounding explains less than {NOTHING:g}",
        "mask later positions: View(causal=True) for every self-attention of the decoder, and no padding on the right "
        "in other layers that mix positions",
    )
    return Seen(measured, [finding])


def shift(case: Case) -> Seen:
    """Compare the loss of the next token on the probe with the validation loss."""
    name = _require_written(case)
    probe, kept = case.probe, case.kept
    real = probe.targets != PAD
    logits = case.answers[real]
    loss = float(F.cross_entropy(logits, probe.targets[real]))
    repeated = float((logits.argmax(-1) == probe.inputs[name][real]).float().mean())
    measured = f"{loss:.2f} nats for the next token, {kept['loss']:.2f} in validation"
    if loss <= kept["loss"] + NATS_OFF or loss <= 2 * kept["loss"]:
        return Seen(measured)
    others = [one.name for one in case.config.metrics if one.name not in ("loss", "perplexity") and one.name in kept]
    scores = "".join(f" Validation {name} was {kept[name]:.1f}." for name in others)
    repeats = repeated > REPEATS
    finding = Finding(
        "the targets are not shifted: the model repeats its input"
        if repeats
        else "the model was trained on another loss than that of the next token",
        f"validation gave {kept['loss']:.2f} {case.loss_unit} at update {kept['update']:,}, but the loss of the next "
        f"token is {loss:.2f}. At {repeated:.0%} of the positions the likeliest token is the one just read.{scores}",
        "in the model's forward, read target[:, :-1] and predict target[:, 1:]",
    )
    return Seen(measured, [finding])


def frequencies(case: Case) -> Seen:
    """Compare the validation loss with the entropy of the targets' frequencies."""
    case.curve("loss")  # raises LeftOut: a few updates teach no more than frequencies
    if case.probe.targets.is_floating_point():
        raise LeftOut("the targets are numbers, which have no frequencies")
    if not case.trained.model.head.divisible:
        raise LeftOut("the loss compares the rows of a batch with each other, whatever their targets are")
    try:
        counts, kept = case.trained.target_counts(), case.kept
    except RunError as error:
        raise LeftOut(str(error)) from error
    total = int(counts.sum())
    shares = counts / total
    entropy, most = float(torch.special.entr(shares).sum()), float(shares.max())
    measured = f"{kept['loss']:.2f} {case.loss_unit} in validation, {entropy:.2f} from the frequencies of targets alone"
    if kept["loss"] < AS_FREQUENCIES * entropy:
        return Seen(measured)
    if (right := kept.get("accuracy", kept.get("exact_match"))) is not None:  # right, but overconfident answers
        measured += f"; {right:.0%} right, {most:.0%} by the most frequent answer alone"
        if right > most + SIGMAS * (most * (1 - most) / total) ** 0.5:
            return Seen(measured)
    finding = Finding(
        "the model learned only the frequencies of the targets",
        f"{measured}, at update {kept['update']:,}",
        f"check that items and targets belong together; {lower_rate(case)}, raise training.schedule.warmup_steps, or "
        "set model.norm=pre; if the loss still falls, train longer",
    )
    return Seen(measured, [finding])


def order(case: Case) -> Seen:
    """Compare the effect of other elements on the scores with that of the same elements reversed."""
    model, findings, measured = case.trained.model, [], []
    if not model.reads_order:
        raise LeftOut("this model ignores the order of elements by design")
    written = written_input(model)
    for name in case.probe.inputs:
        tower = getattr(model, name, None)
        by_design = isinstance(tower, Model) and not tower.reads_order
        if by_design or not case.in_rows(name):
            continue
        title = f"{name} so far" if name == written else name
        content, backwards = _written_effects(case, name) if name == written else _read_effects(case, name)
        measured.append(
            f"the {title} has no effect on the scores"
            if content <= NOTHING
            else f"another order of the {title} changes scores by {backwards:.2g} standard deviations"
        )
        if math.isnan(content + backwards):
            findings.append(_no_number(case, f"other elements of the {title}, or the same ones in reverse order"))
        elif content <= NOTHING and name != written:
            findings.append(_ignored(case, name, content))
        elif content > NOTHING and backwards <= ORDER:
            findings.append(_unordered(title, content, backwards))
    if not measured:
        raise LeftOut("no input of this task holds one number or vector for each element")
    return Seen("; ".join(measured), findings)


SELF_TESTS = (
    DoctorCheck("padding mask", padding_mask),
    DoctorCheck("future mask", future_mask),
    DoctorCheck("shifted targets", shift),
    DoctorCheck("more than frequencies", frequencies),
    DoctorCheck("order of elements", order),
)


def reversed_between(rows: Tensor, lengths: Tensor, *, first: int) -> Tensor:
    """Return rows [N, T, ...] with the elements from `first` to the last but one of each row reversed."""
    at = torch.arange(rows.shape[1], device=rows.device).expand(len(rows), -1)
    ends = lengths.to(rows.device)[:, None]
    inside = (at >= first) & (at < ends - 1)
    return rows[torch.arange(len(rows), device=rows.device)[:, None], torch.where(inside, first + ends - 2 - at, at)]


def _require_written(case: Case) -> str:
    name = written_input(case.trained.model)
    if name is None:
        raise LeftOut("this model is not autoregressive: it reads its input at once")
    return name


def _padded(case: Case) -> Iterator[tuple[str, int]]:
    """Yield the inputs that have a row shorter than the longest, with the length of the longest."""
    for name in case.probe.inputs:
        lengths = case.lengths(name)
        apart = case.in_rows(name) or isinstance(case.probe.inputs[name], Blocks)
        if apart and min(lengths) < max(lengths):
            yield name, max(lengths)


def _alone(value: Tensor | Blocks, row: int, length: int) -> Tensor | Blocks:
    """Return one row of an input, of `length` elements, without its padding."""
    return value.alone(row) if isinstance(value, Blocks) else value[row : row + 1, :length]


def _real(case: Case, name: str) -> Tensor:
    """Return a mask [N, T] of an input's elements that is False at padding."""
    value = case.probe.inputs[name]
    lengths = torch.tensor(case.lengths(name), device=value.device)
    return torch.arange(value.shape[1], device=value.device) < lengths[:, None]


def _read_effects(case: Case, name: str) -> tuple[float, float]:
    """Return the changes of scores by elements of another row, and by reversed elements, in an input read at once."""
    probe, written = case.probe, written_input(case.trained.model)
    where = None if written is None else _real(case, written)
    value, lengths = probe.inputs[name], torch.tensor(case.lengths(name))
    others = case.scores(probe.replaced(name, value.roll(1, 0)))
    content = _change(case, case.answers, others, where=where, of_other_rows=True)
    turned = case.scores(probe.replaced(name, reversed_between(value, lengths, first=0)))
    return content, _change(case, case.answers, turned, where=where)


def _written_effects(case: Case, name: str) -> tuple[float, float]:
    """Return the changes of the next token's scores by other tokens before the last one read, and by reversed ones."""
    written, lengths = case.probe.inputs[name], torch.tensor(case.lengths(name))
    last = lengths.to(written.device)[:, None] - 1
    at_last = torch.arange(written.shape[1], device=written.device) == last
    others = written.roll(1, 0)
    others = torch.where(others == PAD, others[:, :1], others)  # real positions must hold no padding
    others = torch.where(at_last, written.gather(1, last), others)
    content, backwards = (
        _change(case, case.answers, case.scores(case.probe.replaced(name, other)), where=at_last)
        for other in (others, reversed_between(written, lengths, first=1))
    )
    return content, backwards


def _change(
    case: Case, before: Tensor, after: Tensor, *, where: Tensor | None = None, of_other_rows: bool = False
) -> float:
    """Return the largest of the differences, only of those at `where` if given."""
    found = differences(case, before, after, of_other_rows=of_other_rows)
    return float((found if where is None else found[where]).max())


def _no_number(case: Case, where: str) -> Finding:
    return Finding(
        "scores are not finite",
        f"{where}: the model returns NaN",
        f"{lower_rate(case)} and train anew; in a model of your own, look for a division by zero and for a softmax "
        "over keys that are all masked",
    )


def _ignored(case: Case, name: str, content: float) -> Finding:
    return Finding(
        f"the {name} has no effect on the scores",
        f"the {name} of other rows changes the scores by {content:.1g} standard deviations",
        f"{lower_rate(case)}, raise training.schedule.warmup_steps, set model.norm=pre and model.residual=add; in a "
        f"model of your own, check that the head's vectors depend on the {name}",
    )


def _unordered(title: str, content: float, backwards: float) -> Finding:
    return Finding(
        f"the order of the {title} has no effect on the scores",
        f"other elements change scores by {content:.2g} standard deviations, the same ones in reverse order by "
        f"{backwards:.1g}",
        "give the model positions: model.positions={kind: sinusoidal}, or learned, rotary",
    )
