"""Configuration of tokenizers."""

from typing import Literal, Self

from pydantic import Field, model_validator

from regardant.config import Config
from regardant.data.vocabulary import SPECIAL_TOKENS

BYTES = [f"<0x{byte:02X}>" for byte in range(256)]  # names of the bytes in the library's byte fallback
PIECES = ("bpe", "unigram", "code")  # kinds that learn pieces, with byte fallback


class TokenizerConfig(Config):
    """Configuration of tokenizers."""

    kind: Literal["character", "word", "whitespace", "byte", "bpe", "unigram", "code", "kmer", "pretrained"] = "bpe"
    """Kind of tokens. bpe and unigram learn pieces between a character and a word; code learns pieces too, and keeps
    white space; kmer reads DNA; pretrained is the tokenizer of an imported model."""

    vocab_size: int | None = Field(None, gt=len(SPECIAL_TOKENS))
    """Number of tokens in a vocabulary, with special ones; chosen from the corpus if empty. Exact for bpe, unigram and
    code, an upper limit for character, word and whitespace; byte and kmer ignore it."""

    lowercase: bool = False
    """True if all text is lower-cased. The output is then lower case, too."""

    joint: bool = True
    """True if source and target share one vocabulary."""

    k: int | None = Field(None, gt=0, le=6)
    """Number of letters of a k-mer (6)."""

    stride: int | None = Field(None, gt=0)
    """Number of letters from the start of a k-mer to the start of the next, at most k (1). Equal to k: no overlap."""

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
            raise ValueError(f"k and stride are settings of kind kmer, not of {self.kind}: leave them out")
        if stride > k:
            raise ValueError(f"stride ({stride}) must be at most k ({k}), or letters between two k-mers are not read")
        return self

    @property
    def kmer(self) -> tuple[int, int]:
        """Letters of a k-mer, and its stride."""
        return self.k or 6, self.stride or 1

    @property
    def splits_words(self) -> bool:
        """True if text is read as words between single spaces."""
        return self.kind in ("word", "whitespace", "bpe", "unigram")
