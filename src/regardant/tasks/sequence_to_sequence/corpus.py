"""Encoded pairs of a source and a text, and their batches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regardant.data.batching import EncodedPairs, PairBatch, padding_share, plan_batches
from regardant.data.tokenizers import Tokenizer
from regardant.errors import DataError
from regardant.modalities import Codec


@dataclass(frozen=True)
class Corpus:
    """Encoded splits of a run, with their codec and tokenizer."""

    codec: Codec
    """The codec of sources."""
    tokenizer: Tokenizer
    """The tokenizer of texts."""
    train: EncodedPairs
    validation: EncodedPairs
    sources: Sequence[str]
    """A name of each validation source for people: the text itself, or a number."""
    references: Sequence[str]
    """The text of each validation source."""
    tests: Mapping[str, int]
    """Number of pairs of each test set."""
    fingerprints: dict[str, str]
    """Fingerprints of the pairs, by split."""

    @property
    def size(self) -> int:
        """Number of training pairs, from which the size of a model is chosen."""
        return len(self.train)


class SequencePairBatches:
    """The training batches of every epoch. Pairs longer than the model are left out, and counted."""

    def __init__(self, pairs: EncodedPairs, *, batch_tokens: int, max_length: int, seed: int) -> None:
        self.longest = longest = min(max_length, batch_tokens)
        fits = (pairs.source_lengths <= longest) & (pairs.target_lengths <= longest)
        self.pairs, self.batch_tokens, self.seed = pairs, batch_tokens, seed
        self.kept = np.flatnonzero(fits)
        self.too_long = len(pairs) - len(self.kept)
        if not len(self.kept):
            raise DataError(
                f"none of the {len(pairs):,} pairs fits {longest} tokens: raise model.max_length or batch_tokens"
            )
        self.source_lengths, self.target_lengths = pairs.source_lengths[fits], pairs.target_lengths[fits]

    @property
    def targets_per_epoch(self) -> int:
        """Number of target tokens in an epoch, with EOS."""
        return int(self.target_lengths.sum())

    def thin(self, target_tokens: int) -> None:
        """Keep a random part of the pairs with at most `target_tokens` in all, but one pair at least."""
        order = np.random.default_rng(self.seed).permutation(len(self.kept))
        count = max(1, int(np.searchsorted(self.target_lengths[order].cumsum(), target_tokens, side="right")))
        chosen = np.sort(order[:count])
        self.kept, self.source_lengths = self.kept[chosen], self.source_lengths[chosen]
        self.target_lengths = self.target_lengths[chosen]

    def plan(self, epoch: int) -> list[Any]:
        """Return the batches of an epoch: lists of indices into `kept`."""
        return plan_batches(
            self.source_lengths, self.target_lengths, batch_tokens=self.batch_tokens, seed=self.seed, epoch=epoch
        )

    def load(self, planned: Any) -> PairBatch:
        """Return one planned batch as tensors."""
        return self.pairs.batch(self.kept[planned])

    def padding(self) -> dict[str, float]:
        """Return the share of padding in the source and in the target blocks of the first epoch."""
        shares = padding_share(self.plan(0), self.source_lengths, self.target_lengths)
        return dict(zip(("source", "target"), shares, strict=True))

    def largest_batches(self) -> list[Any]:
        """Return the planned batches one of which takes most memory: those with most elements in the source, in the
        target, on both sides, and with most pairs of elements, each of which has an attention weight."""
        planned = self.plan(0)
        rows = np.array([len(batch) for batch in planned])
        source, target = (
            np.array([int(lengths[batch].max()) for batch in planned])
            for lengths in (self.source_lengths, self.target_lengths)
        )
        both = source + target
        sizes = (rows * source, rows * target, rows * both, rows * both**2)
        return [planned[number] for number in sorted({int(size.argmax()) for size in sizes})]

    def sample_batches(self) -> list[Any]:
        """Return three planned batches: of short, of median and of long pairs."""
        planned = sorted(self.plan(0), key=lambda b: int(self.target_lengths[b].max()))
        return [planned[len(planned) * quarter // 4] for quarter in (1, 2, 3)]

    def median_batch(self) -> Any:
        """Return a planned batch of median length."""
        return self.sample_batches()[1]
