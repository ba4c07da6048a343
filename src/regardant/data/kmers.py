"""DNA as k-mers: words of k letters that overlap, or do not.

Ji et al. 2021, "DNABERT", https://doi.org/10.1093/bioinformatics/btab083 (stride 1, k from 3 to 6); without overlap:
Dalla-Torre et al. 2023, "The Nucleotide Transformer" (k = stride = 6). The vocabulary has all k-mers, so that
nothing is learned from a corpus and no k-mer is unknown.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise, product
from typing import ClassVar, Self

import tokenizers as hf
from tokenizers import models

from regardant.data.tokenizer_config import TokenizerConfig
from regardant.data.tokenizers import Tokenizer
from regardant.data.vocabulary import SPECIAL_TOKENS, UNK
from regardant.errors import ConfigError, DataError

LETTERS = "ACGTN"
"""The four bases, and N for any of them."""

SHOWN = 30
"""Number of letters of a sequence shown in a message."""


class KmerTokenizer(Tokenizer, kind="kmer"):
    """Sequences of DNA to ids of k-mers and back.

    A k-mer begins every `stride` letters until all letters are covered, so that the last one may be shorter than k and
    decoding restores all letters.
    """

    has_words: ClassVar[bool] = False

    def __init__(self, config: TokenizerConfig, backend: hf.Tokenizer) -> None:
        super().__init__(config, backend)
        self.k, self.stride = config.kmer
        self.ids = {piece: token for token, piece in enumerate(self.pieces)}

    @classmethod
    def train(cls, config: TokenizerConfig, texts: Iterable[str], vocab_size: int) -> Self:
        """Return the tokenizer of all k-mers; `texts` are not read. Raises ConfigError for lower case."""
        if config.lowercase:  # runs of earlier versions that ignored it are still opened
            raise ConfigError("tokenizer.lowercase: k-mers are upper case: leave it out")
        k, _ = config.kmer
        kmers = ("".join(letters) for length in range(1, k + 1) for letters in product(LETTERS, repeat=length))
        vocabulary = {piece: token for token, piece in enumerate([*SPECIAL_TOKENS, *kmers])}
        return cls(config, hf.Tokenizer(models.WordLevel(vocabulary, unk_token=SPECIAL_TOKENS[UNK])))

    def encode(self, text: str) -> list[int]:
        """Return the ids of a sequence. Raises DataError for letters that are not in LETTERS."""
        return self.locate(text)[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [self.encode(text) for text in texts]

    def locate(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        letters, before = self.normalise(text), len(text) - len(text.lstrip())
        if other := sorted(set(letters) - set(LETTERS)):
            raise DataError(
                f"{text[:SHOWN]!r} holds {other[0]!r}, and k-mers consist of A, C, G, T and N (any base): write N in "
                "its place"
            )
        if not letters:
            return [], []
        starts = range(0, max(1, len(letters) - self.k + self.stride), self.stride)
        places = [(start, min(start + self.k, len(letters))) for start in starts]
        ids = [self.ids[letters[start:end]] for start, end in places]
        return ids, [(before + start, before + end) for start, end in places]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the letters of any ids: all of the first k-mer, then of each k-mer those after the overlap."""
        return "".join(self._new_letters(ids))

    def decode_as_it_comes(self, ids: Iterable[int]) -> Iterator[str]:
        return (letters for letters in self._new_letters(ids) if letters)

    def spans(self, ids: Iterable[int]) -> list[tuple[int, int]]:
        return list(pairwise(accumulate(map(len, self._new_letters(ids)), initial=0)))

    def normalise(self, text: str) -> str:
        return text.strip().upper()

    @property
    def normalisation(self) -> str:
        return "upper-cased"

    def _new_letters(self, ids: Iterable[int]) -> Iterator[str]:
        overlap = 0
        for token in ids:
            letters = self._bytes[token].decode()
            yield letters[overlap:]
            overlap = self.k - self.stride if letters else overlap
