"""Tables of the measures that only a translator has."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from regardant.inspection import RelationScore
from regardant.pictures.table import Table
from regardant.tasks.measure_tables import Extra, head_tables
from regardant.tasks.measures import Measures

ENCODER, CROSS = "encoder.self_attention", "decoder.cross_attention"

MEAN = -1
"""The head that stands for the mean of a layer's heads."""


LEAST_COUNT = 20
"""Minimum number of dependents of a relation in the table; JSON has all relations."""


@dataclass(frozen=True)
class ExplanationAgreement:
    """Agreement of attention with two other explanations on the order of source tokens: Kendall's tau, mean over target
    tokens."""

    layer: int
    head: int
    """MEAN: the mean of the layer's heads."""
    rolled: bool
    """True if attention is followed through the encoder by rollout."""
    gradient: float
    """Agreement with gradient x input."""
    ablation: float
    """Agreement with leaving one token out."""


@dataclass
class TranslatorMeasures(Measures):
    """Measures of any model and those that only a translator has."""

    explained: int = 0
    explanations: list[ExplanationAgreement] = field(default_factory=list)
    gradient_and_ablation: float = math.nan
    """Agreement of gradient x input with leaving one out, with which that of attention is to be compared."""
    alignment: list[list[list[float]]] = field(default_factory=list)
    """Alignment error rate by shift (0 or 1), layer and head. The last head is the mean of the others."""
    relations: list[RelationScore] = field(default_factory=list)

    def tables(self) -> Iterator[Table]:
        return tables(self)


def tables(measures: TranslatorMeasures) -> Iterator[Table]:
    """Yield tables of heads, of layers, of explanations and of grammar."""
    for kind, found in measures.heads.items():
        aligned = measures.alignment if kind == CROSS else []
        columns = [
            _column(name, way) for name, way in zip(("alignment\nerror", "shifted\nby one"), aligned, strict=False)
        ]
        means = [
            [f"{layer + 1}, mean", "-", "-", "-", "-", *(f"{way[layer][-1]:.3f}" for way in aligned)]
            for layer in range(len(found.entropy) if aligned else 0)
        ]
        yield from head_tables(kind, found, measures.importance[kind], columns, means)
    yield from measures.followed()
    yield from _explained(measures)
    yield from _relations(measures)


def _column(name: str, rates: list[list[float]]) -> Extra:
    return name, [[f"{rate:.3f}" for rate in layer] for layer in rates]


def _explained(measures: TranslatorMeasures) -> Iterator[Table]:
    if not measures.explanations:
        return
    rows = [[_describe_way(one), f"{one.gradient:.2f}", f"{one.ablation:.2f}"] for one in measures.explanations]
    rows.append(["gradient x input", "-", f"{measures.gradient_and_ablation:.2f}"])
    caption = f"Cross-attention and other explanations: Kendall's tau, {measures.explained} pairs"
    yield Table(caption, ["", "gradient\nx input", "leave\none out"], rows)


def _relations(measures: TranslatorMeasures) -> Iterator[Table]:
    if not measures.relations:
        return
    rows = []
    for one in measures.relations:
        if one.count >= LEAST_COUNT:
            found = [f"{one.count:,}", f"{one.layer + 1}.{one.head + 1}", one.way, f"{one.accuracy:.1%}"]
            rows.append([one.relation, *found, f"{one.offset:+d}", f"{one.baseline:.1%}"])
    heads = ["relation", "words", "head", "direction", "correct", "offset", "offset\ncorrect"]
    caption = f"Grammar: best heads of relations of {LEAST_COUNT} words or more, chosen on other sentences"
    yield Table(caption, heads, rows)


def _describe_way(one: ExplanationAgreement) -> str:
    head = "mean of heads" if one.head == MEAN else f"head {one.head + 1}"
    return f"layer {one.layer + 1}, {head}{' x rollout of the encoder' if one.rolled else ''}"
