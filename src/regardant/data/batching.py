"""Pairs of a source and the tokens of a target as arrays, and the batches of an epoch.

Pairs of like length share a batch, so that little of it is padding, and a batch holds as many pairs as fit a budget of
elements. The plan of an epoch is a pure function of the lengths, the budget, the seed and the epoch: every rank
computes it alone, and a resumed run finds its batch again.

Lengths count the elements of one side of a pair: those of a source that the model reads, and the tokens of a target
with EOS. SOS is not counted, since the decoder reads `target[:, :-1]` and predicts `target[:, 1:]`.

PATH.ids.npy       concatenated arrays of unequal length (tokens of a text, rows of an image), memory-mapped
PATH.starts.npy    offset of each array, then the total length

Shape legend: B pairs, S longest source, T longest target with EOS.
"""

import shutil
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol, Self

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from regardant.data.vocabulary import EOS, PAD, SOS
from regardant.errors import DataError

Lengths = NDArray[np.integer]
BatchPlan = list[NDArray[np.int64]]

LENGTH_JITTER = 0.05
"""Largest share by which a length is randomly stretched before sorting, so that each epoch has other batches. In
batches of 4096 tokens of Multi30k the two jitters replace 63 % of the pairs that share a batch with a given pair;
padding is 5 % and 3 %."""
DIFFERENCE_JITTER = 2.0
"""Largest random number of tokens added to the length difference of source and target before sorting."""


def plan_batches(
    source_lengths: Lengths,
    target_lengths: Lengths,
    *,
    batch_tokens: int,
    seed: int,
    epoch: int,
) -> BatchPlan:
    """Return the indices of the sentences in each batch, in training order. Every sentence is in exactly one batch.

    A batch of n sentences, padded to its longest source or target, has at most `batch_tokens` tokens on each side.
    Raises DataError for a longer sentence.
    """
    widths = np.maximum(source_lengths, target_lengths)
    if widths.size and widths.max() > batch_tokens:
        raise DataError(
            f"sentence pair {widths.argmax()} (from 0) has {widths.max()} tokens on one side, batch_tokens allows "
            f"{batch_tokens}: raise batch_tokens, or leave out longer sentences"
        )
    generator = np.random.default_rng([seed, epoch])
    order = _by_length(widths, source_lengths - target_lengths.astype(np.int64), generator)
    batches = [order[start:end] for start, end in _cut(widths[order], batch_tokens)]
    return [batches[i] for i in generator.permutation(len(batches))]


def padding_share(batches: BatchPlan, source_lengths: Lengths, target_lengths: Lengths) -> tuple[float, float]:
    """Return the share of padding among all positions of the batches: (source, target), each from 0 to 1."""
    sizes = np.array([len(batch) for batch in batches], dtype=np.int64)
    starts = np.cumsum(sizes) - sizes
    order = np.concatenate(batches)

    def share(lengths: Lengths) -> float:
        places = (np.maximum.reduceat(lengths[order], starts) * sizes).sum()
        return float(1 - lengths[order].sum() / places)

    return share(source_lengths), share(target_lengths)


class Source(Protocol):
    """Interface of a codec that batches the encoded sources of one kind of item."""

    def lengths(self, rows: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the number of elements of each source, given the number of rows of its array."""

    def collate(self, encoded: Sequence[NDArray[Any]]) -> Any:
        """Return the sources of a batch: a tensor [B, ...], or an object pinned, moved and sliced like one."""


@dataclass(frozen=True)
class PairBatch:
    """A padded batch of pairs."""

    source: Any
    """[B, ...] sources as collated by their codec. Of texts, [B, S] tokens, then PAD."""
    target: Int[Tensor, "B T+1"]
    """SOS, tokens, EOS, then PAD."""

    def to(self, device: torch.device) -> Self:
        return type(self)(sent(self.source, device), sent(self.target, device))

    def part(self, number: int, parts: int) -> Self:
        """Return pairs `number::parts`, the shard of one rank. Empty if there are fewer pairs."""
        return type(self)(self.source[number::parts], self.target[number::parts])

    @property
    def inputs(self) -> dict[str, Any]:
        """The inputs of a model by name: the target without its last token, as teacher forcing reads it."""
        return {"source": self.source, "target": self.target[:, :-1]}

    @property
    def read(self) -> dict[str, Any]:
        """Inputs with EOS replaced by PAD, so that every token that the decoder reads has a target token to predict."""
        return {"source": self.source, "target": self.target[:, :-1].masked_fill(self.targets == PAD, PAD)}

    @property
    def targets(self) -> Tensor:
        """The tokens to be predicted [B, T]: the target without SOS."""
        return self.target[:, 1:]

    @property
    def count(self) -> int:
        """Number of target tokens with EOS, without SOS and PAD. Synchronises with the accelerator."""
        return int((self.target[:, 1:] != PAD).sum())


def sent(block: Any, device: torch.device) -> Any:
    """Return a block on a device. The copy to a GPU is asynchronous, from pinned memory."""
    return block.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else block.to(device)


def pad(sequences: Sequence[ArrayLike], *, sos: bool = False, eos: bool = True) -> Int[Tensor, "B L"]:
    """Return token ids as one block, each row padded with PAD, with SOS before its ids and EOS after them if set."""
    rows = [np.asarray(sequence, dtype=np.int64) for sequence in sequences]
    first = int(sos)
    ends = np.array([first + len(row) for row in rows])
    block = np.full((len(rows), ends.max() + int(eos)), PAD, dtype=np.int64)
    block[:, :first] = SOS
    places = np.arange(block.shape[1])
    block[(places >= first) & (places < ends[:, None])] = np.concatenate(rows)
    if eos:
        block[np.arange(len(rows)), ends] = EOS
    return torch.from_numpy(block)


def id_dtype(vocab_size: int) -> np.dtype[Any]:
    """Return uint16 if it holds all ids of a vocabulary, else int32."""
    return np.dtype(np.uint16 if vocab_size <= 2**16 else np.int32)


class Arrays(Sequence[NDArray[Any]]):
    """Arrays of unequal length, concatenated: in memory, or memory-mapped from disk."""

    def __init__(self, values: NDArray[Any], starts: NDArray[np.int64]) -> None:
        self._values, self._starts = values, starts

    @classmethod
    def load(cls, path: Path) -> Self:
        """Open the files that `ArraysWriter` wrote."""
        values, starts = (np.load(path.with_suffix(f".{part}.npy"), mmap_mode="r") for part in ("ids", "starts"))
        return cls(values, starts)

    @classmethod
    def join(cls, chunks: Iterable[Sequence[NDArray[Any]]]) -> Self:
        """Concatenate arrays in memory, chunk by chunk. Many small arrays would fragment the memory when freed."""
        lengths, values = [np.zeros(1, np.int64)], []
        for arrays in chunks:
            lengths.append(np.array([len(one) for one in arrays], np.int64))
            values.append(np.concatenate(arrays))
        return cls(np.concatenate(values) if values else np.empty(0), np.concatenate(lengths).cumsum())

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Length of each array, computed at each call: an array of its own would cost 8 bytes an array."""
        return np.diff(self._starts)

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, index: Any) -> Any:
        return self._values[self._starts[index] : self._starts[index + 1]]


class ArraysWriter:
    """Writer of the files that `Arrays` reads, a chunk at a time. All arrays have the dtype of the first, and its shape
    except for the length."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._dtype = np.dtype(np.int64)
        self._shape: tuple[int, ...] = ()
        self._count, self._end = 0, 0

    def __enter__(self) -> Self:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._ids, self._starts = (self._path.with_suffix(f".{part}.npy").open("wb") for part in ("ids", "starts"))
        _write_header(self._starts, np.dtype(np.int64), (0,))
        np.zeros(1, np.int64).tofile(self._starts)
        return self

    def append(self, arrays: Sequence[NDArray[Any]]) -> None:
        """Add a chunk of arrays."""
        if not arrays:
            return
        if not self._count:
            self._dtype, self._shape = arrays[0].dtype, arrays[0].shape[1:]
            _write_header(self._ids, self._dtype, (0, *self._shape))
        starts = self._end + np.cumsum([len(one) for one in arrays], dtype=np.int64)
        starts.tofile(self._starts)
        np.concatenate(arrays, dtype=self._dtype).tofile(self._ids)
        self._count, self._end = self._count + len(arrays), int(starts[-1])

    def __exit__(self, *exception: object) -> None:
        _write_header(self._ids, self._dtype, (self._end, *self._shape))
        _write_header(self._starts, np.dtype(np.int64), (self._count + 1,))
        self._ids.close()
        self._starts.close()


def _write_header(file: BinaryIO, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    # numpy leaves room in the header for any length, so the true one fits over the first.
    file.seek(0)
    np.lib.format.write_array_header_1_0(file, {"descr": dtype.str, "fortran_order": False, "shape": shape})


class EncodedPairs:
    """Pairs in a folder, read from disk as needed, so they may be larger than memory."""

    def __init__(self, codec: Source, source: Arrays, target: Arrays) -> None:
        self._codec, self._source, self._target = codec, source, target
        self.source_lengths = codec.lengths(source.lengths)
        """Number of elements of each source."""
        self.target_lengths = target.lengths + 1
        """Number of tokens of each target, with EOS."""

    @classmethod
    def build(
        cls, codec: Source, chunks: Iterable[tuple[Sequence[NDArray[Any]], Sequence[NDArray[Any]]]], folder: Path
    ) -> Self:
        """Write chunks of encoded sources and targets into `folder`, which appears once it is complete.

        Call in one process only; the others wait and `load`.
        """
        partial = folder.with_name(f"{folder.name}.{uuid.uuid4().hex}.partial")
        partial.mkdir(parents=True)
        try:
            with ArraysWriter(partial / "source") as source, ArraysWriter(partial / "target") as target:
                for sources, targets in chunks:
                    source.append(sources)
                    target.append(targets)
            if folder.exists():
                shutil.rmtree(folder)
            partial.rename(folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        return cls.load(codec, folder)

    @classmethod
    def load(cls, codec: Source, folder: Path) -> Self:
        """Open the folder that `build` wrote. Raises DataError."""
        try:
            return cls(codec, Arrays.load(folder / "source"), Arrays.load(folder / "target"))
        except (OSError, EOFError, ValueError) as error:
            raise DataError(f"{folder} holds no encoded pairs ({error}): delete it and train again") from error

    def __len__(self) -> int:
        return len(self.source_lengths)

    def source(self, index: int) -> NDArray[Any]:
        """Return an encoded source."""
        encoded: NDArray[Any] = self._source[index]
        return encoded

    def encoded(self, indices: Iterable[int]) -> tuple[list[NDArray[Any]], list[list[int]]]:
        """Return the sources and the target tokens of these pairs, without EOS."""
        chosen = list(indices)
        return [self._source[i] for i in chosen], [self._target[i].tolist() for i in chosen]

    def batch(self, indices: Iterable[int]) -> PairBatch:
        """Return these pairs, in this order."""
        chosen = list(indices)
        source = self._codec.collate([self._source[i] for i in chosen])
        return PairBatch(source, pad([self._target[i] for i in chosen], sos=True))


def _by_length(widths: Lengths, differences: Lengths, generator: np.random.Generator) -> NDArray[np.int64]:
    stretched = np.floor(widths * (1 + LENGTH_JITTER * generator.random(len(widths))))
    # Every other width is sorted in reverse, so that differences do not jump between neighbouring widths.
    differences = np.where(stretched % 2 == 1, -differences, differences)
    return np.lexsort((differences + DIFFERENCE_JITTER * generator.random(len(widths)), stretched))


def _cut(widths: Lengths, batch_tokens: int) -> Iterator[tuple[int, int]]:
    """Yield the (start, end) of each batch in turn, with as many sentences as fit."""
    start = 0
    while start < len(widths):
        window = widths[start : start + batch_tokens // int(widths[start])]
        padded = np.maximum.accumulate(window).astype(np.int64) * np.arange(1, len(window) + 1)
        end = start + int(np.searchsorted(padded, batch_tokens, side="right"))
        yield start, end
        start = end
