"""Job of tagging: batches whose targets are the labels of words, at the first token of each word."""

from functools import cached_property

from regardant.modalities import Codec
from regardant.modalities.words import WordsCodec, first_tokens
from regardant.tasks.items.data import EncodedItems, ItemBatch, ItemBatches, Planned
from regardant.tasks.items.job import ItemsJob


class TaggedBatches(ItemBatches):
    """The batches of a split. Targets are [B, T], IGNORED at tokens that begin no word."""

    codec: WordsCodec

    @cached_property
    def words(self) -> int:
        """Number of words that the model reads: those that begin within its length."""
        return sum(
            int(first_tokens(self.split.items[number][: self.max_length]).sum()) for number in range(len(self.split))
        )

    @property
    def targets_per_epoch(self) -> int:
        return self.words

    def load(self, planned: Planned) -> ItemBatch:
        texts = self.arrays(planned)
        targets = self.codec.targets(texts)
        return ItemBatch({"input": self.codec.collate(texts)}, targets, int((targets >= 0).sum()))


class TaggingJob(ItemsJob):
    """Job that trains on the labels of words."""

    def batches_of(self, split: EncodedItems, codec: Codec, *, batch_tokens: int, max_length: int) -> TaggedBatches:
        return TaggedBatches(split, codec, batch_tokens=batch_tokens, max_length=max_length, seed=self.seed)
