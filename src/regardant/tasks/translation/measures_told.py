"""What was measured, as tables for people."""

from collections.abc import Iterator

from regardant.inspection import HeadMeasures
from regardant.pictures.table import Table
from regardant.tasks.translation.inspection import KINDS
from regardant.tasks.translation.measures import CROSS, MEAN, Agreement, Measures

SHOWN = {
    "entropy": "entropy,\nnats",
    "entropy_share": "of\nuniform",
    "distance": "distance",
    "previous": "previous",
    "own": "own",
    "next": "next",
    "first": "first",
    "last": "last",
    "coverage": "coverage",
    "idle": "idle\ntoken",
}
"""Of HeadMeasures, with the heads of the columns."""

LEAST_COUNT = 20
"""Dependents that a relation must have to be shown; JSON has all."""


def told(measures: Measures) -> list[str]:
    """A table after the other, blank lines between."""
    tables = [*_heads(measures), *_followed(measures)]
    for rows in (_explained(measures), _lens(measures), _relations(measures)):
        tables += rows
    lines = [f"{measures.name}: {measures.sentences:,} pairs"]
    for table in tables:
        lines += ["", *table.lines()]
    return lines + [""] * bool(measures.notes) + measures.notes


def _heads(measures: Measures) -> Iterator[Table]:
    for kind, found in measures.heads.items():
        importance = measures.importance[kind]
        columns = ["head", *SHOWN.values(), "most\nalike", "loss\nwithout", "by\ngradient"]
        rows = []
        for number, (layer, head) in enumerate(_places(found)):
            nearest = int(found.nearest[number])
            cells = _cells(found, layer, head)
            cells.append(
                "-" if nearest == number else f"{_named(found, nearest)} {found.distances[number, nearest]:.2f}"
            )
            cells += [f"{importance.ablation[layer, head]:+.4f}", f"{importance.gradient[layer, head]:.4f}"]
            rows.append([f"{layer}.{head}", *cells])
        if kind == CROSS and measures.alignment:
            columns += ["alignment\nerror", "shifted\nby one"]
            for row in rows:
                layer, head = map(int, row[0].split("."))
                row += [f"{way[layer][head]:.3f}" for way in measures.alignment]
            rows += _means_of_layers(measures, len(columns))
        rho = importance.rank_correlation
        agree = "" if rho is None else f"; importance by ablation and by gradient: Spearman's rho {rho:.2f}"
        idle = found.no_op.sum()
        yield Table(f"{_told_kind(kind)}, layer.head ({idle} idle){agree}", columns, rows)


def _means_of_layers(measures: Measures, width: int) -> list[list[str]]:
    plain, shifted = measures.alignment
    return [
        [f"{layer}, mean", *["-"] * (width - 3), f"{one[-1]:.3f}", f"{other[-1]:.3f}"]
        for layer, (one, other) in enumerate(zip(plain, shifted, strict=True))
    ]


def _followed(measures: Measures) -> Iterator[Table]:
    columns = ["up to", *SHOWN.values()]
    for kind, found in measures.rollout.items():
        rows = [[f"layer {layer}", *_cells(found, layer, 0)] for layer in range(len(found.entropy))]
        flow = measures.flow[kind]
        rows.append([f"flow, {flow.sentences} pairs", *_cells(flow, 0, 0)])
        yield Table(f"{_told_kind(kind)} followed down to the input by rollout", columns, rows)


def _explained(measures: Measures) -> Iterator[Table]:
    if not measures.explanations:
        return
    rows = [[_told_way(one), f"{one.gradient:.2f}", f"{one.ablation:.2f}"] for one in measures.explanations]
    rows.append(["gradient x input", "-", f"{measures.gradient_and_ablation:.2f}"])
    caption = f"Does cross-attention explain? Kendall's tau with other explanations, {measures.explained} pairs"
    yield Table(caption, ["", "gradient\nx input", "leave\none out"], rows)


def _lens(measures: Measures) -> Iterator[Table]:
    if not measures.lens:
        return
    rows = [
        [f"{one.layers}", f"{one.first:.1%}", f"{one.rank:g}", f"{one.probability:.3f}", f"{one.divergence:.3f}"]
        for one in measures.lens
    ]
    heads = ["decoder\nlayers", "token\nis first", "median\nrank", "probability", "nats from\nthe last"]
    yield Table("Logit lens: what the decoder would say after so many layers", heads, rows)


def _relations(measures: Measures) -> Iterator[Table]:
    if not measures.relations:
        return
    rows = []
    for one in measures.relations:
        if one.count >= LEAST_COUNT:
            found = [f"{one.count:,}", f"{one.layer}.{one.head}", one.way, f"{one.accuracy:.1%}"]
            rows.append([one.relation, *found, f"{one.offset:+d}", f"{one.baseline:.1%}"])
    heads = ["relation", "words", "head", "way", "right", "offset", "right by\noffset"]
    caption = f"Grammar: the best head of each relation of {LEAST_COUNT} words or more, chosen on other sentences"
    yield Table(caption, heads, rows)


def _told_way(one: Agreement) -> str:
    head = "mean of heads" if one.head == MEAN else f"head {one.head}"
    return f"layer {one.layer}, {head}{' x rollout of the encoder' if one.rolled else ''}"


def _told_kind(kind: str) -> str:
    return KINDS.get(kind, kind)


def _cells(found: HeadMeasures, layer: int, head: int) -> list[str]:
    cells = [f"{float(getattr(found, name)[layer, head]):.2f}" for name in SHOWN]
    if found.no_op[layer, head]:
        cells[-1] += "!"
    return cells


def _places(found: HeadMeasures) -> list[tuple[int, int]]:
    layers, heads = found.entropy.shape
    return [(layer, head) for layer in range(layers) for head in range(heads)]


def _named(found: HeadMeasures, number: int) -> str:
    layer, head = divmod(number, found.entropy.shape[1])
    return f"{layer}.{head}"
