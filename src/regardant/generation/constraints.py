"""Constraints that a user sets on the next token: a forced prefix, no repeated n-gram, a well-formed tree.

A constraint only removes continuations. The log-probabilities of the others stay unchanged, so that a hypothesis scores
the same here and under teacher forcing.

Shape legend: B sentences, W beams, t tokens written, V vocabulary, P longest prefix.
"""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from regardant.data.vocabulary import PAD
from regardant.generation.trees import TreeTokens


@dataclass
class Constraints:
    """Constraints of the sentences being written."""

    prefixes: Tensor
    """Forced first tokens, [B, P] int64, padded with PAD."""
    no_repeat_ngram_size: int
    limits: Tensor
    """Maximum number of tokens of each target, EOS counted, [B] int64."""
    trees: TreeTokens | None = None
    """Roles of tokens in a tree, if targets must be trees."""

    @classmethod
    def of(
        cls,
        prefixes: list[list[int]],
        no_repeat_ngram_size: int,
        limits: list[int],
        device: torch.device,
        trees: TreeTokens | None = None,
    ) -> Self:
        """Return the constraints of sentences with these prefixes and limits."""
        rows = [torch.tensor(prefix, dtype=torch.int64) for prefix in prefixes]
        padded = pad_sequence(rows, batch_first=True, padding_value=PAD).to(device)
        return cls(padded, no_repeat_ngram_size, torch.tensor(limits, device=device), trees)

    def keep(self, sentences: Tensor) -> None:
        """Drop all other sentences. [B'] int64 indices into the present B."""
        self.prefixes = self.prefixes.index_select(0, sentences)
        self.limits = self.limits.index_select(0, sentences)

    def apply(self, log_probabilities: Tensor, written: Tensor) -> None:
        """Set every continuation that is not allowed to minus infinity, in place.

        log_probabilities [B, W, V]; written [B, W, t], the tokens after SOS. A forced token passes even where
        another constraint would stop it.
        """
        position = written.shape[-1]
        if position >= self.prefixes.shape[1]:
            self._block(log_probabilities, written)
            return
        # PAD marks the sentences whose prefix is over; it is never written, so its probability is never used.
        forced = self.prefixes[:, position, None, None].expand(-1, written.shape[1], 1)  # [B, W, 1]
        given = log_probabilities.gather(-1, forced).masked_fill(forced == PAD, -torch.inf)
        self._block(log_probabilities, written)
        log_probabilities.masked_fill_(forced != PAD, -torch.inf)
        log_probabilities.scatter_(-1, forced, given)

    def _block(self, log_probabilities: Tensor, written: Tensor) -> None:
        block_repeated_ngrams(log_probabilities, written, self.no_repeat_ngram_size)
        if self.trees is not None:
            log_probabilities.masked_fill_(self.trees.forbidden(written, self.limits), -torch.inf)


def block_repeated_ngrams(log_probabilities: Tensor, written: Tensor, size: int) -> None:
    """Set to minus infinity, in place, each token that would write an n-gram of `size` a second time.

    log_probabilities [B, W, V]; written [B, W, t]. Size 0 blocks no token. PAD may be blocked as well.
    """
    length = written.shape[-1]
    if not size or length < size:
        return
    ngrams = written.unfold(-1, size, 1)  # [B, W, t - size + 1, size]
    begun = written[..., None, length - size + 1 :]  # [B, W, 1, size - 1]
    repeats = (ngrams[..., :-1] == begun).all(-1)
    log_probabilities.scatter_(-1, ngrams[..., -1].masked_fill(~repeats, PAD), -torch.inf)
