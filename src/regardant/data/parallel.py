"""Sentence pairs for translation: reading, splitting and storage.

Text is read once and written to Arrow files, which are mapped into memory, so that a corpus may be larger
than the machine's memory. `Splits` stands for these files; every corpus of pairs is stored as one.
"""

import json
import shutil
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b, sha256
from itertools import chain, compress, islice, zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from regardant.config import Config
from regardant.data.cleaning import CleaningConfig, CleaningReport, Dropped, Pair, Reason, clean
from regardant.data.tables import is_table_file, read_dataset, read_table
from regardant.data.text_files import LONGEST_LINE, Fault, PairRecord, place, read_lines, read_text_files
from regardant.errors import DataError

if TYPE_CHECKING:
    from datasets import Dataset

MARKER = "splits.json"
"""File that is written last: a folder that contains the file is complete."""

ROWS_AT_ONCE = 1000
LEFT_OUT = -1
TRAIN = 0


@dataclass(frozen=True)
class Splits:
    """Training, validation and test pairs, memory-mapped. Each has the text columns `source` and `target`."""

    train: "Dataset"
    validation: "Dataset"
    tests: "dict[str, Dataset]"
    """Test sets by name."""

    report: CleaningReport
    """Counts of training pairs that cleaning kept and left out. Pairs split off for validation count as kept."""

    fingerprints: dict[str, str]
    """SHA-256 of the pairs of each split (`train`, `validation` and the tests by name), equal on all machines."""

    @classmethod
    def write(cls, folder: Path, sets: Mapping[str, Iterable[Pair]], report: CleaningReport) -> Self:
        """Write `train`, `validation` and the test sets, in the order given, and open them.

        `folder` appears once it is complete, and replaces earlier splits. `report` is stored after all pairs have
        been consumed. Call in one process at a time. Raises DataError for a folder with other files.
        """
        if folder.exists() and not (folder / MARKER).is_file() and any(folder.iterdir()):
            raise DataError(f"{folder} holds something else than pairs, and is not replaced; name another folder")
        with _folder_beside(folder) as scratch:
            new = scratch / folder.name
            new.mkdir()
            fingerprints = {name: _write_arrow(new / f"{name}.arrow", pairs) for name, pairs in sets.items()}
            written = {"fingerprints": fingerprints, "report": report.as_dict()}
            (new / MARKER).write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")
            if folder.exists():
                shutil.rmtree(folder)
            new.rename(folder)
        return cls.load(folder)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Open the splits that `write` stored. Does not need the files of the corpus. Raises DataError."""
        from datasets import Dataset

        marker = folder / MARKER
        if not marker.is_file():
            raise DataError(f"{folder} holds no complete splits ({MARKER} is missing); read the pairs again")
        try:
            written = json.loads(marker.read_text(encoding="utf-8"))
            fingerprints = written["fingerprints"]
            sets = {name: Dataset.from_file(str(folder / f"{name}.arrow")) for name in fingerprints}
            return cls(
                train=sets.pop("train"),
                validation=sets.pop("validation"),
                tests=sets,
                report=CleaningReport.from_dict(written["report"]),
                fingerprints=fingerprints,
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"{folder} is damaged ({error}); restore it, or delete it and train again") from error


class Pairs(Config):
    """Source of sentence pairs: two text files, or two columns of a table."""

    source: str
    """A file with one sentence a line (plain, .gz or .zst); if `table` is set, the name of its column."""

    target: str
    """File or column of the translations. A column may be nested (translation.fr); columns of a .tsv or .csv file
    without a line of names are numbers from 1."""

    table: str | None = None
    """A .tsv, .csv, .jsonl or .parquet file, a folder holding a Hugging Face dataset, or its name on the hub."""

    split: str | None = None
    """Split of a dataset. Optional if there is only one."""

    subset: str | None = None
    """Variant of a dataset of the hub, such as en-fr of Helsinki-NLP/opus_books."""

    @model_validator(mode="after")
    def _only_datasets_have_splits(self) -> Self:
        is_dataset = self.table is not None and not is_table_file(Path(self.table))
        if (self.split is not None or self.subset is not None) and not is_dataset:
            raise ValueError("split and subset are for Hugging Face datasets; leave them out for files")
        return self

    def records(self, root: Path) -> Iterator[PairRecord]:
        """Return the pairs in the order of the file. Relative paths start from `root`. Raises DataError, at once for a
        missing file."""
        if self.table is None:
            return read_text_files(root / self.source, root / self.target)
        path = root / self.table
        if is_table_file(path):
            return read_table(path, self.source, self.target)
        name = str(path) if path.exists() else self.table
        return read_dataset(name, self.source, self.target, self.split, self.subset)

    def __str__(self) -> str:
        return self.table or f"{self.source} and {self.target}"


class PairsConfig(Pairs):
    """A corpus of sentence pairs of your own.

    Training text is cleaned. Validation and test text, if given, is used unchanged, line by line. A set that is
    not given is split off from the cleaned training text: pairs are ranked by a hash of their source and the
    seed, and the first ones are taken, so that the choice does not depend on the order of lines and no source
    sentence is in two of these sets.
    """

    kind: Literal["pairs"] = "pairs"

    root: str = ""
    """The folder that relative paths start from; the current one if empty."""

    validation: Pairs | None = None
    """Pairs to validate on; split off from the training text if not given."""

    test: Pairs | None = None
    """Pairs to test on; split off from the training text if not given."""

    validation_size: int | None = Field(None, gt=0)
    """Number of pairs to split off to validate on; if not set a twentieth, and at most 1,000."""

    test_size: int | None = Field(None, gt=0)
    """Number of pairs to split off to test on; if not set a twentieth, and at most 1,000."""

    cleaning: CleaningConfig = CleaningConfig()
    """Rules by which training pairs are left out."""

    links: str | None = None
    """Word alignments of the training text, for `alignment_guidance`: a file with a line a pair, `0-0 1-2`, source
    first, counted from 0 in words between white space, as aligners write them."""

    @model_validator(mode="after")
    def _sizes_are_for_splitting_off(self) -> Self:
        for name, given, size in (
            ("validation", self.validation, self.validation_size),
            ("test", self.test, self.test_size),
        ):
            if given is not None and size is not None:
                raise ValueError(f"{name}_size splits pairs off, but {name} is given; leave out one of them")
        return self

    def read(self, folder: Path, seed: int) -> Splits:
        """Read, clean and split the corpus into `folder`. Raises DataError for text that cannot be used."""
        root = place(self.root, "")
        # Opened before the long pass over the training text, so that a missing file is reported at once.
        sets: dict[str, Iterable[Pair]] = {
            name: evaluation_pairs(given, given.records(root))
            for name, given in (("validation", self.validation), ("test", self.test))
            if given is not None
        }
        report = CleaningReport()
        train = self._training_pairs(self.records(root), report)
        if len(sets) == 2:
            return Splits.write(folder, {**sets, "train": train}, report)
        with _folder_beside(folder) as scratch:
            cleaned = scratch / "cleaned.arrow"
            ranks = array("Q")
            _write_arrow(cleaned, _ranked(train, seed, ranks))
            return Splits.write(folder, {**sets, **self._split_off(cleaned, ranks, report)}, report)

    def training_links(self, pairs: Iterable[Pair]) -> Iterator[str]:
        """Yield the line of `links` for each of these pairs, a part of the training text in its order.

        Raises DataError if the file does not have one line per pair, or if the training text lacks one of the pairs.
        """
        linked = self._linked()
        for wanted in pairs:
            line = next((line for pair, line in linked if pair == wanted), None)
            if line is None:
                raise DataError(f"{self} is not the text that the run was begun with: restore it, or begin anew")
            yield line
        for _ in linked:  # to the end, so that the lengths are compared
            pass

    def _linked(self) -> Iterator[tuple[tuple[str | Fault, str | Fault], str]]:
        root = place(self.root, "")
        path = root / str(self.links)
        for number, (record, line) in enumerate(zip_longest(self.records(root), read_lines(path)), 1):
            if record is None or line is None:
                fewer = path if line is None else self
                raise DataError(
                    f"{path} must have a line for each pair of {self}, but {fewer} ends before line {number:,}"
                )
            yield (record.source, record.target), line

    def _training_pairs(self, records: Iterator[PairRecord], report: CleaningReport) -> Iterator[Pair]:
        yield from clean(records, self.cleaning, report)
        if not report.kept:
            raise DataError(f"{self}: nothing to train on, {report.summary()}; check the text and data.cleaning")

    def _split_off(self, cleaned: Path, ranks: "array[int]", report: CleaningReport) -> dict[str, Iterable[Pair]]:
        share = min(1000, max(1, len(ranks) // 20))
        wanted = {}
        if self.validation is None:
            wanted["validation"] = self.validation_size or share
        if self.test is None:
            wanted["test"] = self.test_size or share
        parts = _assign(np.frombuffer(ranks, np.uint64), list(wanted.values()))
        if not (parts == TRAIN).any():
            sizes = " and ".join(f"{size:,} to {name}" for name, size in wanted.items())
            raise DataError(
                f"{self}: {len(ranks):,} pairs of {len(set(ranks)):,} sources leave none to train on after {sizes}; "
                "add text, lower these sizes or give files for them"
            )
        if num_left_out := int((parts == LEFT_OUT).sum()):
            report.kept -= num_left_out
            report.dropped[Reason.SOURCE_HELD_OUT] = Dropped(num_left_out, None)
        names = ["train", *wanted]
        return {name: compress(_read_arrow(cleaned), parts == part) for part, name in enumerate(names)}


def evaluation_pairs(pairs: Pairs, records: Iterator[PairRecord]) -> Iterator[Pair]:
    """Yield evaluation pairs, line by line. Raises DataError for an unreadable or too long line, and for no pairs."""
    is_empty = True
    for line, source, target in records:
        if isinstance(source, Fault):
            raise _unreadable(pairs, pairs.source, line, source)
        if isinstance(target, Fault):
            raise _unreadable(pairs, pairs.target, line, target)
        if max(len(source), len(target)) > LONGEST_LINE:
            raise DataError(
                f"{pairs} line {line:,} has {max(len(source), len(target)):,} characters, and at most {LONGEST_LINE:,} "
                "are translated: text to evaluate on is never truncated, so split the line"
            )
        is_empty = False
        yield source, target
    if is_empty:
        raise DataError(f"{pairs}: no pair to evaluate on; add pairs, or leave this set out to split some off")


def _unreadable(pairs: Pairs, side: str, line: int, fault: Fault) -> DataError:
    place = side if pairs.table is None else f"{pairs.table} column {side}"
    problems = {
        Fault.BAD_ENCODING: "is not valid UTF-8",
        Fault.NUL: "contains NUL characters",
        Fault.MISSING: "is missing",
    }
    return DataError(f"{place} line {line:,} {problems[fault]}; text to evaluate on is never skipped: correct the line")


def _assign(ranks: npt.NDArray[np.uint64], sizes: Sequence[int]) -> npt.NDArray[np.int8]:
    """Return the part that each pair goes to: TRAIN, 1 for the first of `sizes`, 2 for the second, ... or LEFT_OUT.

    Equal ranks are equal sources. Pairs with the last source of a full part are left out, so that sizes are exact
    and a source is in one part only. All pairs are left out if there are fewer than the sizes ask for.
    """
    order = np.argsort(ranks, kind="stable")
    ranked = ranks[order]
    parts = np.full(len(ranks), TRAIN, np.int8)
    start = 0
    for part, size in enumerate(sizes, 1):
        stop = start + size
        if stop > len(ranks):
            return np.full(len(ranks), LEFT_OUT, np.int8)
        end = int(np.searchsorted(ranked, ranked[stop - 1], side="right"))
        parts[order[start:stop]] = part
        parts[order[stop:end]] = LEFT_OUT
        start = end
    return parts


def _ranked(pairs: Iterable[Pair], seed: int, ranks: "array[int]") -> Iterator[Pair]:
    key = str(seed).encode()
    for source, target in pairs:
        ranks.append(int.from_bytes(blake2b(source.encode(), digest_size=8, key=key).digest(), "little"))
        yield source, target


@contextmanager
def _folder_beside(folder: Path) -> Iterator[Path]:
    # On the same file system, so that its content can be moved into place in one step.
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as name:
        yield Path(name)


def _write_arrow(path: Path, pairs: Iterable[Pair]) -> str:
    """Write the pairs and return the SHA-256 of their texts, each after its length in bytes."""
    import pyarrow as pa

    schema = pa.schema([("source", pa.string()), ("target", pa.string())])
    digest = sha256()
    pairs = iter(pairs)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, schema) as stream:
        while rows := list(islice(pairs, ROWS_AT_ONCE)):
            for text in chain.from_iterable(rows):
                encoded = text.encode()
                digest.update(b"%d %b" % (len(encoded), encoded))
            stream.write_batch(
                pa.record_batch([pa.array(side, pa.string()) for side in zip(*rows, strict=True)], schema)
            )
    return digest.hexdigest()


def _read_arrow(path: Path) -> Iterator[Pair]:
    import pyarrow as pa

    with pa.memory_map(str(path)) as file:
        for batch in pa.ipc.open_stream(file):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
