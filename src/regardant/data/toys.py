"""Made-up corpora whose answer is known: reverse or copy a sequence of symbols, as "3 1 4" to "4 1 3".

A model that cannot learn them has a fault. Lengths are uniform, and so are the symbols.
"""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Literal, Self

from pydantic import Field, model_validator

from regardant.config import Config
from regardant.data.cleaning import CleaningReport, Pair
from regardant.data.parallel import Splits

SYMBOLS = "0123456789abcdefghijklmnopqrstuvwxyz"


class ToyConfig(Config):
    """A corpus of symbol sequences.

    Validation and test sequences all differ, and none is trained on. Of the sequences of one length at most
    half are held out, so that training sees short ones too; training may repeat itself.
    """

    symbols: int = Field(10, ge=2, le=len(SYMBOLS))
    """How many symbols there are: the digits, then the letters."""

    min_length: int = Field(1, gt=0)
    """Fewest symbols in a sequence."""

    max_length: int = Field(25, gt=0, le=1000)
    """Most symbols in a sequence."""

    train_size: int = Field(50_000, gt=0)
    """Sequences to train on."""

    validation_size: int = Field(1000, gt=0)
    """Sequences to validate on."""

    test_size: int = Field(1000, gt=0)
    """Sequences to test on."""

    @model_validator(mode="after")
    def _enough_sequences_to_hold_out(self) -> Self:
        if self.min_length > self.max_length:
            raise ValueError(f"min_length ({self.min_length}) must not exceed max_length ({self.max_length})")
        room = sum(self._most_held_out(length) for length in self._lengths())
        asked = self.validation_size + self.test_size
        if asked > room:
            raise ValueError(
                f"validation_size and test_size ask for {asked:,} different sequences and {room:,} may be held "
                "out; lower them, or raise symbols or max_length"
            )
        return self

    def read(self, folder: Path, seed: int) -> Splits:
        """Draws the corpus and writes it into `folder`; equal seeds give equal corpora."""
        rng = Random(seed)
        held_out = self._draw_held_out(rng)
        sets = {
            "validation": (self._pair(sequence) for sequence in held_out[: self.validation_size]),
            "test": (self._pair(sequence) for sequence in held_out[self.validation_size :]),
            "train": (self._pair(sequence) for sequence in self._draw_training(rng, set(held_out))),
        }
        return Splits.write(folder, sets, CleaningReport(read=self.train_size, kept=self.train_size))

    def answer(self, sequence: str) -> str:
        """What the model should make of the sequence, both one character a symbol."""
        raise NotImplementedError

    def _pair(self, sequence: str) -> Pair:
        return " ".join(sequence), " ".join(self.answer(sequence))

    def _lengths(self) -> range:
        return range(self.min_length, self.max_length + 1)

    def _most_held_out(self, length: int) -> int:
        num_sequences: int = self.symbols**length
        return num_sequences // 2

    def _draw(self, rng: Random, length: int) -> str:
        return "".join(rng.choices(SYMBOLS[: self.symbols], k=length))

    def _draw_held_out(self, rng: Random) -> list[str]:
        drawn: dict[str, None] = {}  # a set in order
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
        rng.shuffle(sequences)  # the few short ones came first
        return sequences

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
