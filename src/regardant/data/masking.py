"""Masked language modelling: the tokens to predict, and the tokens that the model reads in their place.

Devlin et al. 2019, "BERT", https://arxiv.org/abs/1810.04805, section 3.1 and appendix A.1; drawn anew in every epoch
as in Liu et al. 2019, "RoBERTa", https://arxiv.org/abs/1907.11692, section 4.1. Spans of words: Joshi et al. 2020,
"SpanBERT", https://arxiv.org/abs/1907.10529, section 3.1, without its boundary objective. Whole words: Cui et al. 2021,
https://arxiv.org/abs/1906.08101, section 2.2.

Shape legend: B batch, T tokens.
"""

from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Int
from numpy.typing import NDArray
from torch import Tensor

from regardant.data.tokenizers import Tokenizer
from regardant.data.vocabulary import EOS, MASK, PAD, SOS, SPECIAL_TOKENS

Masking = Literal["tokens", "words", "spans"]

MASKED_SHARE = 0.15
"""Share of an item's tokens that are targets."""

HIDDEN, REPLACED = 0.8, 0.1
"""Shares of the targets that are replaced by MASK, and by a random token. The others are kept."""

SPAN_LENGTHS = np.arange(1, 11)
"""Possible lengths of a span in words."""

SPAN_CHANCES = 0.2 * 0.8 ** (SPAN_LENGTHS - 1)
SPAN_CHANCES /= SPAN_CHANCES.sum()
"""Probability of each length: geometric, truncated. The mean is 3.8."""


def count_targets(lengths: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the number of target tokens in items of these lengths, at least one each."""
    return np.maximum(1, np.rint(MASKED_SHARE * lengths)).astype(np.int64)


def mask_tokens(
    tokens: Int[Tensor, "B T"],
    vocab_size: int,
    generator: np.random.Generator,
    masking: Masking = "tokens",
    starts: Bool[np.ndarray, "B T"] | None = None,
) -> tuple[Int[Tensor, "B T"], Int[Tensor, "B T"]]:
    """Return the tokens that the model reads, and the targets: the tokens to predict, PAD elsewhere.

    masking: the unit in which targets are drawn. The tokens of a span are all masked, all replaced or all kept.
    starts: True where a word starts. None for `masking="tokens"`.
    """
    given = tokens.numpy()
    if starts is None:
        chosen, span = _draw_tokens(_of_text(given), generator)
    else:
        chosen, span = (draw_words if masking == "words" else draw_spans)(given, starts, generator)
    fate = np.take_along_axis(generator.random(given.shape), span, 1)
    random_tokens = generator.integers(len(SPECIAL_TOKENS), vocab_size, given.shape)
    shown = np.where(chosen & (fate < HIDDEN), MASK, given)
    shown = np.where(chosen & (fate >= HIDDEN) & (fate < HIDDEN + REPLACED), random_tokens, shown)
    return torch.from_numpy(shown), torch.from_numpy(np.where(chosen, given, PAD))


class WordStarts:
    """Callable that marks the tokens where words start.

    A word is a unit of pre-tokenisation: letters and digits, with the space before them, or one other character. A
    k-mer is a word, too.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        # Spellings, not names of tokens: WordPiece writes `##s` for the s of cats, and `sat` for a word with its space.
        spelled = tokenizer.spellings()
        spelled[: len(SPECIAL_TOKENS)] = [b""] * len(SPECIAL_TOKENS)
        self.inner = np.array([tokenizer.has_words and _is_letter(one, 0) for one in spelled])
        """[V] True if a token can continue a word."""
        self.open = np.array([_is_letter(one, -1) or one.endswith(b" ") for one in spelled])
        """[V] True if a word can continue after a token."""

    def __call__(self, tokens: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Return a mask of tokens [B, T], True where a word starts."""
        starts = ~self.inner[tokens]
        starts[:, 1:] |= ~self.open[tokens[:, :-1]]
        starts[:, 0] = True
        return starts


def draw_words(
    tokens: NDArray[np.integer], starts: NDArray[np.bool_], generator: np.random.Generator
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return a mask [B, T] of the targets, drawn as whole words, and the position of each token.

    A word with more tokens than are still to be drawn is left out, so that an item can have fewer targets than
    `count_targets` returns. If no word fits, the targets are a part of one word.
    """
    chosen, real = np.zeros(tokens.shape, dtype=bool), _of_text(tokens)
    for row, missing in enumerate(count_targets(real.sum(1))):
        places = np.flatnonzero(real[row])
        bounds = np.append(np.flatnonzero(starts[row, places]), len(places))
        words = generator.permutation(len(bounds) - 1)
        for word in words:
            own = places[bounds[word] : bounds[word + 1]]
            if len(own) <= missing:
                chosen[row, own] = True
                missing -= len(own)
            if not missing:
                break
        if len(words) and not chosen[row].any():
            chosen[row, places[bounds[words[0]] :][:missing]] = True
    return chosen, np.broadcast_to(np.arange(tokens.shape[1]), tokens.shape)


def draw_spans(
    tokens: NDArray[np.integer], starts: NDArray[np.bool_], generator: np.random.Generator
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return a mask [B, T] of the targets, drawn as spans, and for each target the position where its span starts.

    Spans start at words that are not targets yet. The last one is truncated to the number of targets.
    """
    chosen, span = np.zeros(tokens.shape, dtype=bool), np.zeros(tokens.shape, dtype=np.int64)
    real = _of_text(tokens)
    for row, missing in enumerate(count_targets(real.sum(1))):
        places = np.flatnonzero(real[row])
        bounds = np.append(np.flatnonzero(starts[row, places]), len(places))
        words = generator.permutation(len(bounds) - 1)
        for word, wanted in zip(words, generator.choice(SPAN_LENGTHS, len(words), p=SPAN_CHANCES), strict=True):
            own = places[bounds[word] : bounds[min(word + wanted, len(words))]]
            if not chosen[row, own[0]]:
                free = own[~chosen[row, own]][:missing]
                chosen[row, free], span[row, free] = True, own[0]
                missing -= len(free)
            if not missing:
                break
    return chosen, span


def _draw_tokens(
    real: NDArray[np.bool_], generator: np.random.Generator
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return a mask [B, T] of the targets, drawn one by one, and the position of each token."""
    ranks = np.where(real, generator.random(real.shape), 2.0).argsort(1).argsort(1)
    places = np.broadcast_to(np.arange(real.shape[1]), real.shape)
    return ranks < count_targets(real.sum(1))[:, None], places


def _of_text(tokens: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Return a mask [B, T] of the tokens that can be targets: all but PAD, SOS and EOS."""
    return ~np.isin(tokens, (PAD, SOS, EOS))


def _is_letter(spelled: bytes, at: int) -> bool:
    """Return whether the first (0) or last (-1) character of a token is of a word. Bytes of a split character are."""
    text = spelled.decode(errors="surrogateescape")  # a byte of a split character becomes U+DC80 to U+DCFF
    return bool(text) and (text[at].isalnum() or text[at] == "_" or "\udc80" <= text[at] <= "\udcff")
