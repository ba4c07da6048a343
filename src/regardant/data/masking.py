"""Masked tokens: those that a model has to name, and what it reads in their place.

Devlin et al. 2019, "BERT", https://arxiv.org/abs/1810.04805, section 3.1 and appendix A.1; drawn anew in every epoch
as in Liu et al. 2019, "RoBERTa", https://arxiv.org/abs/1907.11692, section 4.1.

Shape legend: B batch, T tokens.
"""

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from regardant.data.vocabulary import MASK, PAD, SPECIAL_TOKENS

MASKED_SHARE = 0.15
"""Share of an item's tokens that are targets."""

HIDDEN, REPLACED = 0.8, 0.1
"""Shares of the targets in whose place the model reads MASK, and a random token. The others stay as they are."""


def count_targets(lengths: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return how many tokens are targets in items of these lengths: one at least."""
    return np.maximum(1, np.rint(MASKED_SHARE * lengths)).astype(np.int64)


def mask_tokens(
    tokens: Int[Tensor, "B T"], vocab_size: int, generator: np.random.Generator
) -> tuple[Int[Tensor, "B T"], Int[Tensor, "B T"]]:
    """Return the tokens that a model reads, and the targets: the tokens it has to name, PAD elsewhere."""
    given = tokens.numpy()
    real = given != PAD
    ranks = np.where(real, generator.random(given.shape), 2.0).argsort(1).argsort(1)
    chosen = ranks < count_targets(real.sum(1))[:, None]
    fate = generator.random(given.shape)
    random_tokens = generator.integers(len(SPECIAL_TOKENS), vocab_size, given.shape)
    shown = np.where(chosen & (fate < HIDDEN), MASK, given)
    shown = np.where(chosen & (fate >= HIDDEN) & (fate < HIDDEN + REPLACED), random_tokens, shown)
    return torch.from_numpy(shown), torch.from_numpy(np.where(chosen, given, PAD))
