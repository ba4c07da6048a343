"""Sentence pairs that are streamed from shards."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from regardant.data.cleaning import CleaningConfig, CleaningReport, Dropped, Pair, Reason, clean
from regardant.data.parallel import Pairs, Splits, evaluation_pairs
from regardant.data.streamed import HeldOut, StreamedConfig
from regardant.data.tables import Row
from regardant.data.text_files import PairRecord, place


class StreamedPairsConfig(StreamedConfig):
    """Sentence pairs in shards, of any number: they are streamed in training and never stored as a whole."""

    kind: Literal["stream"] = "stream"

    source: str = "source"
    """Name of the column of sources. In text shards a number from 1: columns stand between tabs."""

    target: str = "target"
    """Name or number of the column of translations, like `source`."""

    validation: Pairs | None = None
    """Pairs to validate on; held out of the stream if not given."""

    test: Pairs | None = None
    """Pairs to test on; held out of the stream if not given."""

    cleaning: CleaningConfig = CleaningConfig()
    """Rules by which training pairs are left out. Equal pairs are found within a buffer."""

    def read(self, folder: Path, seed: int) -> Splits:
        """Write the first pairs, and the validation and test pairs, into `folder`. Raises DataError."""
        named = self._named()
        sets: dict[str, list[Pair]] = {"train": [], "validation": [], "test": []}
        report = CleaningReport()
        for name, pair in self._split(self.sample((self.source, self.target)), self.leave_out(seed, named), report):
            sets[name].append(pair)
        sets |= named
        for name, pairs in sets.items():
            if not pairs:
                raise self.too_few(name, report.summary())
        return Splits.write(folder, sets, report)

    def leave_out(self, seed: int, named: dict[str, list[Pair]] | None = None) -> HeldOut:
        """Return the rule for held-out pairs, which are identified by their sources."""
        given = self._named() if named is None else named
        return self.held_out(seed, {name: (source for source, _ in pairs) for name, pairs in given.items()})

    def training_pairs(self, rows: Sequence[Row], held_out: HeldOut) -> list[Pair]:
        """Return the pairs of a buffer that are trained on."""
        found = self._split(rows, held_out, CleaningReport())
        return [pair for name, pair in found if name == "train"]

    def _named(self) -> dict[str, list[Pair]]:
        root = place(self.root, "")
        given = {"validation": self.validation, "test": self.test}
        return {
            name: list(evaluation_pairs(pairs, pairs.records(root)))
            for name, pairs in given.items()
            if pairs is not None
        }

    def _split(self, rows: Iterable[Row], held_out: HeldOut, report: CleaningReport) -> Iterator[tuple[str, Pair]]:
        records = (PairRecord(row.line, *row.cells) for row in rows)
        for pair in clean(records, self.cleaning, report):
            name = held_out.split_of(pair[0])
            if name is None:
                report.kept -= 1
                report.dropped.setdefault(Reason.SOURCE_HELD_OUT, Dropped(0, None)).count += 1
            else:
                yield name, pair
