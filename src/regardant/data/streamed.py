"""Corpora that are streamed from shards: their held-out sets, and the sample of their first rows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from typing import Any

from pydantic import Field, model_validator

from regardant.config import Config
from regardant.data.addresses import Shard, find_shards, fingerprint
from regardant.data.shards import read_shard_rows
from regardant.data.tables import Row
from regardant.errors import DataError


class StreamedConfig(Config):
    """Base of corpora in shards that are streamed in training, pass after pass, and never stored as a whole.

    The vocabulary, the size of the model and the plan are chosen from the first rows. Rows are held out by a hash of
    their text, wherever they are in the stream.
    """

    shards: str | list[str]
    """Files, globs or folders of .parquet, .jsonl, .txt or .tsv shards (the text ones also .gz or .zst), local or
    in remote storage: data/*.parquet, s3://bucket/folder."""

    root: str = ""
    """The folder that relative paths start from; the current one if empty."""

    validation_share: float = Field(0.01, gt=0, lt=1)
    """Share of the rows held out to validate on, if no validation data is named; those among the first `sample_rows`
    are used."""

    test_share: float = Field(0.01, gt=0, lt=1)
    """Share of the rows held out to test on, as `validation_share`."""

    sample_rows: int = Field(100_000, gt=0)
    """Number of first rows from which vocabulary, model and plan are chosen."""

    buffer_rows: int = Field(50_000, gt=0)
    """Number of rows shuffled and sorted into batches of like length together. Two buffers are in memory."""

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
        chunks = read_shard_rows(self.found(), columns)
        return islice((row for chunk, _ in chunks for row in chunk), self.sample_rows)

    def held_out(self, seed: int, named: Mapping[str, Iterable[str]]) -> "HeldOut":
        """Return the rule for held-out texts: by share, and the `named` texts of validation and test data."""
        shares = {
            name: share
            for name, share in (("validation", self.validation_share), ("test", self.test_share))
            if name not in named
        }
        held = HeldOut(str(seed).encode(), shares)
        held.named = frozenset(held.hash(text) for texts in named.values() for text in texts)
        return held

    def too_few(self, name: str, read: str) -> DataError:
        """Return the error for a sample without rows for the split `name`. `read` says which rows were read."""
        if name == "train":
            return DataError(
                f"{self.shards}: the first {self.sample_rows:,} rows leave nothing to train on ({read}): check that "
                "the columns hold text and are named rightly, and what is held out or left out"
            )
        return DataError(
            f"{self.shards}: none of the first {self.sample_rows:,} rows is held out to be the {name} set: raise "
            f"{name}_share or sample_rows, or name {name} data"
        )


@dataclass
class HeldOut:
    """Texts of a stream that are not trained on, identified by their hashes."""

    key: bytes
    shares: dict[str, float]
    """Share of the stream that is held out for each set."""
    named: frozenset[int] = field(default_factory=frozenset)
    """Hashes of the texts of named sets."""

    def hash(self, text: str) -> int:
        """Return 64 bits that depend on the text and the seed."""
        return int.from_bytes(blake2b(text.encode(), digest_size=8, key=self.key).digest(), "little")

    def split_of(self, text: str) -> str | None:
        """Return the split of a text: train, validation or test. None for a text of a named set."""
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
    """Yield the text of each row of one cell; rows without a text are skipped."""
    return (row.cells[0] for row in rows if isinstance(row.cells[0], str))


def require_other_end(max_epochs: int | None) -> None:
    """Raise ValueError if `max_epochs` is set: the length of a stream is not known."""
    if max_epochs is not None:
        raise ValueError(
            f"training.max_epochs: given {max_epochs}, but the length of a stream is not known: set "
            "training.max_minutes or training.max_updates, and max_epochs=null"
        )
