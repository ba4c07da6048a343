"""The trained model on its own validation data, of which something is changed that must not matter, or must.

Shape legend: N rows, T target tokens or tokens of a text, S source tokens, V vocabulary.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from regardant.checks.doctor.case import Case, Check, Finding, LeftOut, Seen, lower_rate
from regardant.data.vocabulary import PAD
from regardant.tasks.probe import Probe

NOTHING = 1e-3
"""A change of logits that rounding explains, in standard deviations of the logits."""

ORDER = 1e-4
"""The same where tokens run backwards. Sums in another order change logits by a hundredth of it."""

FEW_ROWS = 4
"""As many are run alone, without padding."""

NATS_OFF = 1.0
"""What a loss may differ from the validated one, on a part of the data."""

AS_FREQUENCIES = 0.97
"""What is left of the entropy of the tokens' frequencies where nothing else was learned."""

REPEATS = 0.5
"""The share of places in which a model that repeats what it reads does so."""


def padding_mask(case: Case) -> Seen:
    """The padding of a batch never changes a real position."""
    probe = case.probe
    if "source" not in probe.inputs:
        raise LeftOut("the batches of this task have no padding")
    lengths = (probe.inputs["source"] != PAD).sum(1)
    shortest = [row for row in lengths.argsort()[:FEW_ROWS].tolist() if lengths[row] < probe.inputs["source"].shape[1]]
    if not shortest:
        raise LeftOut("all validation sentences that were tried are equally long")
    changes = {}
    for row in shortest:
        words = int((written_of(probe)[row] != PAD).sum())
        alone = case.scores(
            probe.inputs["source"][row : row + 1, : lengths[row]], written_of(probe)[row : row + 1, :words]
        )
        changes[row] = _change(case, case.logits[row, :words], alone[0])
    worst = max(changes, key=changes.__getitem__)
    measured = (
        f"logits change by {changes[worst]:.1g} of their spread when {len(shortest)} sentences lose their padding"
    )
    if changes[worst] <= NOTHING:
        return Seen(measured)
    finding = Finding(
        "padding changes what the model says: a padding mask is missing",
        f"a sentence of {int(lengths[worst])} tokens, padded to {probe.inputs['source'].shape[1]}: its logits change "
        f"by {changes[worst]:.2g} of their spread when it stands alone; rounding would be under {NOTHING:g}",
        "hide padding as keys: View(keys=tokens != PAD) for every attention on the source, in the encoder and across, "
        "and zero it before what mixes positions otherwise",
    )
    return Seen(measured, [finding])


def future_mask(case: Case) -> Seen:
    """What comes later never changes what was said before."""
    written = written_of(case.probe)
    cut = int((written != PAD).sum(1).max()) // 2
    if cut < 1 or len(written) < 2:
        raise LeftOut("the validation data is too short to be cut")
    changed = written.clone()
    changed[:, cut:] = written.roll(1, 0)[:, cut:]
    before = (written != PAD)[:, :cut]
    change = _change(
        case, case.logits[:, :cut][before], case.scores(*with_written(case.probe, changed))[:, :cut][before]
    )
    measured = f"logits of the first {cut} positions change by {change:.1g} of their spread when later tokens change"
    if change <= NOTHING:
        return Seen(measured)
    finding = Finding(
        "the future changes the past: a causal mask is missing",
        f"other tokens from position {cut} on change the logits before it by {change:.2g} of their spread; rounding "
        f"would be under {NOTHING:g}",
        "let no position that writes see a later one: View(causal=True) for every self-attention of the decoder, and "
        "no padding to the right in what mixes positions otherwise",
    )
    return Seen(measured, [finding])


def shift(case: Case) -> Seen:
    """The loss that was trained is that of the next token."""
    probe, told = case.probe, case.kept
    real = probe.targets != PAD
    said = case.logits[real]
    loss = float(F.cross_entropy(said, probe.targets[real]))
    repeated = float((said.argmax(-1) == written_of(probe)[real]).float().mean())
    measured = f"{loss:.2f} nats to say the next token, {told['loss']:.2f} in validation"
    if loss <= told["loss"] + NATS_OFF or loss <= 2 * told["loss"]:
        return Seen(measured)
    bleu = f" BLEU of free translations was {told['bleu']:.1f}." if "bleu" in told else ""
    repeats = repeated > REPEATS
    what = "the targets are not shifted: the model repeats what it reads" if repeats else "another loss was trained"
    finding = Finding(
        what if repeats else f"{what} than that of the next token",
        f"validation said {told['loss']:.2f} nats a token at update {told['update']:,}, but to say the next token "
        f"costs {loss:.2f}. In {repeated:.0%} of the places the likeliest token is the one just read.{bleu}",
        "in the model's forward, read target[:, :-1] and ask for target[:, 1:]",
    )
    return Seen(measured, [finding])


def frequencies(case: Case) -> Seen:
    """The model knows more of the next token than how frequent each is."""
    case.curve("loss")  # a few updates teach no more
    asked = case.probe.targets[case.probe.targets != PAD]
    shares = asked.bincount() / len(asked)
    entropy, told = float(torch.special.entr(shares).sum()), case.kept
    measured = f"{told['loss']:.2f} nats a token in validation, {entropy:.2f} from the frequencies of tokens alone"
    if told["loss"] < AS_FREQUENCIES * entropy:
        return Seen(measured)
    finding = Finding(
        "the model knows no more than how frequent each token is",
        f"{measured}, at update {told['update']:,}",
        f"{lower_rate(case)}, raise training.schedule.warmup_steps, or set model.norm=pre; where the loss still "
        "falls, train longer",
    )
    return Seen(measured, [finding])


def order(case: Case) -> Seen:
    """The order of tokens matters wherever the tokens do."""
    probe, findings, told = case.probe, [], []
    last = (written_of(probe) != PAD).sum(1) - 1
    if "source" in probe.inputs:
        effects = [
            _change(case, case.logits, case.scores(other, written_of(probe)), where=written_of(probe) != PAD)
            for other in (probe.inputs["source"].roll(1, 0), reversed_between(probe.inputs["source"], first=0))
        ]
        told.append(_told("source", *effects))
        findings += _of_order("the source", *effects)
        if effects[0] <= NOTHING:
            findings.append(_ignored(case, effects[0]))
    at_last = torch.arange(written_of(probe).shape[1], device=last.device) == last[:, None]
    own_last = written_of(probe).gather(1, last[:, None])
    others = written_of(probe).roll(1, 0)
    effects = [
        _change(case, case.logits, case.scores(*with_written(probe, other)), where=at_last)
        for other in (
            torch.where(at_last, own_last, _without_padding(others)),
            reversed_between(written_of(probe), first=1),
        )
    ]
    name = "text" if "source" not in probe.inputs else "target"
    told.append(_told(name, *effects))
    findings += _of_order(f"the {name} so far", *effects)
    return Seen("; ".join(told), findings)


SELF_TESTS = (
    Check("padding mask", padding_mask),
    Check("future mask", future_mask),
    Check("shifted targets", shift),
    Check("more than frequencies", frequencies),
    Check("order of tokens", order),
)


def reversed_between(tokens: Tensor, *, first: int) -> Tensor:
    """Rows [N, T] of which the real tokens from `first` to the last but one run backwards."""
    lengths = (tokens != PAD).sum(1, keepdim=True)
    at = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)
    mirrored = first + lengths - 2 - at
    inside = (at >= first) & (at < lengths - 1)
    return tokens.gather(1, torch.where(inside, mirrored, at))


def written_of(probe: Probe) -> Tensor:
    """Return the tokens that the model reads as written so far."""
    return probe.inputs["target"] if "target" in probe.inputs else probe.inputs["text"]


def with_written(probe: Probe, written: Tensor) -> Sequence[Tensor]:
    """Return the inputs with other tokens written."""
    return list(probe.replaced("target" if "target" in probe.inputs else "text", written).values())


def _without_padding(tokens: Tensor) -> Tensor:
    """Padding replaced by the first token: among real positions it would be none."""
    return torch.where(tokens == PAD, tokens[:, :1], tokens)


def _change(case: Case, before: Tensor, after: Tensor, *, where: Tensor | None = None) -> float:
    """The largest, in standard deviations of all logits."""
    difference = (before - after).abs()
    if where is not None:
        difference = difference[where]
    return float(difference.max() / case.logits.std().clamp_min(1e-12))


def _ignored(case: Case, content: float) -> Finding:
    return Finding(
        "the source makes no difference",
        f"sources of other sentences change the logits by {content:.1g} of their spread",
        f"{lower_rate(case)}, raise training.schedule.warmup_steps, set model.norm=pre and model.residual=add; of a "
        "model of your own, see that the decoder reads what the encoder says",
    )


def _told(name: str, content: float, order: float) -> str:
    if content <= NOTHING:
        return f"the {name} is not read"
    return f"another order of the {name} changes logits by {order:.2g} of their spread"


def _of_order(name: str, content: float, order: float) -> list[Finding]:
    if content <= NOTHING or order > ORDER:
        return []
    return [
        Finding(
            f"the order of {name} does not matter",
            f"other tokens change the logits by {content:.2g} of their spread, the same ones backwards by {order:.1g}",
            "give the model positions: model.positions={kind: sinusoidal}, or learned, rotary",
        )
    ]
