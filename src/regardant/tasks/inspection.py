"""Inspection of one item: the tensors recorded while a model read it, to be drawn and saved.

Rows and columns of attention are labelled by the inputs that `Model.attention_kinds` names. If an input is generated
token by token, its row i has read the tokens up to the i-th and predicts the next. Rows of its self-attention are
therefore labelled by the tokens read, rows of cross-attention by the tokens predicted.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regardant.data.tokenizers import Tokenizer
from regardant.errors import ConfigError, RunError
from regardant.files import write_atomically
from regardant.inspection import Records, attention_places, capture, mixer_places
from regardant.inspection.capture import class_tokens
from regardant.modalities import Codec
from regardant.models.base import AttentionKind, Model
from regardant.pictures import (
    AttentionPicture,
    Drawing,
    Layout,
    attention_page,
    facts,
    head_grid_svg,
    head_svg,
    in_notebook,
    pdf,
    png,
    require_pdf,
)
from regardant.tasks.base import Example
from regardant.tasks.chosen_heads import ALL_HEADS, ChosenHeads
from regardant.tasks.measure_tables import kind_title

FORMATS = (".html", ".svg", ".png", ".pdf", ".json")
"""File formats of a saved inspection."""

NEXT_TOKENS = 10
"""Number of likeliest tokens in JSON."""

SEARCHED = 200
"""Number of validation items searched for examples."""


@dataclass(frozen=True)
class Elements:
    """Labels of the elements of an input, or of the tokens that are predicted."""

    labels: list[str]
    """Names of the elements, special ones included."""
    units: list[tuple[str, int]] = field(default_factory=list)
    """(word, number of its elements), each element that belongs to no word by itself. Empty: elements make no words."""
    layout: Layout | None = None
    """The drawing of the item. None: its labels in one line."""

    def after(self, labels: Sequence[str]) -> "Elements":
        """Return the same elements after others that belong to no word."""
        units = [*((label, 1) for label in labels), *self.units] if self.units else []
        return Elements([*labels, *self.labels], units, self.layout)

    @property
    def grid(self) -> Layout | None:
        """The layout, if its elements stand on a grid."""
        return self.layout if self.layout is not None and self.layout.is_grid else None


@dataclass(frozen=True, eq=False)
class Inspection:
    """An item, the model's answer, and the tensors recorded at the places of the model."""

    item: str
    answer: str
    """Answer in one line."""
    note: str
    """Answer with its name, as in "Translation: ...", in one line of a page."""
    inputs: Mapping[str, Elements]
    """The inputs of the model by name."""
    sides: Mapping[str, AttentionKind]
    """The inputs of each kind of attention."""
    layers: Mapping[str, list[str]]
    """Places of attention by kind, in the order of layers: `decoder.layers.0.cross_attention`."""
    mixers: Mapping[str, list[str]]
    """Places of convolutions and dense layers, by the kind of attention that they replace."""
    records: Records
    """Records of this item by the names of places."""
    batch: Mapping[str, Any]
    """Inputs of the model: a batch of one."""
    shares: Sequence[tuple[str, float]] = ()
    """The likeliest answers with their probabilities, the likeliest first. Empty where answers are texts."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Numbers of the answer, for JSON."""
    written: Mapping[str, Elements] = field(default_factory=dict)
    """Predicted tokens, by the input that reads them in the next step."""
    title: str = ""
    """Heading of the item on a page. Empty: the item itself."""

    @cached_property
    def pictures(self) -> list[AttentionPicture]:
        """A picture of the convolutions and dense layers of every kind, then one of every kind of attention."""
        by_position = [
            self._by_position(kind, self._stacked(places, "position_weights")) for kind, places in self.mixers.items()
        ]
        return by_position + [
            self._by_item(kind, self._stacked(places, "weights")) for kind, places in self.layers.items()
        ]

    def rows(self, kind: str) -> Elements:
        """Return the elements that attend, by kind of attention."""
        sides = self.sides[kind]
        own = self.inputs[sides.queries]
        return own if sides.queries == sides.keys else self.written.get(sides.queries, own)

    def columns(self, kind: str) -> Elements:
        """Return the elements that are attended to, by kind of attention."""
        return self.inputs[self.sides[kind].keys]

    def page(self, chosen: ChosenHeads = ALL_HEADS) -> str:
        """Return a self-contained HTML page that opens with the chosen heads.

        Raises RunError for a model without attention, ConfigError for heads that it lacks.
        """
        pictures = self._drawn()
        shown = chosen.of(pictures)[-1]
        if place := chosen.place(shown):
            layer, head = place
        else:
            layer, head = len(shown.weights) - 1, None
        opened = [
            replace(one, chosen=(layer, -1 if head is None else head)) if one.kind == shown.kind else one
            for one in pictures
        ]
        return attention_page([opened], title="Attention", in_words=chosen.unit != "pieces")

    def svg(
        self, kind: str | None = None, layer: int | None = None, head: int | None = None, unit: str | None = None
    ) -> Drawing:
        """Return a picture of one head, of the mean of a layer's heads, or of all heads side by side.

        Args:
            kind: kind of attention, as "Cross-attention". None: all kinds, or the last one where a layer is given.
            layer: layer, from 1. None: all layers.
            head: head, from 1. None: the mean of the layer's heads.
            unit: "words" or "pieces". None: words where the item has words.

        Raises:
            ConfigError: a kind, layer, head or unit that the item or the model lacks.
            RunError: a model without attention.
        """
        return self._drawing(ChosenHeads(kind, layer, head, unit))

    def png(
        self, kind: str | None = None, layer: int | None = None, head: int | None = None, unit: str | None = None
    ) -> bytes:
        """Return the picture of `svg` as a PNG file."""
        return png(self.svg(kind, layer, head, unit))

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: the answer, elements, all weights, and the places that `records` has."""
        return {
            "item": self.item,
            "answer": self.answer,
            **self.details,
            "inputs": {name: {"labels": one.labels, "words": one.units} for name, one in self.inputs.items()},
            "attention": [_plain(picture) for picture in self.pictures],
            "places": list(self.records),
        }

    def save(
        self,
        path: str | Path,
        kind: str | None = None,
        layer: int | None = None,
        head: int | None = None,
        unit: str | None = None,
    ) -> None:
        """Save the inspection in the format of the file's suffix: the picture of `svg` as .svg, .png or .pdf; a page
        that opens with that picture as .html; all numbers, or those of that picture, as .json.

        Raises:
            ConfigError: another format, a choice that `svg` refuses, or a PDF without the library for it.
            RunError: a picture of a model without attention.
        """
        path, chosen = Path(path), ChosenHeads(kind, layer, head, unit)
        require_format(path)
        if path.suffix == ".json":
            write_atomically(path, json.dumps(self._numbers(chosen), ensure_ascii=False) + "\n")
        elif path.suffix == ".html":
            write_atomically(path, self.page(chosen))
        else:
            drawing = self._drawing(chosen)
            if path.suffix == ".pdf":
                write_atomically(path, pdf(drawing, title=f"Attention: {self.title or self.item}"))
            else:
                write_atomically(path, png(drawing) if path.suffix == ".png" else drawing)

    def _repr_html_(self) -> str:
        if self.pictures:
            return in_notebook(self.page())
        shares = [("probabilities", format_shares(self.shares))] if self.shares else []
        none = ("attention", f"none; `records` has {len(self.records)} other places")
        return facts(self.title or self.item, [("answer", self.answer), *shares, none])

    def _drawing(self, chosen: ChosenHeads) -> Drawing:
        pictures = chosen.of(self._drawn())
        place = chosen.place(pictures[-1])
        return head_grid_svg(pictures) if place is None else head_svg(pictures[-1], *place)

    def _numbers(self, chosen: ChosenHeads) -> dict[str, Any]:
        """Return all numbers, or only those of the chosen heads."""
        if not chosen:
            return self.as_dict()
        if not self.pictures:
            raise RunError("this model has no attention to choose from: leave out --kind, --layer, --head and --unit")
        pictures = chosen.of(self.pictures)
        if (place := chosen.place(pictures[-1])) is None:
            return {**self.as_dict(), "attention": [_plain(one) for one in pictures]}
        layer, head = place
        weights = pictures[-1].matrix(layer, head)
        at = {"layer": layer + 1, "head": "mean" if head is None else head + 1}
        return {**self.as_dict(), "attention": [{**_plain(pictures[-1]), **at, "weights": _rounded(weights)}]}

    def _drawn(self) -> list[AttentionPicture]:
        if not self.pictures:
            raise RunError("this model has no attention that could be drawn: give a name that ends in .json")
        return self.pictures

    def _stacked(self, places: Sequence[str], quantity: str) -> NDArray[Any]:
        """Return the weights of all layers: [L, H, Q, K], or [L, Q, K] if they belong to positions."""
        return np.stack([self.records.whole(f"{place}.{quantity}")[0].numpy() for place in places])

    def _by_item(self, kind: str, weights: NDArray[Any]) -> AttentionPicture:
        note = self.note
        if weights.min() < 0 or weights.max() > 1.01:
            note += " (Weights of this attention below 0 or above 1 are drawn as 0 or 1.)"
        return self._picture(kind, kind_title(kind), weights.clip(0, 1), note)

    def _by_position(self, kind: str, weights: NDArray[Any]) -> AttentionPicture:
        sizes = np.abs(weights)[:, None]
        note = f"{self.note} (Absolute values of weights. They belong to positions, whatever the item is.)"
        drawn = self._picture(kind, f"{kind_title(kind)} by position", sizes / max(sizes.max(), 1e-12), note)
        # Between words, these shares would add up to more than the largest weight.
        return replace(drawn, scale="of the largest weight", source_units=(), target_units=())

    def _picture(self, kind: str, title: str, weights: NDArray[Any], note: str) -> AttentionPicture:
        rows, columns = self.rows(kind), self.columns(kind)
        in_words = bool(rows.units and columns.units)
        return AttentionPicture(
            title=self.title or self.item,
            source=columns.labels,
            target=rows.labels,
            weights=weights,
            note=note,
            kind=title,
            source_units=columns.units if in_words else (),
            target_units=rows.units if in_words else (),
            source_layout=columns.grid,
            target_layout=rows.grid,
        )


def examples_of(codec: Codec, items: Iterable[NDArray[Any]], count: int, folder: Path) -> list[Example]:
    """Return up to `count` encoded items as examples, of the first SEARCHED. Files are written to `folder`.

    Items that cannot be restored from their encoding are left out.
    """
    found: list[Example] = []
    for one in islice(items, SEARCHED):
        item = codec.argument(one, folder, f"example-{len(found) + 1}")
        if item is not None:
            found.append(Example(item, codec.layout(one).picture))
        if len(found) == count:
            break
    return found


def look(model: Model, inputs: Mapping[str, Any]) -> tuple[Records, Tensor]:
    """Return the records of a model that read one item, and the head's scores of the item in float32."""
    with torch.inference_mode(), capture(model) as records:
        scores = model.scores(**inputs)
    return records, scores[0].float()


def shown_inputs(model: Model, batch: Mapping[str, Any], elements: Mapping[str, Elements]) -> dict[str, Any]:
    """Return the fields of an Inspection that follow from a model, its inputs and their elements."""
    inputs = {name: one.after(class_tokens(model, name)) for name, one in elements.items()}
    return {
        "inputs": inputs,
        "sides": model.attention_kinds,
        "layers": attention_places(model),
        "mixers": mixer_places(model),
        "batch": batch,
    }


def format_shares(shares: Sequence[tuple[str, float]]) -> str:
    """Return answers with their probabilities in one line."""
    return ", ".join(f"{answer} {share:.1%}" for answer, share in shares)


def likeliest(logits: Tensor, tokenizer: Tokenizer, count: int = NEXT_TOKENS) -> list[list[tuple[str, float]]]:
    """Return the likeliest tokens of each row of logits [T, V], with their probabilities."""
    best = logits.softmax(-1).topk(min(count, logits.shape[-1]))
    return [
        list(zip(tokenizer.tokens(ids), probabilities, strict=True))
        for ids, probabilities in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]


def _plain(picture: AttentionPicture) -> dict[str, Any]:
    """Return plain values for JSON: names of rows and columns, and the weights [L, H, T, S]."""
    return {
        "kind": picture.kind,
        "rows": picture.target,
        "columns": picture.source,
        "weights": _rounded(picture.weights),
    }


def _rounded(weights: NDArray[np.floating[Any]]) -> list[Any]:
    plain: list[Any] = np.round(weights.astype(float), 6).tolist()
    return plain


def require_format(path: Path) -> None:
    """Raise ConfigError for a file in whose format an inspection cannot be saved."""
    if path.suffix not in FORMATS:
        raise ConfigError(f"{path} is none of {', '.join(FORMATS)}: give the file a name that ends in one of them")
    if path.suffix == ".pdf":
        require_pdf()
