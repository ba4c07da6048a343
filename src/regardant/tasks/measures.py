"""A model's attention in numbers, whatever its task: what is measured of every model that has some.

RUN/measures/NAME.json    all digits
RUN/measures/NAME.txt     tables

A task hands in its sentences, `Attended` or as passes of the model, and adds what it alone can measure.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regardant.data.vocabulary import EOS, SOS
from regardant.inspection import Attended, HeadImportance, HeadMeasures, flow, logit_lens, measure_heads, rollout
from regardant.pictures.table import Table
from regardant.tasks.measures_told import COLUMNS, followed_table, head_tables, lens_table
from regardant.training.checkpoints import write_atomically

SENTENCES = 100
"""Pairs or windows that most is measured over: the first ones."""

FLOWED = 3
"""Of them, those in which flow is sought: each costs much."""

Reading = tuple[Callable[[], Tensor], Tensor]
"""What gives the logits [B, T, V] of a batch, and what was written [B, T]."""


@dataclass(frozen=True)
class LensLayer:
    """What the model would say after so many layers, in the mean over tokens."""

    layers: int
    """0: the embeddings alone."""
    first: float
    """The share of tokens that are the likeliest."""
    rank: float
    """Of the token; the median."""
    probability: float
    """Of the token."""
    divergence: float
    """From the last layer's distribution, nats."""


@dataclass
class Measures:
    """All that was measured. What a model has none of is empty, and a note says so."""

    name: str
    """Of the text."""
    sentences: int
    """Pairs or windows."""
    heads: dict[str, HeadMeasures]
    """By kind of attention."""
    importance: dict[str, HeadImportance]
    rollout: dict[str, HeadMeasures] = field(default_factory=dict)
    """Up to every layer, as if it were a layer of one head."""
    flow: dict[str, HeadMeasures] = field(default_factory=dict)
    """From the last layer, rows divided by their sums, over the first few sentences."""
    lens: list[LensLayer] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """For JSON; what is no number is null."""
        return {name: _plain(value) for name, value in vars(self).items()}

    def title(self) -> str:
        """Over what was measured."""
        return f"{self.name}: {self.sentences:,} windows"

    def tables(self) -> Iterator[Table]:
        """For people."""
        for kind, found in self.heads.items():
            yield from head_tables(kind, found, self.importance[kind])
        yield from self.followed()

    def followed(self) -> Iterator[Table]:
        """What layers do together."""
        for kind, rolled in self.rollout.items():
            yield followed_table(kind, rolled, self.flow[kind])
        if self.lens:
            yield lens_table(self.lens)

    def lines(self) -> list[str]:
        """A table after the other, blank lines between."""
        lines = [self.title()]
        for table in self.tables():
            lines += ["", *table.lines()]
        return [*lines, "", *COLUMNS] + [""] * bool(self.notes) + self.notes

    def save(self, folder: Path) -> None:
        """Keep both in a folder."""
        write_atomically(folder / f"{self.name}.json", json.dumps(self.as_dict(), indent=1) + "\n")
        write_atomically(folder / f"{self.name}.txt", "".join(f"{line}\n" for line in self.lines()))


def is_causal(kind: str) -> bool:
    """Whether a kind of attention is that to what has been written."""
    return not kind.startswith("encoder") and "cross" not in kind


def follow(found: Measures, kind: str, sentences: Iterable[Attended], flowed: Iterable[Attended]) -> None:
    """Add rollout, and flow over some sentences, of a kind of attention among the tokens of one sequence."""
    causal = is_causal(kind)
    rolled = (Attended(rollout(weights)[:, None], idle) for weights, idle in sentences)
    found.rollout[kind] = measure_heads(rolled, causal=causal)
    flows = (Attended(flow(weights)[None, None], idle) for weights, idle in flowed)
    found.flow[kind] = measure_heads(flows, causal=causal)


def read_layers(found: Measures, model: nn.Module, readings: Iterable[Reading]) -> None:
    """Add the logit lens, or a note why there is none."""
    try:
        read = [logit_lens(model, run, written) for run, written in readings]
    except ValueError as error:
        found.notes.append(f"no logit lens: {error}")
        return
    ranks, probabilities, divergences = (
        torch.cat([getattr(one, name) for one in read], 1).double() for name in ("rank", "probability", "divergence")
    )
    found.lens = [
        LensLayer(n, float((rank == 1).double().mean()), float(rank.median()), float(p.mean()), float(d.mean()))
        for n, (rank, p, d) in enumerate(zip(ranks, probabilities, divergences, strict=True))
    ]


def says_little(ids: Sequence[int], tokens: Sequence[str]) -> list[bool]:
    """Beginning, end, punctuation and white space."""
    return [
        number in (SOS, EOS) or not any(letter.isalnum() for letter in token)
        for number, token in zip(ids, tokens, strict=True)
    ]


def _plain(value: Any) -> Any:
    """As JSON has it."""
    if isinstance(value, HeadMeasures | HeadImportance):
        return _plain(value.as_dict())
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float | np.floating) and not math.isfinite(value):
        return None
    return value
