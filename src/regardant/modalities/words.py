"""Text whose words are given, each with the number of its label.

Every word is encoded by itself, so that its first token is known for any tokenizer; the tokens of all words are those
of the words joined by spaces. The tokenizer of an imported model may merge the space before a word into its first
piece, so the word is encoded with the space.

Shape legend: T tokens of a text, N texts.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regardant.data.tokenizers import Tokenizer
from regardant.errors import ItemError
from regardant.modalities.text import TextCodec, TextModalityConfig, require_tokens
from regardant.models.heads import IGNORED

TOKENS, LABELS = 0, 1
"""Columns of an encoded text."""


class LabelledWords(NamedTuple):
    """The words of a text and the number of each one's label."""

    words: Sequence[str]
    labels: Sequence[int]


class WordsModalityConfig(TextModalityConfig):
    """Text as tokens, its words marked."""

    def fit(self, items: Iterable[Any]) -> "WordsCodec":
        return WordsCodec(super().fit(" ".join(one.words) for one in items).tokenizer, self.bpe_dropout)

    def load(self, run: Path) -> "WordsCodec":
        return WordsCodec(super().load(run).tokenizer, self.bpe_dropout)


class WordsCodec(TextCodec):
    """Labelled words to arrays [T, 2] of token ids and labels, which stand on the first token of each word.

    A later token of a word has the label IGNORED, and so has the space between words where it is a token.
    """

    def __init__(self, tokenizer: Tokenizer, bpe_dropout: float = 0.0) -> None:
        super().__init__(tokenizer, bpe_dropout)
        self.space, self.before = tokenizer.between_words()

    def encode(self, items: Sequence[Any]) -> list[NDArray[Any]]:
        """Return tokens and labels. Raises DataError for a text without words, or a blank word."""
        texts = [[f"{self.before}{word}" if at else word for at, word in enumerate(one.words)] for one in items]
        known = list(dict.fromkeys(chain.from_iterable(texts)))
        tokens = dict(zip(known, self.tokenizer.encode_batch(known), strict=True))
        require_tokens([[word for word in words if word.strip() and tokens[word]] for words in texts])
        encoded = []
        for number, (one, words) in enumerate(zip(items, texts, strict=True)):
            rows: list[tuple[int, int]] = []
            for word, label in zip(words, one.labels, strict=True):
                if not (ids := tokens[word]) or not word.strip():
                    raise ItemError(number, "has a blank word: give words without blank ones between them")
                rows += [(token, IGNORED) for token in (self.space if rows else [])]
                rows += zip(ids, [label, *[IGNORED] * (len(ids) - 1)], strict=True)
            encoded.append(np.array(rows, np.int32))
        return encoded

    def cut(self, encoded: NDArray[Any], length: int) -> NDArray[Any]:
        """Return the first `length` tokens: `encode` adds no frame that must be kept."""
        return encoded[:length]

    def augmented(self, encoded: NDArray[Any], seed: Sequence[int]) -> NDArray[Any]:
        """Return the text after BPE-dropout. The label of a word stays on its first piece."""
        if not self.drop:
            return encoded
        ids, tokens = self.drop(encoded[:, TOKENS], seed)
        first = np.diff(tokens, prepend=-1) > 0
        return np.stack([ids, np.where(first, encoded[tokens, LABELS], IGNORED)], 1, dtype=np.int32)

    def parse(self, argument: str) -> Any:
        """Return the words of a text, split at white space, each with label 0."""
        words = argument.split()
        return LabelledWords(words, [0] * len(words))

    def argument(self, encoded: NDArray[Any], folder: Path, name: str) -> str | None:
        return super().argument(encoded[:, TOKENS], folder, name)

    def words_of(self, encoded: NDArray[Any]) -> list[str]:
        """Return the words that the tokens of a text spell."""
        starts = np.flatnonzero(first_tokens(encoded))
        parts = np.split(encoded[:, TOKENS], starts[1:])
        return ["".join(self.tokenizer.decode(part.tolist()).split()) for part in parts]

    def collate(self, encoded: Sequence[NDArray[Any]]) -> Tensor:
        return super().collate([one[:, TOKENS] for one in encoded])

    def targets(self, encoded: Sequence[NDArray[Any]]) -> Tensor:
        """Return the labels of a batch [N, T], padded with IGNORED."""
        rows = [torch.from_numpy(one[:, LABELS].astype(np.int64)) for one in encoded]
        return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=IGNORED)

    def labels(self, encoded: NDArray[Any]) -> list[str]:
        return super().labels(encoded[:, TOKENS])

    def units(self, argument: str, encoded: NDArray[Any]) -> list[tuple[str, int]]:
        return self.named_units(argument.split(), encoded)

    def named_units(self, names: Sequence[str], encoded: NDArray[Any]) -> list[tuple[str, int]]:
        """Return (name, number of its tokens) for each word. A space that is a token is a unit of its own."""
        first, unnamed = first_tokens(encoded), iter(names)
        units: list[tuple[str, int]] = []
        for token, label in enumerate(self.labels(encoded)):
            if first[token]:
                units.append((next(unnamed), 1))
            elif self.space and (token + 1 == len(first) or first[token + 1]) and encoded[token, TOKENS] in self.space:
                units.append((label, 1))
            else:
                units[-1] = (units[-1][0], units[-1][1] + 1)
        return units


def first_tokens(encoded: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a mask [T] of the first token of each word."""
    first: NDArray[np.bool_] = encoded[:, LABELS] != IGNORED
    return first
