"""The tokenizer of an imported model: its unchanged tokenizer.json, and a mapping between its ids and ours.

Ids 0 to 4 are the special tokens of `vocabulary` in every run. An imported model has other ids for them, and may lack
some. `rows_of` maps each of our ids to one of the model: first the special ones, then all others in their order.

Special tokens of an imported tokenizer are recognised in text, as in the library that the model comes from.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
import tokenizers as hf

from regardant.data.tokenizer_config import TokenizerConfig
from regardant.data.tokenizers import Tokenizer
from regardant.data.vocabulary import MASK, SPECIAL_TOKENS
from regardant.errors import ConfigError, DataError

PROBE = "a"
"""Sample text, to find the tokens that the tokenizer puts around a text."""

BYTE = re.compile(r"<0x([0-9A-F]{2})>")


def rows_of(special: Sequence[int | None], vocab_size: int) -> list[int | None]:
    """Return for each of our ids that of the imported model with `vocab_size` ids. None: the model has none."""
    taken = {theirs for theirs in special if theirs is not None}
    return [*special, *(theirs for theirs in range(vocab_size) if theirs not in taken)]


def absent_of(special: Sequence[int | None]) -> tuple[int, ...]:
    """Return our ids that the imported model has no token for."""
    return tuple(ours for ours, theirs in enumerate(special) if theirs is None)


class PretrainedTokenizer(Tokenizer, kind="pretrained"):
    """A tokenizer of the `tokenizers` library that was trained elsewhere.

    Raises:
        DataError: the decoder is of an unknown type.
    """

    def __init__(self, config: TokenizerConfig, backend: hf.Tokenizer) -> None:
        backend.no_truncation()
        backend.no_padding()
        self.config, self.backend = config, backend
        assert config.vocab_size is not None
        self.rows = rows = rows_of(config.special, config.vocab_size)
        """Ids of the imported model, by id of this tokenizer."""
        names = {theirs: piece for piece, theirs in backend.get_vocab(with_added_tokens=True).items()}
        self.vocab_size = len(rows)
        self.pieces = [
            f"<absent_{SPECIAL_TOKENS[ours][1:]}" if theirs is None else names.get(theirs, f"<unused_{theirs}>")
            for ours, theirs in enumerate(rows)
        ]
        self._ours = np.zeros(max([*names, config.vocab_size - 1]) + 1, np.int64)
        for ours, theirs in enumerate(rows):
            if theirs is not None:
                self._ours[theirs] = ours
        content = json.loads(backend.to_str())
        spelling, self.hides_space = _spelling(content.get("decoder"))
        nothing = {added["id"] for added in content["added_tokens"] if added["special"]}
        nothing |= {theirs for theirs in rows if theirs is not None and theirs not in names}
        self._bytes = [
            b"" if theirs is None or theirs in nothing else spelling(piece)
            for theirs, piece in zip(rows, self.pieces, strict=True)
        ]
        self._bytes[: len(SPECIAL_TOKENS)] = [b""] * len(SPECIAL_TOKENS)
        self.is_byte_level = spelling is byte_level
        self.frame = self._frame_of_texts()

    @classmethod
    def train(cls, config: TokenizerConfig, texts: Iterable[str], vocab_size: int) -> Self:
        """Raise ConfigError: a pretrained tokenizer is only imported."""
        raise ConfigError("tokenizer.kind pretrained comes with an imported model: set training.from to its run")

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self._ours[self.backend.encode(text, add_special_tokens=False).ids].tolist()
        return ids

    def locate(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        encoding = self.backend.encode(text, add_special_tokens=False)
        return self._ours[encoding.ids].tolist(), encoding.offsets

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [
            self._ours[encoding.ids].tolist()
            for encoding in self.backend.encode_batch_fast(list(texts), add_special_tokens=False)
        ]

    def encode_with_blanks(self, text: str, blank: str) -> list[int]:
        """Return the ids of a text, with MASK in place of each `blank`. The tokenizer decides about the spaces around
        a mask."""
        return self.encode(text.replace(blank, self.pieces[MASK]))

    def between_words(self) -> tuple[list[int], str]:
        """Return no tokens, and a space: the first piece of a word may include the space before the word."""
        return [], " "

    def normalise(self, text: str) -> str:
        return self.decode(self.encode(text))

    @property
    def normalisation(self) -> str:
        return "as in the imported tokenizer"

    def _readable(self, token: int) -> str:
        """Return a piece for display: with spaces as ▁, and decoded if the vocabulary is byte-level."""
        raw = self._bytes[token]
        if not self.is_byte_level or not raw:
            return self.pieces[token].replace(" ", "▁")
        return raw.decode(errors="replace").replace(" ", "▁")

    def _frame_of_texts(self) -> tuple[list[int], list[int]]:
        """Return the ids that the tokenizer puts before a text and after it."""
        encoding = self.backend.encode(PROBE, add_special_tokens=True)
        ids, added = self._ours[encoding.ids].tolist(), encoding.special_tokens_mask
        if all(added):
            return [], []
        first, last = added.index(0), len(added) - added[::-1].index(0)
        return ids[:first], ids[last:]


def byte_level(piece: str) -> bytes:
    """Return the bytes that a piece of a byte-level vocabulary (GPT-2) stands for."""
    return bytes(_BYTE_OF[character] for character in piece) if _BYTE_OF.keys() >= set(piece) else piece.encode()


def _spelling(decoder: Mapping[str, Any] | None) -> tuple[Callable[[str], bytes], bool]:
    """Return the function from a piece to its bytes, by the type of the tokenizer's decoder, and whether the space
    before the first word is hidden."""
    parts = [] if decoder is None else decoder.get("decoders", [decoder])
    types = {part["type"]: part for part in parts}
    if "ByteLevel" in types:
        return byte_level, False
    if "WordPiece" in types:
        prefix = types["WordPiece"]["prefix"]
        return lambda piece: (piece.removeprefix(prefix) if piece.startswith(prefix) else f" {piece}").encode(), True
    if unknown := sorted(types.keys() - {"Metaspace", "Replace", "ByteFallback", "Fuse", "Strip"}):
        raise DataError(
            f"tokenizer.json has a decoder of type {unknown[0]}: ByteLevel, WordPiece and Metaspace can be imported"
        )
    hides_space = not types.keys().isdisjoint({"Metaspace", "Strip"})
    return (_plain if types.keys().isdisjoint({"Metaspace", "Replace"}) else _metaspace), hides_space


def _plain(piece: str) -> bytes:
    found = BYTE.fullmatch(piece)
    return piece.encode() if found is None else bytes([int(found[1], 16)])


def _metaspace(piece: str) -> bytes:
    return _plain(piece.replace("\N{LOWER ONE EIGHTH BLOCK}", " "))


def _byte_characters() -> dict[str, int]:
    """Return the byte that each character stands for: a printable one for itself, those from 256 on for the others."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + number): byte for number, byte in enumerate(others)}


_BYTE_OF = _byte_characters()
