"""What a translator does with a sentence, to be looked at, drawn and kept.

The model reads the source and, teacher-forced, a target: its own translation or one that is given. Row i of the
decoder has read the target up to its i-th token, SOS first, and writes the token after it: so self-attention is between
tokens that are read, and cross-attention is from tokens that are written.
"""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regardant.data.tokenizers import Tokenizer
from regardant.data.vocabulary import SOS, SPECIAL_TOKENS
from regardant.data.words import words
from regardant.errors import ConfigError, DataError, RunError
from regardant.evaluation.alignment import NO_WORD
from regardant.generation.config import GenerationConfig
from regardant.inspection import Records, capture
from regardant.inspection.places import kind_of
from regardant.pictures import AttentionPicture, attention_page, head_grid_svg, heat_map_svg, in_notebook, png
from regardant.tasks.measure_tables import kind_title
from regardant.tasks.translation.alignment import words_of_tokens
from regardant.tasks.translation.translator import Translator
from regardant.training.checkpoints import write_atomically

FORMATS = (".html", ".svg", ".png", ".json")
"""What an inspection can be kept as."""

NEXT_TOKENS = 10
"""The likeliest ones that JSON has of every step."""


@dataclass(frozen=True)
class Pieces:
    """A text as the model has it."""

    tokens: list[str]
    """As the vocabulary writes them, special ones too."""
    units: list[tuple[str, int]]
    """(word, how many of the tokens it is made of); what belongs to no word stands alone."""


@dataclass(frozen=True, eq=False)
class Inspection:
    """A sentence, its translation, and what passed the places of the model in between."""

    source: str
    target: str
    read: Pieces
    """Of the source, EOS last."""
    written: Pieces
    """Of the target, EOS last."""
    records: Records
    """By the names of places, of this one pair."""
    next_tokens: list[list[tuple[str, float]]]
    """The likeliest tokens at every step, with their probabilities."""

    @cached_property
    def layers(self) -> dict[str, list[str]]:
        """The attentions of every kind, by name, those of the encoder first: `decoder.layers.0.cross_attention`."""
        found: dict[str, list[str]] = {}
        for place in self.records:
            site, _, quantity = place.rpartition(".")
            if quantity == "weights":
                found.setdefault(kind_of(site), []).append(site)
        return found

    @cached_property
    def pictures(self) -> list[AttentionPicture]:
        """Of every kind of attention that the model has, those of the encoder first."""
        return [
            self._picture(kind, np.stack([self.records.whole(f"{site}.weights")[0].numpy() for site in sites]))
            for kind, sites in self.layers.items()
        ]

    def page(self) -> str:
        """One HTML file that needs nothing else. Raises RunError for a model without attention, as do the drawings."""
        return attention_page([self._drawn()], title="Where it looks")

    def svg(self, kind: str | None = None, layer: int = 0, head: int | None = None) -> str:
        """All heads side by side; or a head of a kind, as "Cross-attention", or the mean of a layer's heads."""
        if kind is None:
            return head_grid_svg(self._drawn())
        for picture in self.pictures:
            if picture.kind == kind:
                return heat_map_svg(picture, layer, head)
        raise ValueError(f"there is no {kind}: choose {', '.join(picture.kind for picture in self.pictures)}")

    def png(self, kind: str | None = None, layer: int = 0, head: int | None = None) -> bytes:
        """The same as pixels."""
        return png(self.svg(kind, layer, head))

    def as_dict(self) -> dict[str, Any]:
        """For JSON: tokens and words, all weights, the likeliest next tokens, and the places that `records` has."""
        return {
            "source": self.source,
            "target": self.target,
            "source_tokens": self.read.tokens,
            "source_words": self.read.units,
            "target_tokens": self.written.tokens,
            "target_words": self.written.units,
            "attention": [
                {
                    "kind": kind.kind,
                    "rows": kind.target,
                    "columns": kind.source,
                    "weights": np.round(kind.weights.astype(float), 6).tolist(),
                }
                for kind in self.pictures
            ],
            "next_tokens": self.next_tokens,
            "places": list(self.records),
        }

    def save(self, path: str | Path) -> None:
        """Keep it as the file's name says: .html, .svg or .png (all heads), .json. Raises ConfigError for others."""
        path = Path(path)
        require_format(path)
        if path.suffix == ".json":
            write_atomically(path, json.dumps(self.as_dict(), ensure_ascii=False) + "\n")
        elif path.suffix == ".html":
            write_atomically(path, self.page())
        else:
            write_atomically(path, self.svg() if path.suffix == ".svg" else self.png())

    def _repr_html_(self) -> str:
        return in_notebook(self.page())

    def _drawn(self) -> list[AttentionPicture]:
        if not self.pictures:
            raise RunError("this model has no attention that could be drawn: give a name that ends in .json")
        return self.pictures

    def _picture(self, kind: str, weights: Any) -> AttentionPicture:
        sos = SPECIAL_TOKENS[SOS]
        taken_in = Pieces([sos, *self.written.tokens[:-1]], [(sos, 1), *self.written.units[:-1]])
        if kind.startswith("encoder"):
            rows, columns = self.read, self.read
        else:
            rows, columns = (self.written, self.read) if "cross" in kind else (taken_in, taken_in)
        note = f"Translation: {self.target}"
        if weights.min() < 0 or weights.max() > 1.01:
            note += " (This attention's weights need not lie between 0 and 1: what does not is drawn as 0 or 1.)"
        return AttentionPicture(
            title=self.source,
            source=columns.tokens,
            target=rows.tokens,
            weights=weights.clip(0, 1),
            note=note,
            kind=kind_title(kind),
            source_units=columns.units,
            target_units=rows.units,
        )


def inspect_pair(translator: Translator, source: str, target: str | None, generation: GenerationConfig) -> Inspection:
    """What the translator does with a sentence and its translation, its own one where none is given.

    Raises DataError for a blank source, and for a text longer than the model.
    """
    if not source.strip():
        raise DataError("the text is blank: give a sentence to look at")
    if target is None:
        target = translator.translate([source], generation)[0].text
    batch = translator.pairs([source], [target])
    with torch.inference_mode(), capture(translator.model) as records:
        logits = translator.model.scores(batch.source, batch.target[:, :-1])
    tokenizers = translator.tokenizers
    best = logits[0].float().softmax(-1).topk(min(NEXT_TOKENS, logits.shape[-1]))
    return Inspection(
        source=source,
        target=target,
        read=_pieces(tokenizers.source, source, batch.source[0].tolist()),
        written=_pieces(tokenizers.target, target, batch.target[0, 1:].tolist()),
        records=records,
        next_tokens=[
            list(zip(tokenizers.target.tokens(ids), probabilities, strict=True))
            for ids, probabilities in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ],
    )


def require_format(path: Path) -> None:
    """Raise ConfigError for a file that an inspection cannot be kept as."""
    if path.suffix not in FORMATS:
        raise ConfigError(f"{path} is none of {', '.join(FORMATS)}: give the file a name that ends in one of them")


def _pieces(tokenizer: Tokenizer, text: str, ids: list[int]) -> Pieces:
    tokens, named = tokenizer.tokens(ids), [word.text for word in words(text)]
    units: list[tuple[str, int]] = []
    before = NO_WORD
    for token, word in zip(tokens, words_of_tokens(tokenizer, text), strict=True):
        if word == NO_WORD:
            units.append((token, 1))
        elif word == before:
            units[-1] = (named[word], units[-1][1] + 1)
        else:
            units.append((named[word], 1))
        before = word
    return Pieces(tokens, units)
