"""The text of a run as the trainer takes it: split, tokenised once, kept in the run folder."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from regardant.data.batching import EncodedPairs, PairBatch, padding_share, plan_batches
from regardant.data.parallel import MARKER, Splits
from regardant.data.tokenizers import Tokenizers
from regardant.errors import DataError
from regardant.tasks.take_over import run_of_vocabulary
from regardant.tasks.translation.config import TranslationConfig
from regardant.tasks.translation.learn.choices import count_words, vocab_size_for
from regardant.tasks.translation.learn.training_links import TrainingLinks, read_links


@dataclass(frozen=True)
class Corpus:
    """All that training reads."""

    splits: Splits
    tokenizers: Tokenizers
    train: EncodedPairs
    validation: EncodedPairs
    links: TrainingLinks | None = None
    """Word alignments of the training pairs, where a head is taught them."""


def prepare(config: TranslationConfig, run: Path, log: Callable[[str], None]) -> Corpus:
    """Read, clean, split and tokenise into RUN/data, or open what an earlier start left there."""
    folder = run / "data"
    text, vocabulary = folder / "text", run / "tokenizer.json"
    if (text / MARKER).is_file():
        splits = Splits.load(text)
    else:
        splits = config.data.read(text, config.seed)
        for line in splits.report.lines():
            log(line)
    if not vocabulary.is_file():
        _tokenizers(config, splits, log).save(vocabulary)
    tokenizers = Tokenizers.load(vocabulary)
    encoded = []
    for name, dataset in (("train", splits.train), ("validation", splits.validation)):
        path = folder / "tokens" / name
        encoded.append(EncodedPairs.load(path) if path.is_dir() else EncodedPairs.build(dataset, tokenizers, path))
    links = None if config.alignment_guidance is None else read_links(config.data, splits, text)
    train, validation = encoded
    return Corpus(splits, tokenizers, train, validation, links)


class Batches:
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
        """Keep a random part of the pairs with at most so many target tokens, but one pair at least."""
        order = np.random.default_rng(self.seed).permutation(len(self.kept))
        count = max(1, int(np.searchsorted(self.target_lengths[order].cumsum(), target_tokens, side="right")))
        chosen = np.sort(order[:count])
        self.kept, self.source_lengths = self.kept[chosen], self.source_lengths[chosen]
        self.target_lengths = self.target_lengths[chosen]

    def plan(self, epoch: int) -> list[Any]:
        """Indices into `kept`, a list a batch."""
        return plan_batches(
            self.source_lengths, self.target_lengths, batch_tokens=self.batch_tokens, seed=self.seed, epoch=epoch
        )

    def load(self, planned: Any) -> PairBatch:
        """One planned batch as tensors."""
        return self.pairs.batch(self.kept[planned])

    def padding(self) -> dict[str, float]:
        """The share of padding in the source and in the target blocks of the first epoch."""
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
        planned = sorted(self.plan(0), key=lambda b: int(self.target_lengths[b].max()))
        return planned[len(planned) // 2]


def _tokenizers(config: TranslationConfig, splits: Splits, log: Callable[[str], None]) -> Tokenizers:
    if (earlier := run_of_vocabulary(config.training)) is not None:
        log(f"vocabulary of {earlier}")
        return Tokenizers.load(earlier / "tokenizer.json")
    asked = config.tokenizer.vocab_size or vocab_size_for(count_words(splits))

    def column(name: str) -> Any:
        return (text for chunk in splits.train.iter(batch_size=10_000) for text in chunk[name])

    return Tokenizers.train(config.tokenizer, column("source"), column("target"), asked)
