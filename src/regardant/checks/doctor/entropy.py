"""Collapsed attention on the run's own validation data: heads with one-hot weights, or with uniform ones.

Shape legend: N rows, H heads, Q queries, K keys.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regardant.attention.hard import Hard
from regardant.checks.doctor.case import Case, DoctorCheck, Finding, LeftOut, Seen, lower_rate
from regardant.inspection import attention_places, capture, real_elements
from regardant.pictures import Bars, bar_chart

ONE_HOT = 0.99
"""Minimum largest weight of a one-hot row, and minimum share of such rows in a one-hot head."""

ONE_POSITION = 0.95
"""Minimum share of a stuck head's rows whose largest weight is on the same key as that of the sentence's last row."""

UNIFORM = 1e-3
"""Maximum excess of a uniform row's largest weight over its mean weight, as a share of the mean."""

NEARLY_ALL = 0.9
"""Minimum share of heads for a finding about a layer."""


@dataclass(frozen=True)
class HeadStatistics:
    """Statistics of one attention head on the probe."""

    entropy: float
    """Mean entropy of the rows, as a share of that of uniform weights: 0 to 1."""
    one_hot: bool
    """True if nearly every query attends to one key alone."""
    stuck: bool
    """True if nearly all queries of a sentence attend to the same key."""
    uniform: bool
    """True if every query has equal weights on several keys, and none on others."""


def attention_entropy(case: Case) -> Seen:
    """Find layers whose heads all attend to one position, or to all positions alike."""
    layers = dict(_layers(case))
    if not layers:
        raise LeftOut("this model has no attention with non-negative weights that sum to one")
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


ENTROPY = (DoctorCheck("attention entropy", attention_entropy),)


def _findings(case: Case, layers: dict[str, Sequence[HeadStatistics]]) -> list[Finding]:
    stuck = [name for name, heads in layers.items() if _nearly_all([head.stuck for head in heads])]
    uniform = [name for name, heads in layers.items() if _nearly_all([head.uniform for head in heads])]
    model, saturated = case.trained.model, []
    for kind, places in attention_places(model).items():
        sides, looked_at = model.attention_kinds[kind], [place for place in places if place in layers]
        one_hot = [head.one_hot for place in looked_at for head in layers[place]]
        if sides.queries == sides.keys and len(one_hot) > 1 and _nearly_all(one_hot):
            saturated += looked_at
    findings = []
    if stuck:
        findings.append(_collapsed(case, layers, stuck, "all heads attend to one position, whatever the query"))
    elif saturated:
        findings.append(_collapsed(case, layers, saturated, "every head attends to a single key"))
    if uniform:
        findings.append(
            Finding(
                "attention has collapsed: all heads have uniform weights",
                f"{_listed(uniform)}: no weight exceeds the mean of its row by more than {UNIFORM:.1%}",
                "check that scores are neither zero nor constant (queries and keys, their scale and initialisation); "
                "lower model.dropout, or raise model.d_model relative to model.num_heads",
            )
        )
    return findings


def _collapsed(case: Case, layers: dict[str, Sequence[HeadStatistics]], names: Sequence[str], what: str) -> Finding:
    entropies = [head.entropy for name in names for head in layers[name]]
    dropout = getattr(case.config.model, "dropout", None)
    raised = "" if dropout is None else f"raise model.dropout (now {dropout:g}), "
    return Finding(
        f"attention has collapsed: {what}",
        f"{_listed(names)}: entropy at most {max(entropies):.1g} of the highest possible",
        f"{raised}{lower_rate(case)}, keep scores small (a scale of 1 / sqrt(key size), smaller "
        "initial weights), or take attention whose scores are bounded: {kind: cosine}",
    )


def _layers(case: Case) -> Iterator[tuple[str, Sequence[HeadStatistics]]]:
    """Yield each place of attention with its heads. Raises LeftOut for a model without attention."""
    model, probe = case.trained.model, case.probe
    kinds = attention_places(model)
    if not kinds:
        raise LeftOut("this model has no attention")
    by_design = {name.removesuffix(".mechanism") for name, part in model.named_modules() if isinstance(part, Hard)}
    with torch.inference_mode(), capture(model, "*.weights") as records:
        case.scores(probe.inputs)
    for kind, places in kinds.items():
        sides = model.attention_kinds[kind]
        queries, keys = (real_elements(model, name, probe.inputs[name]) for name in (sides.queries, sides.keys))
        for place in places:
            weights = records.whole(f"{place}.weights")
            # Keys that are not elements of the input have no mask of real ones.
            fits = weights.shape[2:] == (queries.shape[1], keys.shape[1])
            if place in by_design or not fits or weights.min() < 0 or weights.sum(-1).max() > 1.01:
                continue
            if heads := judged(weights, queries, keys, causal=sides.causal):
                yield place, heads


def judged(weights: Tensor, queries: Tensor, keys: Tensor, *, causal: bool) -> list[HeadStatistics]:
    """Return heads of weights [N, H, Q, K], judged by queries with at least two real keys. Empty without any."""
    seen = keys.sum(1)[:, None].expand_as(queries)
    if causal:
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
        heads.append(HeadStatistics(float(shares[:, head][rows].mean()), one_hot, stuck, uniform))
    return heads


def _nearly_all(flags: Sequence[bool]) -> bool:
    return sum(flags) >= NEARLY_ALL * len(flags)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"
