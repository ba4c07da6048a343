"""Word alignment read off attention, and its error rate against gold alignments.

A link is a pair (source word, target word), both counted from 0. With A the predicted links, S the sure and
P the possible gold links (S is part of P), over a corpus:

    AER = 1 - (|A and S| + |A and P|) / (|A| + |S|)                               Och and Ney 2003,

https://aclanthology.org/J03-1002, which for gold links that are all sure is 1 - 2 |A and S| / (|A| + |S|).

Shape legend: T target tokens, S source tokens, V target words, W source words.
"""

import re
from collections.abc import Sequence, Set

import numpy as np
from numpy.typing import NDArray

from regardant.errors import DataError

Link = tuple[int, int]
"""(source word, target word)"""

CharacterSpan = tuple[int, int]
"""(start, end) in characters, end excluded."""

Weights = NDArray[np.floating]
"""Attention weights. Rows are target items, columns source items."""

NO_WORD = -1
"""Word index of a token that belongs to no word, such as the end of the sentence."""

THRESHOLDS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)
"""Thresholds that `choose_threshold` tries."""


def alignment_error_rate(
    predicted: Sequence[Set[Link]], sure: Sequence[Set[Link]], possible: Sequence[Set[Link]] | None = None
) -> float:
    """Return the AER of a corpus, with a set of links for each sentence: 0 is perfect, 1 has no link right.

    Sure links count as possible ones too; without `possible` they are the only ones. A corpus without any
    link has no error. Raises DataError for unequal counts of sentences.
    """
    possible = sure if possible is None else possible
    if not len(predicted) == len(sure) == len(possible):
        raise DataError(
            f"links of {len(predicted)} sentences against {len(sure)} with sure and {len(possible)} with "
            "possible gold links; give each sentence one set of each"
        )
    right = total = 0
    for links, certain, allowed in zip(predicted, sure, possible, strict=True):
        right += len(links & certain) + len(links & (certain | allowed))
        total += len(links) + len(certain)
    return 1 - right / total if total else 0.0


def extract_links(weights: Weights, threshold: float = 1.0) -> set[Link]:
    """Return the links of a [V, W] matrix: each target word's heaviest source word, the first of equals.

    A threshold below 1 adds the reverse direction, for gold links that give a target word several source words (`du` to
    `of the`): each source word's heaviest target word, if that weight exceeds `threshold`. The result is the union of
    both directions, Och and Ney 2003. A row of zeros has no link.
    """
    if not weights.size:
        return set()
    chosen = np.zeros(weights.shape, dtype=bool)
    rows = np.flatnonzero(weights.max(1))
    chosen[rows, weights.argmax(1)[rows]] = True
    if threshold < 1:  # checked, since weights may exceed 1: Linformer's rows do not sum to 1
        columns = np.flatnonzero(weights.max(0) > threshold)
        chosen[weights.argmax(0)[columns], columns] = True
    targets, sources = chosen.nonzero()
    return set(zip(sources.tolist(), targets.tolist(), strict=True))


def choose_threshold(weights: Sequence[Weights], sure: Sequence[Set[Link]]) -> float:
    """Return the threshold for `extract_links` with the lowest AER, the highest of equals.

    `weights` holds a [V, W] matrix for each sentence. Choose on validation data, then score other data.
    """

    def error_rate(threshold: float) -> float:
        return alignment_error_rate([extract_links(matrix, threshold) for matrix in weights], sure)

    return min(reversed(THRESHOLDS), key=error_rate)


def shifted(weights: Weights) -> Weights:
    """Return attention [T, S] shifted by one row, so that a target token has the row of the step that reads it.

    Row t is that of the step that predicts token t. The next step reads the token, and its attention often aligns
    the token better (Chen et al. 2020, https://arxiv.org/abs/2004.14837), so it becomes row t. The last token, the
    end of the sentence, is never read: its row is zeros.
    """
    return np.concatenate([weights[1:], np.zeros_like(weights[:1])])


def merge_to_words(weights: Weights, source_words: Sequence[int], target_words: Sequence[int]) -> Weights:
    """Return attention between words [V, W] from attention between tokens [T, S].

    `source_words` and `target_words` give each token's word, as `word_of_token` does; tokens of NO_WORD are
    left out. Weights are summed over the tokens of a source word and averaged over those of a target word. A
    word without tokens has zeros. V and W end with the highest word of any token.
    """
    source, target = _membership(source_words), _membership(target_words)
    tokens_of_word = np.maximum(target.sum(0), 1)
    return (target / tokens_of_word).T @ weights @ source


def word_of_token(token_spans: Sequence[CharacterSpan], word_spans: Sequence[CharacterSpan]) -> list[int]:
    """Return the word that each token shares characters with, NO_WORD if there is none.

    Spans of tokens and words count characters of the same text. A token over several words belongs to the word
    that it shares most characters with, the first of equals.
    """
    if not token_spans or not word_spans:
        return [NO_WORD] * len(token_spans)
    token_start, token_end = np.asarray(token_spans).T[..., None]  # [T, 1]
    word_start, word_end = np.asarray(word_spans).T  # [V]
    shared = np.minimum(token_end, word_end) - np.maximum(token_start, word_start)
    return np.where(shared.max(1) > 0, shared.argmax(1), NO_WORD).tolist()


def format_links(links: Set[Link]) -> str:
    """Return links in Pharaoh format: `0-0 1-2`, source first, in ascending order."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def parse_links(text: str) -> set[Link]:
    """Return the links of a line in Pharaoh format. Raises DataError for anything else."""
    links = set()
    for item in text.split():
        match = re.fullmatch("([0-9]+)-([0-9]+)", item)
        if not match:
            raise DataError(f"alignment link {item!r}; must be source-target, counted from 0, as in '0-0 1-2'")
        links.add((int(match[1]), int(match[2])))
    return links


def _membership(words: Sequence[int]) -> NDArray[np.float64]:
    """Return a matrix [tokens, words] with 1 where the token belongs to the word."""
    return np.equal.outer(np.asarray(words), np.arange(max(words, default=NO_WORD) + 1)).astype(np.float64)
