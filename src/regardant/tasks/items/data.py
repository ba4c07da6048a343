"""Items and targets of a run: encoded once, kept in RUN/data, batched by length.

Shape legend: N items.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regardant.data.batching import Arrays, ArraysWriter, padding_share, plan_batches, sent
from regardant.errors import RunError
from regardant.files import write_atomically
from regardant.modalities import Codec
from regardant.tasks.base import Log

MARKER = "splits.json"
"""Name of the file that is written last: a folder that has it is complete."""

Targets = Sequence[int] | Sequence[tuple[int, ...]]
"""The target of each item: a number, or several."""

CHUNK = 1000
"""Number of items written at a time."""


@dataclass(frozen=True)
class ItemBatch:
    """A batch of items: inputs of a model by name, and targets. A row is an item."""

    inputs: Mapping[str, Any]
    """Collated items by input: tensors [B, ...], or objects that are moved and sliced like one."""
    targets: Tensor
    count: int
    """Number of targets that are not ignored."""

    def to(self, device: torch.device) -> Self:
        """Return the batch on a device."""
        inputs = {name: sent(block, device) for name, block in self.inputs.items()}
        return type(self)(inputs, sent(self.targets, device), self.count)

    def part(self, number: int, parts: int) -> Self:
        """Return rows `number::parts`, the shard of one rank. Empty if there are fewer rows."""
        rows = slice(number, None, parts)
        targets = self.targets[rows]
        share = self.count if parts == 1 else int((targets >= 0).sum())
        return type(self)({name: block[rows] for name, block in self.inputs.items()}, targets, share)


class Planned(NamedTuple):
    """One batch of an epoch."""

    epoch: int
    number: int
    """Number of the batch in its epoch."""
    indices: NDArray[np.int64]


@dataclass(frozen=True)
class EncodedItems:
    """One split: encoded items and their targets."""

    items: Sequence[NDArray[Any]]
    rows: NDArray[np.int64]
    """[N] number of rows of each item's array."""
    targets: NDArray[np.int64]
    """[N], or a row of numbers for each item; a task without targets of its own has zeros."""

    @classmethod
    def of(cls, items: Sequence[NDArray[Any]], targets: Targets) -> Self:
        """Return a split of items in memory."""
        rows = np.array([len(one) for one in items], dtype=np.int64)
        return cls(items, rows, np.asarray(targets, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.items)

    def first(self, count: int) -> Self:
        """Return the first `count` items."""
        count = min(count, len(self))
        items = [self.items[number] for number in range(count)]
        return type(self)(items, self.rows[:count], self.targets[:count])


def write_splits(folder: Path, sets: Mapping[str, tuple[Sequence[NDArray[Any]], Targets]]) -> None:
    """Keep encoded splits in a folder, with their fingerprints."""
    fingerprints = {}
    for name, (items, targets) in sets.items():
        with ArraysWriter(folder / name) as writer:
            for start in range(0, len(items), CHUNK):
                writer.append(items[start : start + CHUNK])
        np.save(folder / f"{name}.targets.npy", np.asarray(targets, dtype=np.int64))
        digest = hashlib.sha256(np.asarray(targets, dtype=np.int64).tobytes())
        for one in items:
            digest.update(np.ascontiguousarray(one).tobytes())
        fingerprints[name] = digest.hexdigest()
    write_atomically(folder / MARKER, json.dumps({"fingerprints": fingerprints}, indent=1) + "\n")


def read_splits(folder: Path) -> tuple[dict[str, EncodedItems], dict[str, str]]:
    """Return the splits that `write_splits` kept, and their fingerprints. Raises RunError for a damaged folder."""
    try:
        fingerprints = json.loads((folder / MARKER).read_text(encoding="utf-8"))["fingerprints"]
        splits = {}
        for name in fingerprints:
            items = Arrays.load(folder / name)
            splits[name] = EncodedItems(items, items.lengths, np.load(folder / f"{name}.targets.npy"))
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{folder} is damaged ({error}): train into another folder") from error
    return splits, fingerprints


def collate(codec: Codec, encoded: Sequence[NDArray[Any]], names: Sequence[str]) -> dict[str, Any]:
    """Return the inputs of a model by name for encoded items."""
    rows = [codec.by_input(one, names) for one in encoded]
    return {name: rows[0][name][0].collate([row[name][1] for row in rows]) for name in names}


class ItemBatches:
    """The batches of a split: items of like length together, as many as fit a budget of elements."""

    def __init__(
        self,
        split: EncodedItems,
        codec: Codec,
        *,
        batch_tokens: int,
        max_length: int,
        seed: int,
        names: Sequence[str] = ("input",),
    ) -> None:
        self.split, self.codec, self.seed = split, codec, seed
        self.names = names
        """The inputs of the model."""
        self.max_length = min(max_length, batch_tokens)
        self.batch_tokens = batch_tokens
        self.augments = False
        """True if items are augmented in each epoch, as `augment` or `bpe_dropout` specify: training items alone."""
        self.lengths = np.minimum(codec.lengths(split.rows), self.max_length)

    @property
    def too_long(self) -> int:
        """Number of items that are longer than the model and are cut."""
        return int((self.codec.lengths(self.split.rows) > self.max_length).sum())

    def require_cut(self) -> None:
        """Raise DataError if the longest item cannot be cut to the model's length."""
        self.codec.cut(self.split.items[int(self.split.rows.argmax())], self.max_length)

    def log_cut(self, log: Log) -> None:
        """Log how many items are cut. Raises DataError if the longest cannot be."""
        if self.too_long:
            self.require_cut()
            log(f"{self.too_long:,} items are cut to the model's {self.max_length} {self.codec.unit}s")

    @property
    def targets_per_epoch(self) -> int:
        """Number of targets in an epoch: one for each item."""
        return len(self.split)

    def plan(self, epoch: int) -> list[Planned]:
        """Return the batches of an epoch."""
        batches = plan_batches(self.lengths, self.lengths, batch_tokens=self.batch_tokens, seed=self.seed, epoch=epoch)
        return [Planned(epoch, number, indices) for number, indices in enumerate(batches)]

    def arrays(self, planned: Planned) -> list[NDArray[Any]]:
        """Return the items of a batch, augmented if `augments`, and cut to the model's length."""
        numbers = planned.indices.tolist()
        items = [self.split.items[number] for number in numbers]
        if self.augments:
            seeds = ((self.seed, planned.epoch, number) for number in numbers)
            changed = [self.codec.augmented(one, seed) for one, seed in zip(items, seeds, strict=True)]
            # bpe_dropout makes items longer, which some codecs cannot cut: such an item stays as it is.
            count, longest = self.codec.count, self.max_length
            items = [
                one if count(new) > longest >= count(one) else new for one, new in zip(items, changed, strict=True)
            ]
        return [self.codec.cut(one, self.max_length) for one in items]

    def inputs(self, planned: Planned) -> dict[str, Any]:
        """Return the inputs of the model by name for a batch."""
        return collate(self.codec, self.arrays(planned), self.names)

    def labels(self, planned: Planned) -> dict[str, list[list[str]]]:
        """Return the names of the elements of each item of a batch, by input."""
        rows = [self.codec.by_input(one, self.names) for one in self.arrays(planned)]
        return {name: [codec.labels(one) for codec, one in (row[name] for row in rows)] for name in self.names}

    def load(self, planned: Planned) -> ItemBatch:
        """Return one planned batch as tensors."""
        targets = torch.from_numpy(self.split.targets[planned.indices])
        return ItemBatch(self.inputs(planned), targets, len(targets))

    def padding(self) -> dict[str, float]:
        """Return the share of padding in the first epoch. Empty if all items have the same length."""
        if len(self.lengths) and self.lengths.min() == self.lengths.max():
            return {}
        batches = [planned.indices for planned in self.plan(0)]
        return {"input": padding_share(batches, self.lengths, self.lengths)[0]}

    def largest_batches(self) -> list[Planned]:
        """Return the planned batches one of which takes most memory: with most elements or most pairs of them."""
        planned = self.plan(0)
        rows = np.array([len(one.indices) for one in planned])
        longest = np.array([int(self.lengths[one.indices].max()) for one in planned])
        return [planned[number] for number in sorted({int((rows * longest**power).argmax()) for power in (1, 2)})]

    def sample_batches(self) -> list[Planned]:
        """Return three batches to time: of short, of median and of long items."""
        planned = sorted(self.plan(0), key=lambda one: int(self.lengths[one.indices].max()))
        return [planned[len(planned) * quarter // 4] for quarter in (1, 2, 3)]

    def median_batch(self) -> Planned:
        """Return a batch of median length, to time."""
        return self.sample_batches()[1]
