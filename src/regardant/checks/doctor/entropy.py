"""Where attention looks on the run's own validation data: heads that are stuck, or that cannot choose.

Shape legend: N rows, H heads, Q queries, K keys.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regardant.attention.hard import Hard
from regardant.checks.doctor.case import Case, Check, Finding, LeftOut, Seen
from regardant.data.vocabulary import PAD
from regardant.inspection import capture
from regardant.pictures import Bars, bar_chart
from regardant.tasks.probe import Probe

ONE_HOT = 0.99
"""What the largest weight of a row exceeds that looks at one key alone, and the share of such rows in its head."""

ONE_POSITION = 0.95
"""The share of a sentence's rows whose largest weight is on the same key."""

UNIFORM = 1e-3
"""What the largest weight may exceed the mean by, as a share of it."""

NEARLY_ALL = 0.9
"""Of a layer's heads."""


@dataclass(frozen=True)
class Head:
    """One head of a layer, on the probe."""

    entropy: float
    """In the mean, as a share of what it would be if it looked at all keys alike: 0 to 1."""
    one_hot: bool
    """Every query looks at one key alone."""
    stuck: bool
    """And all of a sentence at the same one."""
    uniform: bool
    """Every query looks at all that it sees alike."""


def attention_entropy(case: Case) -> Seen:
    """Layers whose heads all look at one position, or at nothing in particular."""
    layers = dict(_layers(case))
    if not layers:
        raise LeftOut("this model has no attention whose weights are shares of a whole")
    everyone = [head.entropy for heads in layers.values() for head in heads]
    measured = f"{min(everyone):.2f} to {max(everyone):.2f} of the highest possible, in {len(everyone)} heads"
    bars = [
        Bars(
            f"{name}: entropy, % of the highest possible",
            [(f"head {number}", 100 * head.entropy) for number, head in enumerate(heads)],
        )
        for name, heads in layers.items()
    ]
    picture = bar_chart(bars, title="entropy of each head, in per cent of the highest possible")
    return Seen(measured, _findings(case, layers), [picture])


ENTROPY = (Check("attention entropy", attention_entropy),)


def _findings(case: Case, layers: dict[str, Sequence[Head]]) -> list[Finding]:
    stuck = [name for name, heads in layers.items() if _nearly_all([head.stuck for head in heads])]
    uniform = [name for name, heads in layers.items() if _nearly_all([head.uniform for head in heads])]
    kinds: dict[str, list[Head]] = defaultdict(list)
    for name, heads in layers.items():
        if "self_attention" in name:
            kinds[re.sub(r"\.?layers\.\d+\.", ".", name).strip(".")] += heads
    saturated = [
        kind for kind, heads in kinds.items() if len(heads) > 1 and _nearly_all([head.one_hot for head in heads])
    ]
    findings = []
    if stuck:
        findings.append(_collapsed(case, layers, stuck, "all heads look at one position, whatever the query"))
    elif saturated:
        names = [name for name in layers if any(name.endswith(kind.rpartition(".")[2]) for kind in saturated)]
        findings.append(_collapsed(case, layers, names, "every head looks at a single key"))
    if uniform:
        findings.append(
            Finding(
                "attention has collapsed: all heads look at everything alike",
                f"{_listed(uniform)}: no weight exceeds the mean of its row by more than {UNIFORM:.1%}",
                "check that scores are neither zero nor constant (queries and keys, their scale and initialisation); "
                "lower model.dropout, or raise model.d_model over model.num_heads",
            )
        )
    return findings


def _collapsed(case: Case, layers: dict[str, Sequence[Head]], names: Sequence[str], what: str) -> Finding:
    entropies = [head.entropy for name in names for head in layers[name]]
    dropout = getattr(case.config.model, "dropout", None)
    raised = "" if dropout is None else f"raise model.dropout (now {dropout:g}), "
    return Finding(
        f"attention has collapsed: {what}",
        f"{_listed(names)}: entropy {max(entropies):.1g} of the highest possible at most",
        f"{raised}lower training.schedule.learning_rate, keep scores small (a scale of 1 / sqrt of the size of a key, "
        "smaller initial weights), or take attention whose scores are bounded: {kind: cosine}",
    )


def _layers(case: Case) -> Iterator[tuple[str, Sequence[Head]]]:
    """Every place of attention and its heads."""
    model, probe = case.trained.model, case.probe
    by_design = {name.removesuffix(".mechanism") for name, part in model.named_modules() if isinstance(part, Hard)}
    try:
        with torch.inference_mode(), capture(model, "*.weights") as records:
            case.model.scores(*probe.inputs.values())
    except ValueError as error:  # no place of that name
        raise LeftOut("this model has no attention") from error
    for place in records:
        name = place.removesuffix(".weights")
        weights = records.whole(place)
        sides = _sides(name, probe, weights)
        if name in by_design or sides is None or weights.min() < 0 or weights.sum(-1).max() > 1.01:
            continue
        if heads := judged(weights, *sides):
            yield name, heads


def _sides(name: str, probe: Probe, weights: Tensor) -> tuple[Tensor, Tensor] | None:
    """Which queries [N, Q] and keys [N, K] are real. None: it is between other things than tokens."""
    written = (list(probe.inputs.values())[-1] != PAD).cpu()
    read = written if "source" not in probe.inputs else (probe.inputs["source"] != PAD).cpu()
    queries = read if name.startswith("encoder") else written
    keys = read if name.startswith("encoder") or "cross" in name else written
    fits = weights.shape[0] == len(written) and weights.shape[2:] == (queries.shape[1], keys.shape[1])
    return (queries, keys) if fits else None


def judged(weights: Tensor, queries: Tensor, keys: Tensor) -> list[Head]:
    """Heads of weights [N, H, Q, K], from the queries that see two real keys at least. None of them: no heads."""
    seen = keys.sum(1)[:, None].expand_as(queries)
    if weights.shape[2] == weights.shape[3] and not weights.triu(1).any():  # causal
        seen = torch.minimum(seen, torch.arange(1, weights.shape[2] + 1)[None])
    rows = queries & (seen > 1)
    if not rows.any():
        return []
    largest, where = weights.max(-1)
    shares = torch.special.entr(weights).sum(-1) / seen.clamp_min(2).log()[:, None]
    alike = largest * (weights > 0).sum(-1)
    last = rows.shape[1] - 1 - rows.flip(1).int().argmax(1)
    same = where == where.gather(2, last[:, None, None].expand(-1, weights.shape[1], 1))
    long = rows & (rows.sum(1, keepdim=True) > 2)
    heads = []
    for head in range(weights.shape[1]):
        one_hot = float((largest[:, head][rows] > ONE_HOT).float().mean()) > ONE_HOT
        stuck = one_hot and bool(long.any()) and float(same[:, head][long].float().mean()) > ONE_POSITION
        spread = weights[:, head][rows].gt(0).sum(-1).gt(1).all()
        uniform = bool(spread) and bool((alike[:, head][rows] <= 1 + UNIFORM).all())
        heads.append(Head(float(shares[:, head][rows].mean()), one_hot, stuck, uniform))
    return heads


def _nearly_all(flags: Sequence[bool]) -> bool:
    return sum(flags) >= NEARLY_ALL * len(flags)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"
