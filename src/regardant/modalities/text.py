"""Text: an item is a string, an element a token."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from regardant.config.run_files import TOKENIZER
from regardant.data import kmers  # noqa: F401  # importing a module registers its kind
from regardant.data.batching import id_dtype, pad
from regardant.data.bpe_dropout import BpeDropout
from regardant.data.pretrained_tokenizers import PretrainedTokenizer
from regardant.data.text_files import LONGEST_LINE
from regardant.data.tokenizer_config import TokenizerConfig
from regardant.data.tokenizers import Tokenizer, Tokenizers
from regardant.data.vocabulary import EOS, MASK, UNK
from regardant.data.words import words
from regardant.errors import BlankItems, DataError
from regardant.evaluation.alignment import NO_WORD, word_of_token
from regardant.modalities.base import Codec, PartModalityConfig
from regardant.models.representations import RepresentationBuilder, tokens

SPACE = "▁"
"""A space in the name of a token, as `Tokenizer.tokens` writes it."""

SENTENCE_END = re.compile(r"(?<=[.!?…。！？])(?=\s)")
WORD_END = re.compile(r"(?<=\S)(?=\s)")
"""Ends of sentences and of words. The space stays with the text after it, as in the pieces of a tokenizer."""

SPACE_BEFORE_TEXT = ("word", "bpe", "unigram")
"""Kinds of tokenizers that put a space before the start of a text and split a full stop from the text after it. Kind
whitespace does not split a full stop, and kind code puts no space."""


class TextModalityConfig(PartModalityConfig):
    """Text as tokens."""

    kind: Literal["text"] = "text"

    files = (TOKENIZER,)

    tokenizer: TokenizerConfig = TokenizerConfig()
    """Tokenizer, which turns text into tokens."""

    bpe_dropout: float = Field(0.0, ge=0, lt=1)
    """Probability that training splits a merged piece of bpe, drawn anew in each epoch, so that spellings vary."""

    def fit(self, items: Iterable[str]) -> "TextCodec":
        texts = list(items)
        if (other := next((text for text in texts if not isinstance(text, str)), None)) is not None:
            raise DataError(f"the items are of type {type(other).__name__}, not texts: set another input.kind")
        words = sum(len(text.split()) for text in texts)
        size = int(min(16_000, max(400, 24 * math.sqrt(words))) // 100 * 100)
        tokenizer = Tokenizer.train(self.tokenizer, texts, self.tokenizer.vocab_size or size)
        return TextCodec(tokenizer, self.bpe_dropout)

    def load(self, run: Path) -> "TextCodec":
        return TextCodec(Tokenizers.load(run / TOKENIZER).source, self.bpe_dropout)


class TextCodec(Codec):
    """Texts to token ids and back."""

    unit = "token"

    def __init__(self, tokenizer: Tokenizer, bpe_dropout: float = 0.0) -> None:
        self.tokenizer = tokenizer
        self.drop = BpeDropout(tokenizer, bpe_dropout) if bpe_dropout else None
        self.dtype = id_dtype(tokenizer.vocab_size)

    def encode(self, items: Sequence[str]) -> list[NDArray[Any]]:
        encoded = self.tokenizer.encode_batch(list(items))
        require_tokens(encoded)
        return [self._framed(ids) for ids in encoded]

    def encode_with_blanks(self, text: str, blank: str) -> NDArray[Any]:
        """Return the ids of a text, with MASK in place of each `blank`."""
        if isinstance(self.tokenizer, PretrainedTokenizer):
            return self._framed(self.tokenizer.encode_with_blanks(text, blank))
        first, *others = text.split(blank)
        ids = self.tokenizer.encode(first)
        for part in others:
            # The part is encoded behind a full stop, so that it starts with a space only where the text has one.
            stop = "." if self.tokenizer.config.kind in SPACE_BEFORE_TEXT else ""
            ids += [MASK, *self.tokenizer.encode(f"{stop}{part}")[len(self.tokenizer.encode(stop)) :]]
        return np.array(ids, self.dtype)

    def parse(self, argument: str) -> str:
        return argument

    def argument(self, encoded: NDArray[Any], folder: Path, name: str) -> str | None:
        """Return the text. None for a text with unknown tokens."""
        return None if self.unknown(encoded) else self.tokenizer.decode(encoded.tolist())

    def parts(self, argument: str, length: int) -> tuple[list[NDArray[Any]], list[str]]:
        """Return the encoded text, cut if it is longer, and notes for the user. A blank text has no parts."""
        return super().parts(argument, length) if argument.strip() else ([], [])

    def cut(self, encoded: NDArray[Any], length: int) -> NDArray[Any]:
        _, after = self.tokenizer.frame
        if len(encoded) <= length or not len(after):
            return encoded[:length]
        return np.concatenate([encoded[: length - len(after)], np.array(after, encoded.dtype)])

    def augmented(self, encoded: NDArray[Any], seed: Sequence[int]) -> NDArray[Any]:
        return self.drop(encoded, seed)[0] if self.drop else encoded

    def collate(self, encoded: Sequence[NDArray[Any]]) -> Tensor:
        """Return token ids [N, T], padded with PAD."""
        return pad(encoded, eos=False)

    def representation(self) -> RepresentationBuilder:
        return tokens(self.tokenizer.vocab_size)

    def labels(self, encoded: NDArray[Any]) -> list[str]:
        return self.tokenizer.tokens(encoded.tolist())

    def units(self, argument: str, encoded: NDArray[Any]) -> list[tuple[str, int]]:
        if not self.tokenizer.has_words:
            return []
        return units_of_spans(argument, self._places(argument, len(encoded)), self.labels(encoded))

    def unknown(self, encoded: NDArray[Any]) -> int:
        """Return the number of unknown tokens (UNK)."""
        return int((encoded == UNK).sum())

    def _places(self, argument: str, count: int) -> list[tuple[int, int]]:
        """Return the character spans (first, after the last) of the first `count` tokens of a text, without the tokens
        that `cut` keeps after it."""
        before, after = self.tokenizer.frame
        return [*[(0, 0)] * len(before), *self.tokenizer.locate(argument)[1]][: count - len(after)]

    def _framed(self, ids: Sequence[int]) -> NDArray[Any]:
        before, after = self.tokenizer.frame
        return np.array([*before, *ids, *after], self.dtype)

    def describe(self) -> str:
        return f"{self.tokenizer.config.kind} vocabulary of {self.tokenizer.vocab_size:,}"

    def save(self, run: Path) -> None:
        Tokenizers(self.tokenizer, self.tokenizer).save(run / TOKENIZER)


class SentenceCodec(TextCodec):
    """Texts as a translator reads them: each ends with EOS, and one longer than the model is read in parts."""

    def encode(self, items: Sequence[str]) -> list[NDArray[Any]]:
        """Return the ids of texts, without EOS."""
        return [np.array(ids, self.dtype) for ids in self.tokenizer.encode_batch(list(items))]

    def cut(self, encoded: NDArray[Any], length: int) -> NDArray[Any]:
        return encoded[: length - 1]

    def parts(self, argument: str, length: int) -> tuple[list[NDArray[Any]], list[str]]:
        """Return the ids of a text in as many parts as the model needs, split between sentences, then words. A blank
        text has no parts."""
        text, notes = first_of_line(argument)
        ids = self.tokenizer.encode(text) if text.strip() else []
        if not ids or len(ids) < length:
            return [np.array(ids, self.dtype)] if ids else [], notes
        parts = [np.array(part, self.dtype) for part in _pack(text, self.tokenizer, length - 1)]
        return parts, [*notes, f"longer than the model's {length} tokens, read in {len(parts)} parts"]

    def lengths(self, rows: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the number of tokens of each text, with EOS, given its number of ids."""
        return rows.astype(np.int64) + 1

    def collate(self, encoded: Sequence[NDArray[Any]]) -> Tensor:
        """Return token ids [N, T], each row ended by EOS, then PAD."""
        return pad(encoded)

    def labels(self, encoded: NDArray[Any]) -> list[str]:
        return self.tokenizer.tokens([*encoded.tolist(), EOS])

    def _places(self, argument: str, count: int) -> list[tuple[int, int]]:
        """Return the character spans of the first `count` tokens, to which `encode` adds no frame."""
        return self.tokenizer.locate(argument)[1][:count]


def require_tokens(texts: Sequence[Sequence[object]]) -> None:
    """Raise BlankItems if one of the texts, given as tokens or as words with tokens, has none."""
    if blank := [number for number, tokens in enumerate(texts) if not tokens]:
        raise BlankItems(blank)


def first_of_line(text: str) -> tuple[str, list[str]]:
    """Return the part of a line that is translated, and a note for the user if the line is cut."""
    if len(text) <= LONGEST_LINE:
        return text, []
    return text[:LONGEST_LINE], [f"has {len(text):,} characters: the first {LONGEST_LINE:,} are translated"]


def word_units(tokenizer: Tokenizer, text: str, labels: Sequence[str]) -> list[tuple[str, int]]:
    """Return (word, number of its tokens) for the first tokens of a text, which are those with labels.

    A token that belongs to no word, such as one beyond the text, is a unit of its own.
    """
    return units_of_spans(text, tokenizer.locate(text)[1], labels)


def units_of_spans(text: str, spans: Sequence[tuple[int, int]], labels: Sequence[str]) -> list[tuple[str, int]]:
    """Return (word, number of its tokens) for tokens with these character spans: (first, after the last).

    A token that is a space alone belongs to the word after it, or at the end of a text to the unit before it.
    """
    named = words(text)
    numbers = word_of_token(spans, [(word.start, word.end) for word in named])
    numbers += [NO_WORD] * (len(labels) - len(numbers))
    units: list[tuple[str, int]] = []
    before, spaces = NO_WORD, 0
    for label, word in zip(labels, numbers, strict=False):
        if word == NO_WORD and not label.strip(SPACE):
            spaces += 1
            continue
        if word != NO_WORD and word == before:
            units[-1] = (units[-1][0], units[-1][1] + spaces + 1)
        elif word != NO_WORD:
            units.append((named[word].text, spaces + 1))
        else:
            _lengthen(units, spaces)
            units.append((label.strip(SPACE), 1))
        before, spaces = word, 0
    _lengthen(units, spaces)
    return units


def _lengthen(units: list[tuple[str, int]], spaces: int) -> None:
    """Add tokens that are spaces to the last unit, or as a unit of their own if there is none."""
    if spaces and units:
        units[-1] = (units[-1][0], units[-1][1] + spaces)
    elif spaces:
        units.append((SPACE, spaces))


def _pack(line: str, tokenizer: Tokenizer, longest: int) -> Iterator[list[int]]:
    """Yield the ids of parts of a line: whole sentences while they fit together, else words, else tokens."""
    waiting: list[int] = []
    for unit in _units(line, tokenizer, longest):
        if waiting and len(waiting) + len(unit) > longest:
            yield waiting
            waiting = []
        waiting = waiting + unit
    if waiting:
        yield waiting


def _units(line: str, tokenizer: Tokenizer, longest: int) -> Iterator[list[int]]:
    for sentence in SENTENCE_END.split(line):
        ids = tokenizer.encode(sentence)
        if len(ids) <= longest:
            yield ids
            continue
        for word in WORD_END.split(sentence):
            ids = tokenizer.encode(word)
            yield from (ids[start : start + longest] for start in range(0, len(ids), longest))
