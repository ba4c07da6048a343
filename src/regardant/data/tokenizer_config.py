"""Configuration of tokenizers."""

from typing import Literal, Self

from pydantic import Field, model_validator

from regardant.config import Config
from regardant.data.vocabulary import SPECIAL_TOKENS

BYTES = [f"<0x{byte:02X}>" for byte in range(256)]  # the names by which the library falls back to bytes
PIECES = ("bpe", "unigram", "code")  # kinds that learn pieces, and spell in bytes what has none


class TokenizerConfig(Config):
    """How text becomes tokens."""

    kind: Literal["character", "word", "whitespace", "byte", "bpe", "unigram", "code", "kmer", "pretrained"] = "bpe"
    """Kind of tokens. bpe and unigram find pieces between a character and a word; code does, and keeps white space;
    kmer reads DNA; pretrained is that of an imported model."""

    vocab_size: int | None = Field(None, gt=len(SPECIAL_TOKENS))
    """Tokens in a vocabulary, special ones included; chosen from the corpus when left out. bpe, unigram and code have
    exactly this many, character, word and whitespace at most this many; byte and kmer ignore it."""

    lowercase: bool = False
    """Make all text lower case. The case of the output is then lost too."""

    joint: bool = True
    """One vocabulary for source and target; else one each."""

    k: int | None = Field(None, gt=0, le=6)
    """Letters of a kmer (6)."""

    stride: int | None = Field(None, gt=0)
    """Letters from the start of a kmer to that of the next, at most k (1). k: they do not overlap."""

    special: tuple[int | None, ...] = ()
    """Ids of the imported model for padding, start, end, unknown and mask (kind pretrained); null for one it lacks."""

    @model_validator(mode="after")
    def _leave_room_for_pieces(self) -> Self:
        least = len(SPECIAL_TOKENS) + len(BYTES) + 1
        if self.kind in PIECES and self.vocab_size is not None and self.vocab_size < least:
            raise ValueError(
                f"vocab_size ({self.vocab_size}) must be at least {least} for {self.kind}, which holds "
                f"{len(SPECIAL_TOKENS)} special tokens and {len(BYTES)} bytes"
            )
        return self

    @model_validator(mode="after")
    def _read_all_letters(self) -> Self:
        k, stride = self.kmer
        if self.kind != "kmer" and (self.k or self.stride):
            raise ValueError(f"k and stride are of kind kmer, not of {self.kind}: leave them out")
        if stride > k:
            raise ValueError(f"stride ({stride}) must be at most k ({k}), or letters between two k-mers are not read")
        return self

    @property
    def kmer(self) -> tuple[int, int]:
        """Letters of a k-mer, and its stride."""
        return self.k or 6, self.stride or 1

    @property
    def splits_words(self) -> bool:
        """True if text is words between single spaces, and not just any characters."""
        return self.kind in ("word", "whitespace", "bpe", "unigram")
