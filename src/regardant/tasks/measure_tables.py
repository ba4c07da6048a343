"""The measures of a model's attention as tables, none wider than a terminal of 80 columns."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from regardant.inspection import HeadImportance, HeadMeasures
from regardant.pictures.table import Table

if TYPE_CHECKING:
    from regardant.tasks.measures import LensLayer

KINDS = {
    "memory.self_attention": "Memory self-attention",
    "encoder.self_attention": "Encoder self-attention",
    "encoder.cross_attention": "Cross-attention",
    "decoder.self_attention": "Decoder self-attention",
    "decoder.cross_attention": "Cross-attention",
}
"""Titles of kinds of attention; other kinds are called by their own name."""

SHOWN = {
    "entropy": "en-\ntropy",
    "entropy_share": "of\nuniform",
    "distance": "dis-\ntance",
    "previous": "pre-\nvious",
    "own": "own",
    "next": "next",
    "first": "first",
    "last": "last",
    "coverage": "cover-\nage",
    "idle": "idle\nkey",
}
"""Headings of the columns, by field of HeadMeasures."""

COLUMNS = [
    "Rows are layer.head, counted from 1. Values are means over queries.",
    "  entropy           nats; 0: all weight on one key. Of uniform 1: equal weights",
    "  distance          mean number of positions between a query and its keys",
    "  previous to last  share of weight on the previous key, the query's own, the",
    "                    next, the first and the last",
    "  coverage          share of the keys that receive weight",
    "  idle key          largest weight of the first key, a special token or",
    "                    punctuation; ! from 0.9 on: the head does nothing",
    "  most alike, at    nearest head and its distance; 0: equal weights, 1: disjoint",
    "  loss without      rise of the loss per target without the head, in the unit",
    "                    of the loss: nats, or errors of forecasts",
    "  by gradient       the same, estimated by one backward pass for all heads;",
    "                    rho: rank correlation of both",
    "docs/measures.md has the formulas, the sources and how to read them.",
]
"""Legend of the tables' columns."""

Extra = tuple[str, Sequence[Sequence[str]]]
"""A column: its heading, and its cells by layer and head."""


def kind_title(kind: str) -> str:
    """Return the title of a kind of attention, with the name of the input if a model has one such kind for each."""
    for name, title in KINDS.items():
        if kind == name:
            return title
        if kind.endswith(f".{name}"):
            return f"{title} ({kind.removesuffix(f'.{name}')})"
    return kind


def head_tables(
    kind: str,
    found: HeadMeasures,
    importance: HeadImportance,
    extra: Sequence[Extra] = (),
    rows: Sequence[list[str]] = (),
) -> Iterator[Table]:
    """Yield a table of the attention of each head and one of its importance, the latter with extra columns and rows."""
    places = _places(found)
    idle = f" ({found.no_op.sum()} idle)" if found.no_op.any() else ""
    looks = [[f"{layer + 1}.{head + 1}", *_cells(found, layer, head)] for layer, head in places]
    yield Table(f"{kind_title(kind)}: where each head attends{idle}", ["head", *SHOWN.values()], looks)
    worth = []
    for number, (layer, head) in enumerate(places):
        nearest = int(found.nearest[number])
        alone = nearest == number
        alike = ["-", "-"] if alone else [_named(found, nearest), f"{found.distances[number, nearest]:.2f}"]
        lost, gradient = f"{importance.ablation[layer, head]:+.4f}", f"{importance.gradient[layer, head]:.4f}"
        worth.append([f"{layer + 1}.{head + 1}", *alike, lost, gradient, *(cells[layer][head] for _, cells in extra)])
    rho = importance.rank_correlation
    agree = "" if rho is None else f" (Spearman's rho {rho:.2f})"
    heads = ["head", "most\nalike", "at", "loss\nwithout", "by\ngradient", *(name for name, _ in extra)]
    yield Table(f"{kind_title(kind)}: importance of each head{agree}", heads, [*worth, *rows])


def followed_table(kind: str, rolled: HeadMeasures, flow: HeadMeasures | None) -> Table:
    """Return the table of rollout up to each layer, and of flow."""
    rows = [[f"layer {layer + 1}", *_cells(rolled, layer, 0)] for layer in range(len(rolled.entropy))]
    if flow is not None:
        rows.append([f"flow of {flow.sentences}", *_cells(flow, 0, 0)])
    return Table(f"{kind_title(kind)}: rollout down to the input", ["up to", *SHOWN.values()], rows)


def lens_table(lens: "Sequence[LensLayer]") -> Table:
    """Return the table of the logit lens, a row for each number of layers."""
    rows = [
        [f"{one.layers}", f"{one.first:.1%}", f"{one.rank:g}", f"{one.probability:.3f}", f"{one.divergence:.3f}"]
        for one in lens
    ]
    heads = ["layers", "accuracy", "median\nrank", "probability", "KL from\nfinal"]
    return Table("Logit lens: prediction after each number of layers", heads, rows)


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
    return f"{layer + 1}.{head + 1}"
