"""Pairs of a run: encoded once, kept in RUN/data/first and RUN/data/second, batched at random.

RUN/first/, RUN/second/    files of the codec of each kind of item

Shape legend: N pairs, B pairs of a batch.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regardant.data.batching import padding_share
from regardant.data.item_pairs import ItemPair
from regardant.errors import ConfigError
from regardant.modalities import Codec, ModalityConfig
from regardant.tasks.items.data import MARKER, EncodedItems, ItemBatch, ItemBatches, Planned, read_splits, write_splits
from regardant.tasks.items.prepare import keep_codec

FIRST, SECOND = "first", "second"
"""Names of the two kinds of items: inputs of the model, sections of the recipe, folders of the run."""

UNLABELLED = -1
"""Number of the label of a pair without one."""


class Reader(NamedTuple):
    """Codec and length limit of one kind of item."""

    codec: Codec
    max_length: int
    """Maximum number of elements of an item."""

    def collate(self, items: Iterable[NDArray[Any]]) -> Tensor:
        """Return a batch of items, cut to the model's length."""
        block: Tensor = self.codec.collate([self.codec.cut(one, self.max_length) for one in items])
        return block


@dataclass(frozen=True)
class PairedItems(EncodedItems):
    """One split: the first items of pairs, whose targets are labels, and their partners, whose targets [N, 2] number
    the distinct items of both kinds."""

    second: EncodedItems

    def first(self, count: int) -> Self:
        begun = EncodedItems(self.items, self.rows, self.targets).first(count)
        return type(self)(begun.items, begun.rows, begun.targets, self.second.first(count))

    @property
    def labels(self) -> NDArray[np.int64]:
        """[N] numbers of labels, UNLABELLED for pairs without one."""
        return self.targets

    @property
    def numbers(self) -> NDArray[np.int64]:
        """[N, 2] number of each item among the distinct ones of its kind."""
        return self.second.targets


def pair_up(first: Sequence[NDArray[Any]], second: Sequence[NDArray[Any]], labels: Sequence[int]) -> PairedItems:
    """Return pairs of encoded items in memory."""
    items, partners = EncodedItems.of(first, labels), EncodedItems.of(second, number_pairs(first, second))
    return PairedItems(items.items, items.rows, items.targets, partners)


def number_pairs(*sides: Sequence[NDArray[Any]]) -> list[tuple[int, ...]]:
    """Return the numbers of the items of each pair, counted over distinct items: equal items have the same number."""
    columns = []
    for side in sides:
        known: dict[bytes, int] = {}
        digests = (hashlib.sha256(np.ascontiguousarray(one).tobytes()).digest() for one in side)
        columns.append([known.setdefault(digest, len(known)) for digest in digests])
    return list(zip(*columns, strict=True))


def with_paths(pair: ItemPair, modalities: Mapping[str, ModalityConfig]) -> ItemPair:
    """Return a pair with names of files replaced by paths, which the codecs read."""
    first, second = (
        Path(item) if modality.suffixes and isinstance(item, str) else item
        for item, modality in zip(pair[:2], modalities.values(), strict=True)
    )
    return ItemPair(first, second, pair.label)


def are_kept(run: Path) -> bool:
    """Return whether a run folder has the encoded pairs of all splits."""
    return (run / "data" / SECOND / MARKER).is_file()


def keep_pairs(
    run: Path,
    modalities: Mapping[str, ModalityConfig],
    earlier: Path | None,
    sets: Mapping[str, Sequence[ItemPair]],
    labels: Mapping[str, Sequence[int]],
) -> None:
    """Fit both codecs to the training pairs, or take over those of an earlier run, and keep all splits encoded."""
    encoded = []
    for side, (name, modality) in enumerate(modalities.items()):
        folder = run / name
        folder.mkdir(parents=True, exist_ok=True)
        items = {split: [pair[side] for pair in pairs] for split, pairs in sets.items()}
        codec = keep_codec(modality, items["train"], folder, None if earlier is None else earlier / name)
        encoded.append({split: codec.encode(given) for split, given in items.items()})
    first, second = encoded
    write_splits(run / "data" / FIRST, {split: (first[split], labels[split]) for split in sets})
    numbers = {split: number_pairs(first[split], second[split]) for split in sets}
    write_splits(run / "data" / SECOND, {split: (second[split], numbers[split]) for split in sets})


def read_pairs(folder: Path) -> tuple[dict[str, PairedItems], dict[str, str]]:
    """Return the splits that `keep_pairs` wrote below RUN/data, and their fingerprints. Raises RunError if damaged."""
    (first, of_first), (second, of_second) = (read_splits(folder / name) for name in (FIRST, SECOND))
    splits = {name: PairedItems(one.items, one.rows, one.targets, second[name]) for name, one in first.items()}
    fingerprints = {f"{split}.{FIRST}": found for split, found in of_first.items()}
    return splits, fingerprints | {f"{split}.{SECOND}": found for split, found in of_second.items()}


class PairBatches(ItemBatches):
    """The batches of a split, drawn at random and not by length: the loss compares the pairs of a batch, and pairs of
    like lengths are no fair sample.

    Sizes of the batches of an epoch differ by at most one pair, since the loss depends on the size.

    rows: maximum number of pairs of a batch, that of training, so that the losses of all splits can be compared. None:
    as many as `batch_tokens` has room for if all are as long as the longest item.
    """

    split: PairedItems

    def __init__(
        self,
        split: PairedItems,
        first: Reader,
        second: Reader,
        *,
        batch_tokens: int,
        seed: int,
        rows: int | None = None,
    ) -> None:
        super().__init__(split, first.codec, batch_tokens=batch_tokens, max_length=first.max_length, seed=seed)
        self.second = ItemBatches(
            split.second, second.codec, batch_tokens=batch_tokens, max_length=second.max_length, seed=seed
        )
        self.sides = {FIRST: self.lengths, SECOND: self.second.lengths}
        self.lengths = np.maximum(self.lengths, self.second.lengths)
        longest = int(self.lengths.max())
        self.rows = rows or batch_tokens // longest
        """Maximum number of pairs of a batch."""
        if self.rows < 2:
            raise ConfigError(
                f"training.batch_tokens: given {batch_tokens}, with room for {self.rows} pair of {longest} elements; "
                f"pairs of a batch are compared with each other: give {2 * longest} at least"
            )

    def plan(self, epoch: int) -> list[Planned]:
        order = np.random.default_rng([self.seed, epoch]).permutation(len(self.split))
        batches = np.array_split(order, -(-len(order) // self.rows))
        return [Planned(epoch, number, indices) for number, indices in enumerate(batches)]

    def inputs(self, planned: Planned) -> dict[str, Tensor]:
        return {FIRST: super().inputs(planned)["input"], SECOND: self.second.inputs(planned)["input"]}

    def labels(self, planned: Planned) -> dict[str, list[list[str]]]:
        return {FIRST: super().labels(planned)["input"], SECOND: self.second.labels(planned)["input"]}

    def load(self, planned: Planned) -> ItemBatch:
        """Return one planned batch. Its targets [B, 2] number the items: equal items have the same number."""
        targets = torch.from_numpy(self.split.numbers[planned.indices])
        return ItemBatch(self.inputs(planned), targets, len(targets))

    def padding(self) -> dict[str, float]:
        batches = [planned.indices for planned in self.plan(0)]
        shares = {name: padding_share(batches, lengths, lengths)[0] for name, lengths in self.sides.items()}
        return {name: share for name, share in shares.items() if share}
