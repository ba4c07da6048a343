"""Synthetic corpora with known answers: copy, reverse or sort symbols, recall a value, add numbers, count a distance.

A model that cannot learn them has a fault, or lacks a part that the task needs. Lengths and symbols are
distributed uniformly.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from regardant.config import Config
from regardant.data.cleaning import CleaningReport, Pair
from regardant.data.parallel import Splits

DIGITS = "0123456789"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
SYMBOLS = DIGITS + LETTERS


class ToyConfig(Config):
    """A corpus of symbol sequences. A subclass adds a kind: an answer, and sequences of its own if it needs them.

    Validation and test sequences all differ, and none is trained on. Of the sequences of one length at most
    half are held out, so that training sees short ones too; training sequences may repeat.
    """

    remedy: ClassVar[str] = "lower max_length"
    """Remedy in the error message if no sequence of a length exists."""

    symbols: int = Field(10, ge=2, le=len(SYMBOLS))
    """Number of different symbols: the digits, then the letters."""

    min_length: int = Field(1, gt=0)
    """Smallest length of a sequence: its symbols, unless the kind counts otherwise."""

    max_length: int = Field(25, gt=0, le=1000)
    """Largest length of a sequence."""

    train_size: int = Field(50_000, gt=0)
    """Sequences to train on."""

    validation_size: int = Field(1000, gt=0)
    """Sequences to validate on."""

    test_size: int = Field(1000, gt=0)
    """Sequences to test on."""

    longer_size: int = Field(0, ge=0)
    """Sequences in a second test set, `longer`: longer than max_length, and at most twice as long."""

    @model_validator(mode="after")
    def _enough_sequences_to_hold_out(self) -> Self:
        if self.min_length > self.max_length:
            raise ValueError(f"min_length ({self.min_length}) must not exceed max_length ({self.max_length})")
        longer = self._longer_lengths() if self.longer_size else range(0)
        for length in (*self._lengths(), *longer):
            if not self._count(length):
                raise ValueError(f"there is no sequence of length {length}: {self.remedy}")
        room = sum(self._most_held_out(length) for length in self._lengths())
        asked = self.validation_size + self.test_size
        if asked > room:
            raise ValueError(
                f"validation_size and test_size ask for {asked:,} different sequences and {room:,} may be held "
                "out; lower them, or raise symbols or max_length"
            )
        return self

    def read(self, folder: Path, seed: int) -> Splits:
        """Draw the corpus and write it into `folder`; equal seeds give equal corpora."""
        rng = Random(seed)
        held_out = self._draw_held_out(rng)
        sets = {
            "validation": (self._pair(sequence) for sequence in held_out[: self.validation_size]),
            "test": (self._pair(sequence) for sequence in held_out[self.validation_size :]),
            "train": (self._pair(sequence) for sequence in self._draw_training(rng, set(held_out))),
        }
        if self.longer_size:
            sets["longer"] = (self._pair(sequence) for sequence in self._draw_longer(Random(f"longer {seed}")))
        return Splits.write(folder, sets, CleaningReport(read=self.train_size, kept=self.train_size))

    def answer(self, sequence: str) -> str:
        """Return the answer to a sequence, both with one character per symbol."""
        raise NotImplementedError

    def _pair(self, sequence: str) -> Pair:
        return " ".join(sequence), " ".join(self.answer(sequence))

    def _lengths(self) -> range:
        return range(self.min_length, self.max_length + 1)

    def _longer_lengths(self) -> range:
        return range(self.max_length + 1, 2 * self.max_length + 1)

    def _count(self, length: int) -> int:
        """Return the number of different sequences of a length."""
        count: int = self.symbols**length
        return count

    def _most_held_out(self, length: int) -> int:
        return self._count(length) // 2

    def _draw(self, rng: Random, length: int) -> str:
        return "".join(rng.choices(SYMBOLS[: self.symbols], k=length))

    def _draw_held_out(self, rng: Random) -> list[str]:
        drawn: dict[str, None] = {}  # an ordered set
        room = {length: self._most_held_out(length) for length in self._lengths()}
        while len(drawn) < self.validation_size + self.test_size:
            length = rng.choice(list(room))
            sequence = self._draw(rng, length)
            if sequence not in drawn:
                drawn[sequence] = None
                room[length] -= 1
                if not room[length]:
                    del room[length]
        sequences = list(drawn)
        rng.shuffle(sequences)  # short sequences are used up early
        return sequences

    def _draw_longer(self, rng: Random) -> Iterator[str]:
        for _ in range(self.longer_size):
            yield self._draw(rng, rng.choice(self._longer_lengths()))

    def _draw_training(self, rng: Random, held_out: set[str]) -> Iterator[str]:
        for _ in range(self.train_size):
            length = rng.choice(self._lengths())
            while (sequence := self._draw(rng, length)) in held_out:
                pass
            yield sequence


class ReverseConfig(ToyConfig):
    """Reverse a sequence: 3 1 4 becomes 4 1 3. Needs attention that is not along the diagonal."""

    kind: Literal["reverse"] = "reverse"

    def answer(self, sequence: str) -> str:
        return sequence[::-1]


class CopyConfig(ToyConfig):
    """Copy a sequence: 3 1 4 stays 3 1 4."""

    kind: Literal["copy"] = "copy"

    def answer(self, sequence: str) -> str:
        return sequence


class SortConfig(ToyConfig):
    """Sort a sequence: 3 1 4 1 becomes 1 1 3 4. Needs the count of each symbol, but not their order."""

    kind: Literal["sort"] = "sort"

    max_length: int = Field(12, gt=0, le=1000)
    """Most symbols in a sequence."""

    def answer(self, sequence: str) -> str:
        return "".join(sorted(sequence))


class RecallConfig(ToyConfig):
    """Associative recall, pairs of a key and a value and then a key: a 3 b 7 c 1 b becomes 7. Needs two hops of
    attention, from a value to its key and from the last key to its first occurrence.

    Graves et al. 2014, "Neural Turing machines", https://arxiv.org/abs/1410.5401, section 4.3; with single symbols as
    in Ba et al. 2016, https://arxiv.org/abs/1610.06258, section 5.1.
    """

    remedy: ClassVar[str] = "raise symbols, or lower max_length"

    kind: Literal["recall"] = "recall"

    symbols: int = Field(20, ge=2, le=len(LETTERS))
    """Number of different keys: the first letters. Values are the digits."""

    max_length: int = Field(8, gt=0, le=len(LETTERS))
    """Most pairs in a sequence. No key occurs in two of them."""

    def answer(self, sequence: str) -> str:
        return sequence[sequence.index(sequence[-1]) + 1]

    def _count(self, length: int) -> int:
        return math.perm(self.symbols, length) * len(DIGITS) ** length * length

    def _draw(self, rng: Random, length: int) -> str:
        keys = rng.sample(LETTERS[: self.symbols], length)
        return "".join(key + rng.choice(DIGITS) for key in keys) + rng.choice(keys)


class AdditionConfig(ToyConfig):
    """Add two numbers, the lowest digit first: 3 1 + 9 4 becomes 2 6 0, which is 13 + 49 = 062.

    Both numbers have the same number of digits, padded with zeros, and the sum has one more. With the lowest digit
    first a carry is known when the next digit is written (Lee et al. 2023, https://arxiv.org/abs/2307.03381).
    """

    kind: Literal["addition"] = "addition"

    symbols: int = Field(10, ge=2, le=len(DIGITS))
    """Base of the numbers."""

    max_length: int = Field(6, gt=0, le=500)
    """Most digits of each of the two numbers."""

    def answer(self, sequence: str) -> str:
        first, second = sequence.split("+")
        carry, digits = 0, ""
        for one, other in zip(first, second, strict=True):
            carry, digit = divmod(int(one) + int(other) + carry, self.symbols)
            digits += DIGITS[digit]
        return digits + DIGITS[carry]

    def _count(self, length: int) -> int:
        count: int = self.symbols ** (2 * length)
        return count

    def _draw(self, rng: Random, length: int) -> str:
        return f"{super()._draw(rng, length)}+{super()._draw(rng, length)}"


class VariableDistanceConfig(ToyConfig):
    """Find the symbol that stands n places after the number n: a b 3 c d e f becomes e. Needs offsets that depend on
    content, which a convolution lacks."""

    kind: Literal["variable_distance"] = "variable_distance"

    symbols: int = Field(10, ge=2, le=len(LETTERS))
    """Number of different symbols beside the number: the first letters."""

    min_length: int = Field(2, ge=2)
    """Fewest symbols in a sequence, with the number."""

    max_length: int = Field(16, ge=2, le=1000)
    """Most symbols in a sequence, with the number. Distances are from 1 to 9."""

    def answer(self, sequence: str) -> str:
        (at,) = (place for place, symbol in enumerate(sequence) if symbol in DIGITS)
        return sequence[at + int(sequence[at])]

    def _count(self, length: int) -> int:
        count: int = sum(length - distance for distance in self._distances(length)) * self.symbols ** (length - 1)
        return count

    def _draw(self, rng: Random, length: int) -> str:
        distance = rng.choice(self._distances(length))
        at = rng.randrange(length - distance)
        letters = "".join(rng.choices(LETTERS[: self.symbols], k=length - 1))
        return f"{letters[:at]}{distance}{letters[at:]}"

    def _distances(self, length: int) -> range:
        return range(1, min(len(DIGITS), length))
