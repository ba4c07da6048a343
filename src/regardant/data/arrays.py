"""Arrays of unequal length in files that are mapped into memory: tokens of texts, rows of images, frames of sounds.

PATH.ids.npy       all arrays end to end
PATH.starts.npy    where each begins
"""

from collections.abc import Sequence
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
    """Writes what `Arrays` reads, a chunk at a time. All arrays have the dtype of the first one, and its shape but for
    the length."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._dtype = np.dtype(np.int64)
        self._shape: tuple[int, ...] = ()
        self._lengths = [np.zeros(1, dtype=np.int64)]

    def __enter__(self) -> Self:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._path.with_suffix(".ids.npy").open("wb")
        return self

    def append(self, arrays: Sequence[NDArray[Any]]) -> None:
        """Add a chunk of arrays."""
        if not arrays:
            return
        if not self._file.tell():
            self._dtype, self._shape = arrays[0].dtype, arrays[0].shape[1:]
            self._write_header(0)
        self._lengths.append(np.array([len(one) for one in arrays], dtype=np.int64))
        np.concatenate(arrays, dtype=self._dtype).tofile(self._file)

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
