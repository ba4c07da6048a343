"""Trained runs of tasks that answer items by a head."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regardant.config.run_files import EVALUATION, WEIGHTS
from regardant.errors import DataError, RunError
from regardant.files import write_atomically
from regardant.modalities import Codec
from regardant.modalities.text import TextCodec
from regardant.models import Model
from regardant.tasks.arguments import OWN_SETS, name_of_set, refuse_options, require_new_names
from regardant.tasks.base import Example, Prediction, Trained
from regardant.tasks.exchange import MOST_TEXTS, Exchange
from regardant.tasks.inspection import Elements, Inspection, examples_of, format_shares, look, shown_inputs
from regardant.tasks.items.data import MARKER, EncodedItems, ItemBatches, Planned, collate, read_splits
from regardant.tasks.measures import SENTENCES, Measures, measure, require_one_file
from regardant.tasks.probe import PROBE_ELEMENTS, PROBE_ROWS, Probe
from regardant.training.checkpoints import load_into

BATCH_ELEMENTS = 8192
"""Elements of a batch in prediction and evaluation."""


class ReadItem(NamedTuple):
    """An item as an input of the model reads it."""

    codec: Codec
    encoded: NDArray[Any]
    units: list[tuple[str, int]]
    """(word, number of its elements). Empty: the elements make no words."""


class TrainedItems(Trained):
    """Base of trained runs over items. A subclass implements `answer`, `evaluated`, `read` and `summary`."""

    def __init__(self, config: Any, folder: Path, codec: Codec, model: Model, device: torch.device) -> None:
        load_into(model, folder / WEIGHTS)
        self.config, self.folder, self.codec, self.device = config, folder, codec, device
        self.model = model.eval().to(device)
        self.max_length = model.max_length(model.inputs[0])

    def answer(self, item: str, scores: Tensor) -> Prediction:
        """Return the answer to an item from the head's scores of it."""
        raise NotImplementedError

    def evaluated(self, name: str, split: EncodedItems) -> dict[str, Any]:
        """Return the scores of a test set. A task may keep the answers to its items in RUN/evaluation."""
        raise NotImplementedError

    def read(self, data: Path) -> EncodedItems:
        """Return the items and targets of a file. Raises DataError for a file that cannot be read."""
        raise NotImplementedError

    def predict(self, items: Sequence[str], **options: Any) -> list[Prediction]:
        """Return the answers to items as a command line gives them. Raises DataError, ConfigError for any option."""
        self.refuse(options, "predicts")
        whole = self.codec.read(items)
        cut = [self.codec.cut(one, self.max_length) for one in whole]
        scores = [row for some in self._alike(cut) for row in self.item_scores(some)]
        found = [self.answer(item, row) for item, row in zip(items, scores, strict=True)]
        is_cut = [len(some) < len(all_of_it) for some, all_of_it in zip(cut, whole, strict=True)]
        return [_with_note(one, self) if short else one for one, short in zip(found, is_cut, strict=True)]

    def item_scores(self, encoded: Sequence[NDArray[Any]]) -> Tensor:
        """Return the scores of encoded items [N, ...] as `answer` takes them, in float32 on the CPU."""
        return self.scores(collate(self.codec, encoded, self.model.inputs))

    def scores(self, inputs: dict[str, Any]) -> Tensor:
        """Return the head's scores in float32 on the CPU."""
        with torch.inference_mode():
            sent = {name: block.to(self.device) for name, block in inputs.items()}
            return self.model.scores(**sent).float().cpu()

    def evaluate(self, data: Sequence[Path] = (), **options: Any) -> dict[str, dict[str, Any]]:
        """Return the scores of the run's own sets, or of files, by name. They are kept in RUN/evaluation.

        `cut` is the number of items that are longer than the model, whose rest was not read. Raises ConfigError for any
        option, and for a file with the name of another set.
        """
        self.refuse(options, "is scored")
        own = self._own_names() if any(name_of_set(file) in OWN_SETS for file in data) else ()
        require_new_names(data, own, self.folder)
        sets = {name_of_set(file): self._of(file) for file in data} if data else self._own_sets()
        scores = {name: {**self.evaluated(name, split), "cut": self.num_cut(split)} for name, split in sets.items()}
        for name, numbers in scores.items():
            write_atomically(self.folder / EVALUATION / f"{name}.json", json.dumps(numbers, indent=2) + "\n")
        return scores

    def exchange(self, data: Sequence[Path] = ()) -> Exchange | None:
        """Return texts of the run's test set or of a file, with its answers. None without texts or data."""
        if not isinstance(self.codec, TextCodec) or not (data or (self.folder / "data" / MARKER).is_file()):
            return None
        require_one_file(data)
        name, split = (name_of_set(data[0]), self._of(data[0])) if data else next(iter(self._own_sets().items()))
        return self.exchanged(name, split.first(MOST_TEXTS))

    def exchanged(self, name: str, split: EncodedItems) -> Exchange | None:
        """Return the texts of a split, with the run's answers. None: a run of this task is not exported."""
        return None

    def text_scores(self, texts: Sequence[str], references: Sequence[str]) -> list[NDArray[Any]]:
        """Return the head's scores of each text."""
        return [self.item_scores([self.encoded(text)])[0].numpy() for text in texts]

    def probe(self) -> Probe:
        """Return rows of the validation set."""
        split = self.looked_at(self._splits()["validation"])
        batches = self.batches(split)
        rows = max(4, min(PROBE_ROWS, PROBE_ELEMENTS // int(batches.lengths.max())))
        chosen = np.random.default_rng(0).permutation(len(split))[:rows]
        return self._probe(batches, Planned(0, 0, chosen))

    def inspect(self, item: str, **options: Any) -> Inspection:
        """Return the inspection of an item. Raises DataError, ConfigError for any option."""
        self.refuse(options, "is inspected")
        (found,) = self.predict([item])
        read = self.inputs_of(found)
        inputs = {name: codec.collate([encoded]).to(self.device) for name, (codec, encoded, _) in read.items()}
        elements = {
            name: Elements(codec.labels(encoded), units, codec.layout(encoded))
            for name, (codec, encoded, units) in read.items()
        }
        records, _ = look(self.model, inputs)
        shares = self.shares(found)
        return Inspection(
            item=item,
            answer=found.answer,
            note=" ".join([f"Answer: {format_shares(shares) or found.answer}.", *found.notes]),
            **shown_inputs(self.model, inputs, elements),
            records=records,
            shares=shares,
            details=found.details,
            title=self.codec.title(item),
        )

    def examples(self, count: int, folder: Path) -> list[Example]:
        """Return the first items of the validation set."""
        return examples_of(self.codec, self._splits()["validation"].items, count, folder)

    def encoded_twice(self, count: int) -> list[tuple[Sequence[int], Sequence[int]]]:
        """Return the kept tokens of texts, and those of the texts decoded from them. Empty if items are not texts."""
        if type(self.codec) is not TextCodec:
            return []
        kept = self._splits()["validation"].first(count).items
        spelled = [self.codec.argument(one, self.folder, "") for one in kept]
        return [
            (one.tolist(), self.codec.encode([text])[0].tolist())
            for one, text in zip(kept, spelled, strict=True)
            if text is not None
        ]

    def encoded(self, item: str) -> NDArray[Any]:
        """Return an item of a command line, encoded and cut to the model's length. Raises DataError."""
        (whole,) = self.codec.read([item])
        return self.codec.cut(whole, self.max_length)

    def inputs_of(self, found: Prediction) -> dict[str, ReadItem]:
        """Return the inputs of the model that an inspection of an item shows, by name, given its answer."""
        read = self.codec.by_input(self.encoded(found.item), self.model.inputs)
        return {
            name: ReadItem(codec, one, self.units(found, one) if codec is self.codec else [])
            for name, (codec, one) in read.items()
        }

    def units(self, found: Prediction, encoded: NDArray[Any]) -> list[tuple[str, int]]:
        """Return (word, number of its elements) for an item with its answer. Empty: its elements make no words."""
        return self.codec.units(found.item, encoded)

    def shares(self, found: Prediction) -> list[tuple[str, float]]:
        """Return the likeliest answers with their probabilities, the likeliest first. Empty where there are none."""
        return []

    def measure(self, data: Sequence[Path] = (), treebank: Path | None = None) -> Measures:
        """Measure attention over the first items of the validation set or of a file. Results are kept in
        RUN/measures."""
        require_one_file(data, treebank)
        name = name_of_set(data[0]) if data else "validation"
        split = self._of(data[0]) if data else self._splits()["validation"]
        batches = self.batches(self.looked_at(split).first(SENTENCES))
        found = measure(self.model, name, [self._probe(batches, planned) for planned in batches.plan(0)], "item")
        found.save(self.folder / "measures")
        return found

    def looked_at(self, split: EncodedItems) -> EncodedItems:
        """Return the items of a split to probe and measure: by default all, or smaller ones if an item is too large."""
        return split

    @property
    def batch_elements(self) -> int:
        """Elements of a batch: at least the length of the model, since a smaller batch would cut items."""
        return max(BATCH_ELEMENTS, self.max_length)

    def batches(self, split: EncodedItems) -> ItemBatches:
        """Return the batches of a split."""
        budget, length, names = self.batch_elements, self.max_length, self.model.inputs
        return ItemBatches(split, self.codec, batch_tokens=budget, max_length=length, seed=0, names=names)

    def num_cut(self, split: EncodedItems) -> int:
        """Return the number of items that are longer than the model, whose rest is not read."""
        return self.batches(split).too_long

    def answers(self, split: EncodedItems) -> list[tuple[Tensor, Tensor]]:
        """Return the head's scores and the targets of a split, batch by batch."""
        batches = self.batches(split)
        # One batch is loaded at a time: all inputs together may not fit into memory.
        return [(self.scores(dict(one.inputs)), one.targets) for one in map(batches.load, batches.plan(0))]

    def refuse(self, options: Mapping[str, Any], doing: str) -> None:
        """Raise ConfigError for options that are given: runs over items have none."""
        refuse_options(f"a run of {self.config.task} {doing}", options)

    def _alike(self, encoded: Sequence[NDArray[Any]]) -> Iterator[list[NDArray[Any]]]:
        """Yield consecutive items that can be collated, at most PROBE_ROWS at a time."""
        for _, alike in groupby(encoded, key=lambda one: one.shape if self.codec.equal_shapes else None):
            items = list(alike)
            for start in range(0, len(items), PROBE_ROWS):
                yield items[start : start + PROBE_ROWS]

    def _probe(self, batches: ItemBatches, planned: Planned) -> Probe:
        batch = batches.load(planned).to(self.device)
        return Probe(batch.inputs, batch.targets, batches.labels(planned))

    def _of(self, data: Path) -> EncodedItems:
        split = self.read(data)
        if not len(split):
            raise DataError(f"{data} holds no items, or only blank ones: give a file with items")
        return split

    def _own_names(self) -> list[str]:
        """Return the names of the run's own sets that are evaluated. Empty: the run holds no data."""
        try:
            return list(self._own_sets())
        except RunError:
            return []

    def _own_sets(self) -> dict[str, EncodedItems]:
        splits = self._splits()
        return {name: splits[name] for name in OWN_SETS if name in splits}

    def _splits(self) -> dict[str, EncodedItems]:
        if not (self.folder / "data" / MARKER).is_file():
            raise RunError(f"{self.folder} holds no data: give some with --data")
        return read_splits(self.folder / "data")[0]


def _with_note(found: Prediction, trained: TrainedItems) -> Prediction:
    note = f"longer than the model's {trained.max_length} {trained.codec.unit}s: the rest was not read"
    return Prediction(found.item, found.answer, found.details, [*found.notes, note])


def cut_note(scores: Mapping[str, Any]) -> str:
    """Return the number of items that were cut, to end a line of scores with. Empty: none was."""
    cut = scores.get("cut", 0)
    return f"; items cut to the model's length: {cut:,}" if cut else ""


def texts_of(codec: TextCodec, split: EncodedItems) -> list[str]:
    """Return the texts of a split, decoded from its tokens."""
    return [codec.tokenizer.decode(split.items[number].tolist()) for number in range(len(split))]


def tokens_of(codec: TextCodec) -> Callable[[Sequence[str], Sequence[str]], int]:
    """Return a function that counts the tokens of texts."""
    return lambda texts, answers: sum(map(len, codec.tokenizer.encode_batch(list(texts))))
