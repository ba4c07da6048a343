"""Removal of training pairs that do harm, with a count by reason.

Long, lopsided, untranslated and repeated pairs slow training or teach the wrong thing (Khayrallah and Koehn
2018, "On the Impact of Various Types of Noise on Neural Machine Translation",
https://arxiv.org/abs/1805.12282). Lengths are in characters, so that no tokenizer has to exist yet.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from hashlib import blake2b
from typing import Any, Self

from pydantic import Field

from regardant.config import Config
from regardant.data.text_files import Fault, PairRecord

Pair = tuple[str, str]
"""A source sentence and its target."""


class Reason(StrEnum):
    """Reason for leaving a pair out of training, in the order of the checks."""

    BAD_ENCODING = Fault.BAD_ENCODING.value
    NUL = Fault.NUL.value
    MISSING = Fault.MISSING.value
    EMPTY = "empty"
    OVER_LONG = "over_long"
    LENGTH_RATIO = "length_ratio"
    IDENTICAL = "identical"
    DUPLICATE = "duplicate"
    SOURCE_HELD_OUT = "source_held_out"
    """The source sentence was split off for validation or test with another target."""


class CleaningConfig(Config):
    """Rules by which training pairs are left out. Empty and unreadable ones always are."""

    max_chars: int = Field(2000, gt=0)
    """Maximum characters of a sentence. Longer ones are seldom one sentence, and one sets a batch's memory."""

    max_length_ratio: float = Field(9.0, ge=1)
    """Maximum ratio of the lengths of the two sides, in characters."""

    drop_identical: bool = True
    """True if pairs whose target repeats the source are left out. Set to false where copying is the task."""

    short_chars: int = Field(50, ge=0)
    """Length in characters below which the checks of ratio and identity are skipped, if both sides are shorter: names,
    numbers and single symbols are often rightly equal, or of very unequal length."""

    drop_duplicates: bool = True
    """True if only the first of equal pairs is kept. Costs about 10 bytes of memory for each pair kept."""


@dataclass
class Dropped:
    """The pairs left out for one reason."""

    count: int

    first_line: int | None
    """Line on which the first of these pairs starts; None if they were found after the lines were read."""


@dataclass
class CleaningReport:
    """Counts of pairs read, kept and left out, by reason."""

    read: int = 0
    kept: int = 0
    dropped: dict[Reason, Dropped] = field(default_factory=dict)

    def drop(self, reason: Reason, line: int) -> None:
        """Count a pair that is left out. Called in the order of the lines."""
        self.dropped.setdefault(reason, Dropped(0, line)).count += 1

    def summary(self) -> str:
        """Return the counts in a few words: `0 of 3 pairs kept, 2 empty, 1 over long`."""
        reasons = [f"{dropped.count:,} {_words(reason)}" for reason, dropped in self._in_order()]
        return ", ".join([f"{self.kept:,} of {self.read:,} pairs kept", *reasons])

    def lines(self) -> list[str]:
        """Return lines for a terminal: one with the totals, then one for each reason that occurred."""
        reasons = [f"{d.count:>9,} {_words(reason)}{_where(d)}" for reason, d in self._in_order()]
        return [f"{self.kept:>9,} of {self.read:,} pairs kept", *reasons]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, with every reason, also those that did not occur."""
        dropped = {str(reason): asdict(self.dropped.get(reason, Dropped(0, None))) for reason in Reason}
        return {"read": self.read, "kept": self.kept, "dropped": dropped}

    @classmethod
    def from_dict(cls, written: dict[str, Any]) -> Self:
        """Return the report that `as_dict` wrote."""
        dropped = {Reason(name): Dropped(**d) for name, d in written["dropped"].items() if d["count"]}
        return cls(written["read"], written["kept"], dropped)

    def _in_order(self) -> list[tuple[Reason, Dropped]]:
        return [(reason, self.dropped[reason]) for reason in Reason if reason in self.dropped]


def clean(records: Iterable[PairRecord], config: CleaningConfig, report: CleaningReport) -> Iterator[Pair]:
    """Yield the pairs to train on, unchanged and in order, and count all pairs in `report`."""
    seen = _Digests()
    for line, source, target in records:
        report.read += 1
        if isinstance(source, Fault):
            report.drop(Reason(source.value), line)
            continue
        if isinstance(target, Fault):
            report.drop(Reason(target.value), line)
            continue
        reason = _judge(source, target, config)
        if reason is None and config.drop_duplicates and not seen.add(_digest(source, target)):
            reason = Reason.DUPLICATE
        if reason is None:
            report.kept += 1
            yield source, target
        else:
            report.drop(reason, line)


def _judge(source: str, target: str, config: CleaningConfig) -> Reason | None:
    if not source.strip() or not target.strip():
        return Reason.EMPTY
    shorter, longer = sorted((len(source), len(target)))
    if longer > config.max_chars:
        return Reason.OVER_LONG
    if longer >= config.short_chars:
        if longer > shorter * config.max_length_ratio:
            return Reason.LENGTH_RATIO
        if config.drop_identical and source == target:
            return Reason.IDENTICAL
    return None


def _digest(source: str, target: str) -> int:
    # 64 bits: of a hundred million pairs, one is dropped wrongly with a chance of 0.03 %.
    first = source.encode()
    return int.from_bytes(blake2b(b"%d %b%b" % (len(first), first, target.encode()), digest_size=8).digest())


class _Digests:
    """A set of 64-bit numbers in sorted arrays, which take 8 bytes of each: a Python set takes 80."""

    BITS = 14
    """Leading bits that choose the array: of a hundred million numbers, each array has six thousand."""

    def __init__(self) -> None:
        self._arrays = [array("Q") for _ in range(2**self.BITS)]

    def add(self, number: int) -> bool:
        """Add a number. Return True if it is new."""
        numbers = self._arrays[number >> (64 - self.BITS)]
        place = bisect_left(numbers, number)
        if place < len(numbers) and numbers[place] == number:
            return False
        numbers.insert(place, number)
        return True


def _words(reason: Reason) -> str:
    return reason.replace("_", " ")


def _where(dropped: Dropped) -> str:
    return "" if dropped.first_line is None else f", first at line {dropped.first_line:,}"
