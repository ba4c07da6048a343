"""BPE-dropout: random splits of a text into smaller pieces, drawn anew for each epoch.

Provilkov et al. 2020, https://arxiv.org/abs/1910.13267, skip merges at random while a word is merged, so that the
pieces left apart may merge with other neighbours. Here a finished piece is split again into the two pieces that it was
merged from, and so are these: each split refines the deterministic one, and other segmentations of the word are never
drawn. The result is a function of the seed, and costs little. Words unseen in training then consist of pieces seen in
training.

Shape legend: T tokens of a text, T2 of the same text in smaller pieces, V size of the vocabulary.
"""

import json
from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from regardant.data.tokenizers import Tokenizer
from regardant.errors import ConfigError

NOT_MERGED = -1


class BpeDropout:
    """Random split of pieces, each with probability `chance`."""

    def __init__(self, tokenizer: Tokenizer, chance: float) -> None:
        self.chance = chance
        self.merged_of = _merged_of(tokenizer)
        """[V, 2] ids of the two pieces that each piece was merged from; NOT_MERGED for the others."""

    def __call__(
        self, ids: Int[np.ndarray, " T"], seed: Sequence[int]
    ) -> tuple[Int[np.ndarray, " T2"], Int[np.ndarray, " T2"]]:
        """Return the smaller pieces of a text, and for each the index of the token that it is a part of."""
        chance = np.random.default_rng(seed).random
        tokens, fresh = np.arange(len(ids)), np.ones(len(ids), dtype=bool)
        while True:
            chosen = fresh & (self.merged_of[ids, 0] != NOT_MERGED) & (chance(len(ids)) < self.chance)
            if not chosen.any():
                return ids, tokens
            pairs = self.merged_of[ids[chosen]]
            counts = 1 + chosen
            first = (np.cumsum(counts) - counts)[chosen]
            ids, tokens, fresh = (np.repeat(one, counts) for one in (ids, tokens, chosen))
            ids[first], ids[first + 1] = pairs[:, 0], pairs[:, 1]


def _merged_of(tokenizer: Tokenizer) -> Int[np.ndarray, "V 2"]:
    """Return the ids of the two pieces each piece was merged from. Raises ConfigError for a kind without merges."""
    if tokenizer.config.kind not in ("bpe", "code"):
        raise ConfigError(
            f"bpe_dropout splits merged pieces, and a vocabulary of kind {tokenizer.config.kind} has none: set "
            "tokenizer.kind=bpe, or bpe_dropout=0"
        )
    model = json.loads(tokenizer.backend.to_str())["model"]
    merged_of = np.full((tokenizer.vocab_size, 2), NOT_MERGED)
    number = model["vocab"]
    for first, second in reversed(model["merges"]):  # the merge that is made first stays
        merged_of[number[first + second]] = number[first], number[second]
    return merged_of
