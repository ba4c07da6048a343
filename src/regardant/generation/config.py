"""Configuration of the search for targets."""

from typing import Any, Self

from pydantic import Field, model_validator

from regardant import config as configuration
from regardant.config import Config


class GenerationConfig(Config):
    """Settings of the search for targets: greedy (beam_size 1) or beam search."""

    beam_size: int = Field(5, gt=0, le=1000)
    """Number of hypotheses followed at once for each sentence. 1 takes the likeliest token at every step."""

    length_penalty: float = Field(1.0, ge=0, le=10)
    """Exponent of the length: hypotheses are ranked by log-probability / length ** length_penalty, EOS counted; 0 ranks
    by log-probability alone. The formula of fairseq, CTranslate2 and Hugging Face; Google's divides by
    ((5 + length) / 6) ** a instead."""

    max_length_ratio: float = Field(2.0, ge=0, allow_inf_nan=False)
    """Number of target tokens allowed per source token, EOS counted in both, in addition to max_length_extra."""

    max_length_extra: int = Field(20, gt=0)
    """Number of target tokens allowed regardless of the source length."""

    no_repeat_ngram_size: int = Field(0, ge=0)
    """Size of the n-grams that no hypothesis contains twice. 0 allows every repetition."""

    trees: bool = False
    """True writes one tree in well-formed brackets, such as `(S (NP a cat )NP (VP sleeps )VP )S`. Tokens must be whole
    brackets and words: tokenizer.kind=whitespace."""

    nbest: int = Field(1, gt=0)
    """Number of hypotheses returned for each sentence, best first. At most beam_size."""

    def replaced(self, **fields: Any) -> Self:
        """Return a copy with the given fields, except None, replaced; nbest alone widens a beam that is too narrow.

        Raises ConfigError.
        """
        changed = {name: value for name, value in fields.items() if value is not None}
        if "nbest" in changed:
            changed.setdefault("beam_size", max(self.beam_size, changed["nbest"]))
        return configuration.load(type(self), {**self.model_dump(), **changed}, origin="generation")

    @model_validator(mode="after")
    def beam_holds_nbest(self) -> Self:
        if self.nbest > self.beam_size:
            raise ValueError(f"nbest ({self.nbest}) must be at most beam_size ({self.beam_size}): raise beam_size")
        return self
