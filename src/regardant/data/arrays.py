"""Arrays of unequal length in files that are mapped into memory: tokens of texts, rows of images, frames of sounds.

PATH.ids.npy       all arrays end to end
PATH.starts.npy    where each begins
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


class Arrays(Sequence[NDArray[Any]]):
    """A column of arrays, read from disk as needed."""

    def __init__(self, path: Path) -> None:
        self._values = np.load(path.with_suffix(".ids.npy"), mmap_mode="r")
        self._starts = np.load(path.with_suffix(".starts.npy"), mmap_mode="r")
        self.lengths: NDArray[np.int64] = np.diff(self._starts)
        """Length of each array."""

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: Any) -> Any:
        return self._values[self._starts[index] : self._starts[index + 1]]


class ArraysWriter:
    """Writes what `Arrays` reads, a chunk at a time. All arrays have one dtype and one shape but for their length."""

    def __init__(self, path: Path, dtype: Any, shape: tuple[int, ...] = ()) -> None:
        self._path = path
        self._dtype = np.dtype(dtype)
        self._shape = shape
        self._lengths = [np.zeros(1, dtype=np.int64)]

    def __enter__(self) -> Self:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._path.with_suffix(".ids.npy").open("wb")
        self._write_header(0)
        return self

    def append(self, arrays: Sequence[Sequence[int]] | Sequence[NDArray[Any]]) -> None:
        """Add a chunk of arrays."""
        self._lengths.append(np.array([len(one) for one in arrays], dtype=np.int64))
        if arrays:
            np.concatenate([np.asarray(one, dtype=self._dtype) for one in arrays]).tofile(self._file)

    def __exit__(self, *exception: object) -> None:
        starts = np.concatenate(self._lengths).cumsum()
        np.save(self._path.with_suffix(".starts.npy"), starts)
        self._write_header(int(starts[-1]))
        self._file.close()

    def _write_header(self, length: int) -> None:
        # numpy leaves room in the header for any length, so the true one fits over the first.
        self._file.seek(0)
        header = {"descr": self._dtype.str, "fortran_order": False, "shape": (length, *self._shape)}
        np.lib.format.write_array_header_1_0(self._file, header)


def write_arrays(path: Path, arrays: Iterable[NDArray[Any]], chunk: int = 1000) -> None:
    """Write a column whose dtype and shape are those of the first array."""
    waiting: list[NDArray[Any]] = []
    writer: ArraysWriter | None = None
    for one in arrays:
        if writer is None:
            writer = ArraysWriter(path, one.dtype, one.shape[1:]).__enter__()
        waiting.append(one)
        if len(waiting) == chunk:
            writer.append(waiting)
            waiting = []
    writer = writer or ArraysWriter(path, np.int64).__enter__()
    writer.append(waiting)
    writer.__exit__()
