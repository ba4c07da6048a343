"""Text of a language model that is streamed from shards."""

from collections.abc import Iterator
from typing import Literal

from regardant.data.addresses import find_shards
from regardant.data.shards import read_shard_rows
from regardant.data.streamed import HeldOut, StreamedConfig, texts_of
from regardant.data.text import TextConfig


class StreamedTextConfig(TextConfig, StreamedConfig):
    """Text in shards, of any length: it is streamed in training and never stored as a whole.

    A row is a document, to which a line end is added. A row of text shards is a line.
    """

    kind: Literal["stream"] = "stream"

    column: str = "text"
    """Name of the column of documents."""

    validation: str | list[str] | None = None
    """Shards to validate on; held out of the stream if not given."""

    test: str | list[str] | None = None
    """Shards to test on; held out of the stream if not given."""

    @property
    def name(self) -> str:
        return str(self.shards)

    def pieces(self) -> Iterator[str]:
        """Yield the documents of the sample, then those to validate and to test on."""
        for documents in self._sets().values():
            yield from (f"{document}\n" for document in documents)

    def sizes(self) -> dict[str, int]:
        sets = self._sets()
        for name, documents in sets.items():
            if not documents:
                raise self.too_few(name, f"{sum(map(len, sets.values())):,} documents read")
        return {name: sum(map(len, documents)) + len(documents) for name, documents in sets.items()}

    def leave_out(self) -> HeldOut:
        """Return the rule for held-out documents. Like the split of other texts, it depends on no seed."""
        return self.held_out(0, self._named())

    def _named(self) -> dict[str, list[str]]:
        given = {"validation": self.validation, "test": self.test}
        return {
            name: [
                text
                for chunk, _ in read_shard_rows(find_shards(addresses, self.root), (self.column,))
                for text in texts_of(chunk)
            ]
            for name, addresses in given.items()
            if addresses is not None
        }

    def _sets(self) -> dict[str, list[str]]:
        named = self._named()
        held_out = self.held_out(0, named)
        sets: dict[str, list[str]] = {"train": [], "validation": [], "test": []}
        for document in texts_of(self.sample((self.column,))):
            if (name := held_out.split_of(document)) is not None:
                sets[name].append(document)
        return sets | named
