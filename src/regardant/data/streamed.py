"""Corpora that are streamed from shards: what is held out of them, and the sample of their beginning."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from typing import Any

from pydantic import Field, model_validator

from regardant.config import Config
from regardant.data.addresses import Shard, find_shards, fingerprint
from regardant.data.shards import read_rows
from regardant.data.tables import Row
from regardant.errors import DataError


class StreamedConfig(Config):
    """Base of corpora in shards that are read in training, pass after pass, and never kept as a whole.

    What a run needs before is learned from the first rows: the vocabulary, the size of the model, the plan. A part is
    held out by a hash of its text, wherever in the stream it stands.
    """

    shards: str | list[str]
    """Files, globs or folders of .parquet, .jsonl, .txt or .tsv shards (the text ones also .gz or .zst), here or in a
    storage: data/*.parquet, s3://bucket/folder."""

    root: str = ""
    """The folder that relative paths start from; the current one if empty."""

    validation_share: float = Field(0.01, gt=0, lt=1)
    """Share that is held out to validate on, if no validation data is named; those among the first `sample_rows` are
    used."""

    test_share: float = Field(0.01, gt=0, lt=1)
    """The same to test on."""

    sample_rows: int = Field(100_000, gt=0)
    """Rows at the beginning from which vocabulary, model and plan are chosen."""

    buffer_rows: int = Field(50_000, gt=0)
    """Rows that are shuffled, and sorted into batches of like length, at a time. Two buffers are in memory."""

    @model_validator(mode="after")
    def _leaves_some_to_train_on(self) -> "StreamedConfig":
        if self.validation_share + self.test_share >= 1:
            raise ValueError(
                f"validation_share ({self.validation_share}) and test_share ({self.test_share}) leave nothing to "
                "train on: lower them"
            )
        return self

    def found(self) -> list[Shard]:
        """Return the shards. Raises DataError."""
        return find_shards(self.shards, self.root)

    def fingerprints(self) -> dict[str, str]:
        """Return the fingerprint of the shards, from their names and sizes."""
        return {"shards": fingerprint(self.found())}

    def sample(self, columns: Sequence[str]) -> Iterator[Row]:
        """Yield the first rows. Raises DataError."""
        chunks = read_rows(self.found(), columns)
        return islice((row for chunk, _ in chunks for row in chunk), self.sample_rows)

    def held_out(self, seed: int, named: Mapping[str, Iterable[str]]) -> "HeldOut":
        """Return what is held out, beside the texts of validation and test data that is named."""
        shares = {
            name: share
            for name, share in (("validation", self.validation_share), ("test", self.test_share))
            if name not in named
        }
        held = HeldOut(str(seed).encode(), shares)
        held.named = frozenset(held.hash(text) for texts in named.values() for text in texts)
        return held

    def too_few(self, name: str) -> DataError:
        """Return the refusal of a sample that has nothing to validate or to test on."""
        return DataError(
            f"{self.shards}: none of the first {self.sample_rows:,} rows is held out to be the {name} set: raise "
            f"{name}_share or sample_rows, or name {name} data"
        )


@dataclass
class HeldOut:
    """The texts of a stream that are not trained on, told by a hash of each."""

    key: bytes
    shares: dict[str, float]
    """Share of each set that is held out."""
    named: frozenset[int] = field(default_factory=frozenset)
    """Hashes of the texts of named sets."""

    def hash(self, text: str) -> int:
        """Return 64 bits that depend on the text and the seed."""
        return int.from_bytes(blake2b(text.encode(), digest_size=8, key=self.key).digest(), "little")

    def split_of(self, text: str) -> str | None:
        """Return the split a text is in, as "train". None: it is in a set that is named, so it is in no other."""
        hashed = self.hash(text)
        if hashed in self.named:
            return None
        end = 0.0
        for name, share in self.shares.items():
            end += share
            if hashed < end * 2**64:
                return name
        return "train"


def texts_of(rows: Iterable[Row]) -> Iterator[Any]:
    """Yield the only cell of each row that has a text."""
    return (row.cells[0] for row in rows if isinstance(row.cells[0], str))


def require_other_end(max_epochs: int | None) -> None:
    """Raise ValueError for a budget in passes over a stream, whose length is not known."""
    if max_epochs is not None:
        raise ValueError(
            f"training.max_epochs: given {max_epochs}, but the length of a stream is not known: set "
            "training.max_minutes or training.max_updates, and max_epochs=null"
        )
