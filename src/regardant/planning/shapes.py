"""The modules of a recipe's model with their shapes and parameters, before training.

Models whose sizes follow from the recipe and a vocabulary are built without data, on the meta device, which holds no
numbers. Others need the data: the size of an image, the number of classes, the nodes of a graph.

A dimension has a symbol if it scales with the batch or a length between two passes of unequal sizes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement, takewhile
from math import prod
from typing import Any

import torch
from torch import nn

from regardant.data.tokenizer_config import TokenizerConfig
from regardant.data.tokenizers import Tokenizer
from regardant.errors import ConfigError
from regardant.inspection.shapes import TracedModule, trace_shapes
from regardant.layers.dropout import Dropout
from regardant.modalities import TextModalityConfig
from regardant.models import CausalConfig, Model, SequenceToSequenceConfig, next_token, tokens
from regardant.pictures import Table
from regardant.planning.published import PUBLISHED, VOCABULARY
from regardant.tasks.base import TaskConfig, TaskJob
from regardant.training.devices import require_memory

MEANINGS = {"B": "batch", "S": "length of the source", "T": "length of the target or text"}

BATCH = "B"

SIZES = ({BATCH: 2, "S": 5, "T": 7}, {BATCH: 5, "S": 8, "T": 11})
"""Sizes of the two passes. No two symbols or products of two symbols grow by the same factor."""

PASSING = (nn.Identity.__name__, Dropout.__name__)
"""Classes of modules that a table leaves out: they change no shape and have no parameters."""

HOLDING = (nn.ModuleList.__name__, nn.ModuleDict.__name__)
"""Classes of modules that only hold others."""

WITHOUT_TEXT = ("byte", "kmer")
"""Kinds of tokenizers whose vocabulary is not learned from text."""

SizedInputs = tuple[Mapping[str, Any], Mapping[str, int]]
"""Inputs of a model, and their sizes by symbol."""

Symbolic = list[int | str]
"""Dimensions of a tensor: numbers, or symbols such as `B` or `2 B S`."""


@dataclass(frozen=True)
class ShapedModule:
    """One module and its parts."""

    name: str
    """Name in the model, as `encoder.layers.0`."""
    title: str
    """Displayed name among the parts of the same module, such as `layer 1`."""
    kind: str
    """Name of its class."""
    output: Symbolic
    """Shape of the first tensor that it returns or leaves in the residual stream. Empty: it has none of its own."""
    parameters: int
    """Parameters with those of its parts. A matrix that modules share is counted in each of them."""
    parts: "list[ShapedModule]"

    def same_as(self, other: "ShapedModule") -> bool:
        """Return whether two modules differ in their names alone."""
        return (
            (self.kind, self.output, self.parameters) == (other.kind, other.output, other.parameters)
            and len(self.parts) == len(other.parts)
            and all(one.same_as(another) for one, another in zip(self.parts, other.parts, strict=True))
        )

    def shown_parts(self) -> "list[ShapedModule]":
        """Return the parts that a table shows: a list is replaced by its parts; parts without effect are left out."""
        shown = [part for part in self.parts if part.kind not in PASSING and (part.output or part.parameters)]
        return [one for part in shown for one in (part.shown_parts() if part.kind in HOLDING else [part])]

    def modules(self) -> "Iterator[ShapedModule]":
        """Yield the module and all below it, in the order of the model."""
        yield self
        for part in self.parts:
            yield from part.modules()


@dataclass(frozen=True)
class ModelShapes:
    """Shapes of a whole model."""

    parameters: int
    """Parameters, shared ones once."""
    symbols: Mapping[str, str]
    """Meanings of the symbols in shapes."""
    notes: Sequence[str]
    """Sizes that were assumed, or taken from the data."""
    tree: ShapedModule

    def as_dict(self) -> dict[str, Any]:
        """Return the content of --json."""
        return {
            "parameters": self.parameters,
            "symbols": dict(self.symbols),
            "notes": list(self.notes),
            "modules": [{**vars(one), "parts": [part.name for part in one.parts]} for one in self.tree.modules()],
        }

    def lines(self) -> list[str]:
        """Return a table to print, in which consecutive modules that differ only in name share a row."""
        heads = ["module", "class", "output", "parameters"]
        rows = [
            [f"{'  ' * depth}{title}", one.kind, _shown(one.output), f"{one.parameters:,}"]
            for depth, title, one in _rows(self.tree, 0)
        ]
        symbols = ", ".join(f"{symbol} {meaning}" for symbol, meaning in self.symbols.items())
        table = Table(f"{self.parameters:,} parameters; {symbols}", heads, rows)
        return [*table.lines(), "", *self.notes]


def shapes_without_data(config: TaskConfig) -> ModelShapes | None:
    """Return the shapes of a recipe whose model needs only the size of a vocabulary, or None if it needs the data.

    Raises ConfigError if its parts do not fit together, OutOfMemory for a recurrent model that exceeds main memory.
    """
    sizes, text = config.model, config.modality
    if (text is not None and type(text) is not TextModalityConfig) or getattr(sizes, "preset", None) == "auto":
        return None
    if not isinstance(sizes, SequenceToSequenceConfig | CausalConfig):
        return None
    tokenizer: TokenizerConfig = config.tokenizer  # type: ignore[attr-defined]  # every recipe of these models has one
    if tokenizer.kind == "pretrained":
        return None
    vocabulary, note = _vocabulary(tokenizer)
    head = next_token(vocabulary, words=config.head)  # type: ignore[attr-defined]

    def build() -> Model:
        if isinstance(sizes, CausalConfig):
            return sizes.build(tokens(vocabulary), head)
        return sizes.build(tokens(vocabulary), tokens(vocabulary), head)

    return _of_tokens(build, [note])


def shapes_of_published(name: str) -> ModelShapes:
    """Return the shapes of a published model that `plan` knows by name."""
    model = PUBLISHED[name]
    return _of_tokens(model.build, [model.title, model.source])


def shapes_of_job(job: TaskJob, device: torch.device) -> ModelShapes:
    """Return the shapes of a prepared model on a batch of its training data, with the lengths of that batch."""
    batch = job.load(job.batches.median_batch())
    whole = batch.to(device).inputs
    rows = len(next(iter(whole.values())))
    passes = [(whole, {BATCH: rows})]
    if rows > 1:
        passes.append((batch.part(0, 2).to(device).inputs, {BATCH: (rows + 1) // 2}))
    notes = [f"sizes are those of the data; lengths those of a batch of {rows:,} items of median length"]
    return _shapes(job.model, passes, notes)


def _vocabulary(config: TokenizerConfig) -> tuple[int, str]:
    """Return the size of a vocabulary without reading the text that it is learned from, and a note on its origin."""
    if config.kind in WITHOUT_TEXT:
        size = Tokenizer.train(config, [], 0).vocab_size
        return size, f"vocabulary of {size:,}, that of tokenizer.kind={config.kind}"
    if config.vocab_size is not None:
        return config.vocab_size, f"vocabulary of {config.vocab_size:,}, as in tokenizer.vocab_size"
    return VOCABULARY, f"a vocabulary of {VOCABULARY:,} is assumed: set tokenizer.vocab_size, or plan without --shapes"


def _of_tokens(build: Callable[[], nn.Module], notes: Sequence[str]) -> ModelShapes:
    """Return the shapes of a model that reads tokens.

    Raises ConfigError if the parts of the model do not fit together, OutOfMemory if it exceeds main memory.
    """
    try:
        try:
            return _of_tokens_on("meta", build, notes)
        except RuntimeError:  # recurrent cells and running sums do not run on the meta device
            require_memory(build)
            return _of_tokens_on("cpu", build, notes)
    except ValueError as error:
        raise ConfigError(f"model: {error}") from error


def _of_tokens_on(device: str, build: Callable[[], nn.Module], notes: Sequence[str]) -> ModelShapes:
    passes = []
    with torch.device(device):
        model = build()
        assert isinstance(model, Model)
        for sizes in SIZES:
            lengths = {name: sizes["S" if name == "source" else "T"] for name in model.inputs}
            inputs = {name: torch.ones(sizes[BATCH], length, dtype=torch.int64) for name, length in lengths.items()}
            passes.append((inputs, sizes))
    return _shapes(model, passes, notes)


def _shapes(model: Model, passes: Sequence[SizedInputs], notes: Sequence[str]) -> ModelShapes:
    """Return the shapes of a model that reads several batches of known sizes."""
    was_training = model.training
    try:
        trees = [trace_shapes(model.eval(), inputs) for inputs, _ in passes]
    finally:
        model.train(was_training)
    tree = _shaped(trees, [sizes for _, sizes in passes], "", "model")
    used = {
        symbol
        for module in tree.modules()
        for size in module.output
        if isinstance(size, str)
        for symbol in size.split()
    }
    symbols = {symbol: meaning for symbol, meaning in MEANINGS.items() if symbol in used}
    return ModelShapes(trees[0].parameters, symbols, notes, tree)


def _shaped(trees: Sequence[TracedModule], sizes: Sequence[Mapping[str, int]], inside: str, title: str) -> ShapedModule:
    """Return the modules of the same name in each pass as one. `inside` is the name of the list that holds it."""
    first = trees[0]
    outputs = [one.outputs[0] if one.outputs else [] for one in trees]
    parts = []
    for several in zip(*(one.parts for one in trees), strict=True):
        key = several[0].name.rpartition(".")[2]
        parts.append(_shaped(several, sizes, key, _title(key, inside)))
    return ShapedModule(
        name=first.name,
        title=title,
        kind=first.kind,
        output=[_dimension(list(zip(dimension, sizes, strict=True))) for dimension in zip(*outputs, strict=True)],
        parameters=first.parameters,
        parts=parts,
    )


def _title(key: str, inside: str) -> str:
    """Return the displayed name of a module: `self-attention`, or `layer 1` of `layers`."""
    if key.isdecimal():
        return f"{inside.removesuffix('s') or 'part'} {int(key) + 1}"
    return key.replace("_attention", "-attention").replace("_", " ")


def _dimension(seen: Sequence[tuple[int, Mapping[str, int]]]) -> int | str:
    """Return the symbols of a dimension, or its number, given its size in each pass and the sizes of the pass."""
    first, symbols = seen[0][0], list(seen[0][1])
    if all(size == first for size, _ in seen):
        return first
    pairs = list(combinations_with_replacement(symbols, 2))
    for chosen in [*((symbol,) for symbol in symbols), *pairs]:
        factors = {Fraction(size, prod(sizes[symbol] for symbol in chosen)) for size, sizes in seen}
        if len(factors) == 1 and (factor := factors.pop()).denominator == 1:
            return " ".join([*([str(factor)] if factor != 1 else []), *chosen])
    return first


def _shown(output: Symbolic) -> str:
    return " x ".join(map(str, output)) or "-"


def _rows(module: ShapedModule, depth: int) -> Iterator[tuple[int, str, ShapedModule]]:
    """Yield depth, title and first module of each row below a module. Modules that are alike share a row."""
    parts = module.shown_parts()
    while parts:
        first = parts[0]
        alike = list(takewhile(lambda one: one.title[-1:].isdecimal() and one.same_as(first), parts))  # noqa: B023
        title = first.title
        if len(alike) > 1:
            word, _, number = title.rpartition(" ")
            title = f"{word}s {number} to {alike[-1].title.rpartition(' ')[2]}"
        yield depth, title, first
        yield from _rows(first, depth + 1)
        parts = parts[max(1, len(alike)) :]
