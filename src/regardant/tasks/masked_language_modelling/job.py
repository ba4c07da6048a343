"""Job of masked language modelling: batches whose tokens are masked anew in every epoch."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from torch import nn

from regardant.data.masking import Masking, WordStarts, count_targets, mask_tokens
from regardant.data.vocabulary import PAD
from regardant.evaluation.masked_tokens import score_masked_tokens
from regardant.modalities import Codec
from regardant.modalities.text import TextCodec
from regardant.models import Model
from regardant.tasks.items.data import EncodedItems, ItemBatch, ItemBatches, Planned
from regardant.tasks.items.job import ItemsJob


class MaskedBatch(ItemBatch):
    """Texts with masked tokens. The targets are the masked tokens, PAD elsewhere."""

    def part(self, number: int, parts: int) -> Self:
        share = super().part(number, parts)
        return replace(share, count=int((share.targets != PAD).sum()))


class MaskedBatches(ItemBatches):
    """The batches of a split. Masks are a pure function of the seed, the epoch and the number of the batch, so that
    all processes mask alike, and a resumed run as an uninterrupted one."""

    codec: TextCodec

    def __init__(
        self,
        split: EncodedItems,
        codec: TextCodec,
        *,
        masking: Masking,
        batch_tokens: int,
        max_length: int,
        seed: int,
    ) -> None:
        super().__init__(split, codec, batch_tokens=batch_tokens, max_length=max_length, seed=seed)
        self.masking: Masking = masking
        self.starts = None if masking == "tokens" else WordStarts(codec.tokenizer)

    @property
    def targets_per_epoch(self) -> int:
        before, after = self.codec.tokenizer.frame
        return int(count_targets(self.lengths - len(before) - len(after)).sum())

    def load(self, planned: Planned) -> MaskedBatch:
        tokens = self.codec.collate(self.arrays(planned))
        generator = np.random.default_rng([self.seed, planned.epoch, planned.number])
        starts = None if self.starts is None else self.starts(tokens.numpy())
        shown, targets = mask_tokens(tokens, self.codec.tokenizer.vocab_size, generator, self.masking, starts)
        return MaskedBatch({"input": shown}, targets, int((targets != PAD).sum()))


class MaskedLanguageModellingJob(ItemsJob):
    """Job that validates on a fixed masking of the validation texts, that of epoch 0."""

    def __init__(self, config: Any, codec: TextCodec, splits: dict[str, EncodedItems], model: Model) -> None:
        self.masking: Masking = config.masking
        super().__init__(config, codec, splits, model, unit="masked token")

    def batches_of(self, split: EncodedItems, codec: Codec, *, batch_tokens: int, max_length: int) -> MaskedBatches:
        assert isinstance(codec, TextCodec)
        return MaskedBatches(
            split,
            codec,
            masking=self.masking,
            batch_tokens=batch_tokens,
            max_length=max_length,
            seed=self.seed,
        )

    def warm_up_validation(self, device: torch.device) -> None:
        self._score(self.model, self.validation.largest_batches(), device)

    def validate(self, model: nn.Module, device: torch.device) -> dict[str, float]:
        return self._score(model, self.validation.plan(0), device)

    def _score(self, model: nn.Module, planned: Iterable[Planned], device: torch.device) -> dict[str, float]:
        assert isinstance(model, Model)
        scores = score_masked_tokens(model, map(self.validation.load, planned), device)
        return {"loss": scores.loss, "perplexity": scores.perplexity, "accuracy": scores.accuracy}
