"""Measures of a model's attention, whatever its task.

RUN/measures/NAME.json    all digits
RUN/measures/NAME.txt     tables

A task provides labelled rows of its data, and may add measures of its own.
"""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regardant.data.vocabulary import EOS, SOS, SPECIAL_TOKENS
from regardant.errors import ConfigError, RunError
from regardant.files import write_atomically
from regardant.inspection import (
    Attended,
    HeadImportance,
    HeadMeasures,
    attention_places,
    capture,
    flow,
    head_importance,
    logit_lens,
    measure_heads,
    real_elements,
    rollout,
)
from regardant.inspection.capture import CLASS_TOKEN, class_tokens
from regardant.models.base import Model
from regardant.pictures import Table, tables_in_notebook
from regardant.tasks.measure_tables import COLUMNS, followed_table, head_tables, kind_title, lens_table
from regardant.tasks.probe import Probe

SENTENCES = 100
"""Maximum number of rows measured: the first ones. Costly measures use fewer."""

FLOWED = 3
"""Number of rows whose attention flow is computed, which is costly."""

FLOWED_TOKENS = 20
"""First elements of a row among which flow is computed if attention is causal: later ones do not change it."""

LONGEST_FLOW = 50
"""Maximum number of elements of a row for flow: its cost grows faster than their third power."""

OF_IMPORTED_MODELS = ("[CLS]", "[SEP]", "<s>", "</s>", "<|endoftext|>")
"""Labels of the tokens around a text in models that are imported."""

LITTLE = frozenset({SPECIAL_TOKENS[SOS], SPECIAL_TOKENS[EOS], CLASS_TOKEN, *OF_IMPORTED_MODELS})
"""Labels of special tokens, which carry little of an item's content."""


@dataclass(frozen=True)
class LensLayer:
    """Reading of the logit lens after a number of layers, summarised over targets."""

    layers: int
    """Number of layers. 0: the embeddings alone."""
    first: float
    """Share of targets that are the likeliest answer."""
    rank: float
    """Median rank of the target."""
    probability: float
    """Mean probability of the target."""
    divergence: float
    """Mean Kullback-Leibler divergence of the layer's distribution from the final one, in nats."""


@dataclass
class Measures:
    """Measures of a model's attention. Those that the model lacks are empty, and a note gives the reason."""

    name: str
    """Name of the data."""
    sentences: int
    """Number of rows: pairs, windows, items."""
    heads: dict[str, HeadMeasures]
    """Measures of heads by kind of attention."""
    importance: dict[str, HeadImportance]
    rollout: dict[str, HeadMeasures] = field(default_factory=dict)
    """Rollout up to each layer, measured as a layer with one head."""
    flow: dict[str, HeadMeasures] = field(default_factory=dict)
    """Attention flow from the last layer, rows divided by their sums, over the first FLOWED short rows."""
    lens: list[LensLayer] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unit: str = "item"
    """Name of a row."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON. NaN and infinity are null."""
        return {name: _plain(value) for name, value in vars(self).items()}

    def title(self) -> str:
        """Return the name of the data and its number of rows."""
        return f"{self.name}: {self.sentences:,} {self.unit}s"

    def tables(self) -> Iterator[Table]:
        """Yield tables for people."""
        for kind, found in self.heads.items():
            yield from head_tables(kind, found, self.importance[kind])
        yield from self.followed()

    def followed(self) -> Iterator[Table]:
        """Yield the tables of rollout and flow, and of the logit lens."""
        for kind, rolled in self.rollout.items():
            yield followed_table(kind, rolled, self.flow.get(kind))
        if self.lens:
            yield lens_table(self.lens)

    def lines(self) -> list[str]:
        """Return title, tables, legend and notes as lines."""
        lines = [self.title()]
        for table in self.tables():
            lines += ["", *table.lines()]
        return [*lines, "", *COLUMNS] + [""] * bool(self.notes) + self.notes

    def _repr_html_(self) -> str:
        return tables_in_notebook(list(self.tables()), [self.title(), *self.notes])

    def save(self, folder: Path) -> None:
        """Write NAME.json and NAME.txt into a folder."""
        write_atomically(folder / f"{self.name}.json", json.dumps(self.as_dict(), indent=1) + "\n")
        write_atomically(folder / f"{self.name}.txt", "".join(f"{line}\n" for line in self.lines()))


def require_one_file(data: Sequence[Path], treebank: Path | None = None) -> None:
    """Raise ConfigError for several files, and for a treebank, with which only the attention of translators is
    compared."""
    if treebank is not None:
        raise ConfigError("--treebank needs the encoder of a translator: leave it out for this run")
    if len(data) > 1:
        raise ConfigError(f"--data was given {len(data)} times: give one file")


def measure(model: Model, name: str, probes: Sequence[Probe], unit: str) -> Measures:
    """Measure a model over labelled rows: its heads, rollout and flow across its layers, and the logit lens.

    Raises:
        RunError: a model without attention.
    """
    kinds = attention_places(model)
    if not kinds:
        raise RunError("this model has no attention to measure: evaluate it, or measure one with attention")
    passes = [partial(model, **probe.inputs, targets=probe.targets) for probe in probes]
    sides = model.attention_kinds
    found = Measures(
        name=name,
        unit=unit,
        sentences=sum(len(probe.targets) for probe in probes),
        heads={kind: measure_heads(attended(model, probes, kind), causal=sides[kind].causal) for kind in kinds},
        importance={kind: head_importance(model, passes, places) for kind, places in kinds.items()},
    )
    for kind in kinds:
        if sides[kind].queries == sides[kind].keys:
            _follow(found, model, probes, kind)
    _read_layers(found, model, probes)
    return found


def attended(model: Model, probes: Iterable[Probe], kind: str) -> Iterator[Attended]:
    """Yield weights and mask of each row, without its padding, in all layers and heads of a kind of attention."""
    sides, places = model.attention_kinds[kind], attention_places(model)[kind]
    for probe in probes:
        with torch.inference_mode(), capture(model, [f"{name}.weights" for name in places]) as records:
            model.scores(**probe.inputs)
        layers = torch.stack([records.whole(f"{name}.weights") for name in places], 1)  # [N, L, H, Q, K]
        masks = torch.stack([records.mask(name) for name in places], 1)
        queries, keys = (real_elements(model, name, probe.inputs[name]) for name in (sides.queries, sides.keys))
        special = class_tokens(model, sides.keys)
        rows = zip(layers, masks, queries, keys, probe.labels[sides.keys], strict=True)
        for weights, mask, asking, asked, labels in rows:
            idle = torch.tensor([says_little(label) for label in [*special, *labels]])
            yield Attended(weights[:, :, asking][..., asked], idle, mask[:, :, asking][..., asked])


def says_little(label: str) -> bool:
    """Return whether a token is special, punctuation or white space."""
    return label in LITTLE or not any(letter.isalnum() for letter in label)


def _follow(found: Measures, model: Model, probes: Sequence[Probe], kind: str) -> None:
    """Add rollout, and flow over some rows, of a kind of attention among the elements of one input.

    Both reach beyond the mask of a single layer, and are measured without it.
    """
    causal = model.attention_kinds[kind].causal
    rolled = (Attended(rollout(one.weights)[:, None], one.idle) for one in attended(model, probes, kind))
    found.rollout[kind] = measure_heads(rolled, causal=causal)
    rows = (_begun(one) if causal else one for one in attended(model, probes, kind))
    short = islice((one for one in rows if len(one.idle) <= LONGEST_FLOW), FLOWED)
    flows = [Attended(flow(one.weights)[None, None], one.idle) for one in short]
    if flows:
        found.flow[kind] = measure_heads(flows, causal=causal)
    else:
        found.notes.append(f"no flow of {kind_title(kind)}: every {found.unit} has more than {LONGEST_FLOW} elements")


def _begun(window: Attended) -> Attended:
    few = slice(None, FLOWED_TOKENS)
    return Attended(window.weights[..., few, few], window.idle[few])


def _read_layers(found: Measures, model: Model, probes: Iterable[Probe]) -> None:
    """Add the logit lens, or a note that gives the reason why there is none."""
    try:
        read = [logit_lens(model, partial(model.scores, **probe.inputs), probe.targets) for probe in probes]
    except ValueError as error:
        found.notes.append(f"no logit lens: {error}")
        return
    ranks, probabilities, divergences = (
        torch.cat([getattr(one, name) for one in read], 1).double() for name in ("rank", "probability", "divergence")
    )
    found.lens = [
        LensLayer(n, float((rank == 1).double().mean()), float(rank.quantile(0.5)), float(p.mean()), float(d.mean()))
        for n, (rank, p, d) in enumerate(zip(ranks, probabilities, divergences, strict=True))
    ]


def _plain(value: Any) -> Any:
    """Return a value as JSON represents it, null for NaN and infinity."""
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
