"""Data of a drawing: the attention between the elements of two items, or of one, and the gold links.

Shapes: L layers, H heads, T target elements (queries, rows), S source elements (keys, columns).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROUNDING = 1e-2  # a half-precision softmax overshoots one by this much


@dataclass(frozen=True)
class Layout:
    """The drawing of an item on a page: a grid of its elements, read row by row, over a picture or without one; or the
    nodes of a graph."""

    labels: Sequence[str]
    """[rows * columns] names of the elements."""
    rows: int
    columns: int
    picture: str | None = None
    """Data URL of an image that fills the whole grid. None: the labels are shown."""
    aspect: float = 1.0
    """Height of an element as a multiple of its width."""
    places: Sequence[tuple[float, float]] = ()
    """Places (x, y) of the nodes of a graph in a square of side 1, from its upper left corner. Empty: a grid."""
    edges: Sequence[tuple[int, int]] = ()
    """Pairs of nodes by number that a line joins."""

    def __post_init__(self) -> None:
        if len(self.labels) != self.rows * self.columns:
            raise ValueError(
                f"a grid of {self.rows} x {self.columns} elements with {len(self.labels)} labels: give one for each"
            )

    @property
    def height(self) -> float:
        """Height of the drawing as a multiple of its width."""
        return 1.0 if self.places else self.rows * self.aspect / self.columns

    @property
    def is_grid(self) -> bool:
        """True if elements are drawn on a grid or as nodes. Otherwise they are written as a line of words."""
        return self.rows > 1 or self.picture is not None or bool(self.places)


@dataclass(frozen=True, eq=False)
class AttentionPicture:
    """One kind of attention over an item. Raises ValueError if its parts do not fit together."""

    title: str

    source: Sequence[str]
    """Labels of S keys, the columns."""

    target: Sequence[str]
    """Labels of T queries, the rows."""

    weights: NDArray[np.floating[Any]]
    """[L, H, T, S]. Rows sum to one, or to zero if all keys are masked."""

    gold: Collection[tuple[int, int]] = ()
    """(source index, target index) of words known to translate each other."""

    chosen: tuple[int, int] | None = None
    """(layer, head) shown first, head -1 for the mean of heads. None: the last layer's mean."""

    note: str = ""
    """A remark under the sentences."""

    kind: str = "Cross-attention"
    """Title of the grid of its heads."""

    scale: str = "of a row's attention"
    """Meaning of 100%."""

    source_units: Sequence[tuple[str, int]] = ()
    """(word, number of elements of `source` that make it up), in order. Empty: the elements are words already."""

    target_units: Sequence[tuple[str, int]] = ()
    """(word, number of elements of `target` that make it up), as `source_units`."""

    source_layout: Layout | None = None
    """Layout of the last elements of `source`; earlier ones, such as a class token, are beside it. None: words."""

    target_layout: Layout | None = None
    """Layout of the last elements of `target`, as `source_layout`."""

    def __post_init__(self) -> None:
        words = (len(self.target), len(self.source))
        if self.weights.ndim != 4 or self.weights.shape[2:] != words or not self.weights.size:
            raise ValueError(
                f"weights are {list(self.weights.shape)}; give [layers, heads, {words[0]} target words, "
                f"{words[1]} source words], each at least 1"
            )
        lowest, highest = float(self.weights.min()), float(self.weights.max())
        if not (lowest >= 0 and highest <= 1 + ROUNDING):  # NaN fails too
            raise ValueError(f"weights lie in [{lowest:g}, {highest:g}]; give attention after its softmax, 0 to 1")
        for name, pieces, units in (
            ("source", self.source, self.source_units),
            ("target", self.target, self.target_units),
        ):
            made_of = sum(count for _, count in units)
            if units and made_of != len(pieces):
                raise ValueError(f"{name}_units are made of {made_of} pieces; give units of all {len(pieces)}")
        if bool(self.source_units) != bool(self.target_units):
            raise ValueError("units of one side only; give those of source and target, or none")
        for name, labels, layout in (
            ("source", self.source, self.source_layout),
            ("target", self.target, self.target_layout),
        ):
            if layout is not None and list(labels[len(labels) - len(layout.labels) :]) != list(layout.labels):
                raise ValueError(f"{name} does not end in the elements of {name}_layout: give the same labels")
        for link in self.gold:
            if not (0 <= link[0] < words[1] and 0 <= link[1] < words[0]):
                raise ValueError(f"gold link {link} is outside {words[1]} source and {words[0]} target words")
        if self.chosen is not None:
            layer, head = self.chosen
            self.matrix(layer, None if head == -1 else head)

    @property
    def class_token(self) -> str | None:
        """Label of the first query if it is the only one outside the layout, otherwise None."""
        layout = self.target_layout
        return self.target[0] if layout is not None and len(self.target) == len(layout.labels) + 1 else None

    @property
    def has_words(self) -> bool:
        """True if the elements are pieces of words."""
        return bool(self.source_units)

    def in_words(self) -> "AttentionPicture":
        """Return the attention between words: the sum over the pieces of a key, the mean over the pieces of a query.

        Without units, return the picture itself. Gold links, which join pieces, are left out.
        """
        if not self.has_words:
            return self
        columns = _starts(self.source_units)
        rows, lengths = _starts(self.target_units), [count for _, count in self.target_units]
        to_words = np.add.reduceat(self.weights, columns, axis=3)
        between = np.add.reduceat(to_words, rows, axis=2) / np.array(lengths)[:, None]
        source, target = ([word for word, _ in units] for units in (self.source_units, self.target_units))
        return replace(
            self,
            source=source,
            target=target,
            weights=between.clip(0, 1),
            gold=(),
            source_units=(),
            target_units=(),
            source_layout=None,
            target_layout=None,
        )

    def head_name(self, layer: int, head: int | None) -> str:
        """Return the title of a head, or of the mean of the layer's heads for None. Titles count from 1."""
        return f"{self.kind}, layer {layer + 1}, {'mean of heads' if head is None else f'head {head + 1}'}"

    def matrix(self, layer: int, head: int | None) -> NDArray[np.floating[Any]]:
        """Return the weights [T, S] of a head, or the mean of the layer's heads for None."""
        num_layers, num_heads = self.weights.shape[:2]
        if not 0 <= layer < num_layers:
            raise ValueError(f"layer {layer} is not drawn; choose 0 to {num_layers - 1}")
        heads: NDArray[np.floating[Any]] = self.weights[layer]
        if head is not None and not 0 <= head < num_heads:
            raise ValueError(f"head {head} is not drawn; choose 0 to {num_heads - 1}, or the mean of heads")
        return heads.mean(axis=0) if head is None else heads[head, :, :]


def _starts(units: Sequence[tuple[str, int]]) -> NDArray[np.int64]:
    """Return the index of the first piece of each unit."""
    return np.cumsum([0, *(count for _, count in units[:-1])])
