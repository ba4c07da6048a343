"""Supervision of one cross-attention head by given word alignments, while the model learns to translate.

    loss = loss of the words - weight x sum over target tokens t and source tokens s of G[t, s] log A[t, s]

A is the head's attention in the step that writes t, G the alignment: a row is spread evenly over the source tokens of
all words that t's word is linked to, and is zeros where there is none. Garg et al. 2019, "Jointly learning to align and
translate with Transformer models", https://arxiv.org/abs/1909.02074, section 4.2, without the second pass that sees the
whole target.

Shape legend: B sentences, H heads, T target tokens with EOS, S source tokens with EOS.
"""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from regardant.data.batching import PairBatch, sent
from regardant.data.tokenizers import Tokenizer
from regardant.errors import ConfigError
from regardant.evaluation.alignment import Link
from regardant.inspection import attention_places
from regardant.inspection.places import choose
from regardant.models import SequenceToSequenceModel
from regardant.models.heads import Loss
from regardant.tasks.sequence_to_sequence.job import SequenceToSequenceJob
from regardant.tasks.translation.config import AlignmentGuidance, TranslationConfig
from regardant.tasks.translation.learn.corpus import TextCorpus
from regardant.tasks.translation.look.alignment import words_of_tokens


@dataclass(frozen=True)
class GuidedBatch(PairBatch):
    """A batch with the alignments of its pairs."""

    alignment: Tensor
    """[B, T, S]: rows sum to one, or to zero where a token has no link."""

    def to(self, device: torch.device) -> Self:
        return type(self)(*(sent(block, device) for block in (self.source, self.target, self.alignment)))

    def part(self, number: int, parts: int) -> Self:
        """Return pairs `number::parts`, the shard of one rank. Empty if there are fewer pairs."""
        rows = slice(number, None, parts)
        return type(self)(self.source[rows], self.target[rows], self.alignment[rows])


class Guidance:
    """Loss of the alignments, added to that of the words. Raises ConfigError for a layer that the model lacks."""

    def __init__(self, config: AlignmentGuidance, corpus: TextCorpus, model: SequenceToSequenceModel) -> None:
        self.config, self.corpus = config, corpus
        attentions = attention_places(model).get("decoder.cross_attention", [])
        if not -len(attentions) <= config.layer < len(attentions):
            problem = (
                f"has {len(attentions)} layers of it: choose one of them" if attentions else "has none: leave it out"
            )
            raise ConfigError(
                f"alignment_guidance.layer {config.layer} is a layer of cross-attention, and the model {problem}"
            )
        self.place = attentions[config.layer]
        ((site, _),) = choose(model, f"{self.place}.weights")
        self.mechanism = site.module

    def batch(self, pairs: PairBatch, indices: Sequence[int]) -> GuidedBatch:
        """Return the batch of these training pairs with their alignments."""
        links, tokenizers = self.corpus.links, self.corpus.tokenizers
        assert links is not None
        texts = self.corpus.splits.train[[int(index) for index in indices]]
        alignment = torch.zeros(len(pairs.source), pairs.target.shape[1] - 1, pairs.source.shape[1])
        for row, (index, source, target) in enumerate(zip(indices, texts["source"], texts["target"], strict=True)):
            sides: list[tuple[Tokenizer, str]] = [(tokenizers.source, source), (tokenizers.target, target)]
            words = [words_of_tokens(tokenizer, text, links.spans(text)) for tokenizer, text in sides]
            found = token_alignment(links.of(int(index)), *words)
            alignment[row, : found.shape[0], : found.shape[1]] = torch.from_numpy(found)
        return GuidedBatch(pairs.source, pairs.target, alignment)

    def loss(self, batch: PairBatch, run: Callable[[], Loss]) -> Loss:
        """Return the loss that `run` returns, with that of the alignments added to its total.

        Raises ConfigError for a head that the layer does not have.
        """
        assert isinstance(batch, GuidedBatch)
        rows: list[Tensor] = []

        def listen(mechanism: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
            q, k, _, view = inputs
            rows.append(self._of_head(mechanism.weights(q, k, view)))

        with self.mechanism.register_forward_hook(listen):
            loss = run()
        weights = torch.cat(rows, 1).float()  # a recurrent decoder attends step by step
        nats = -(batch.alignment * weights.clamp_min(torch.finfo(weights.dtype).tiny).log()).sum()
        return loss._replace(total=loss.total + self.config.weight * nats)

    def _of_head(self, weights: Tensor) -> Tensor:
        if self.config.head >= weights.shape[1]:
            raise ConfigError(
                f"alignment_guidance.head {self.config.head} counts from 0, and {self.place} has "
                f"{weights.shape[1]} heads: choose one of them"
            )
        return weights[:, self.config.head]


class GuidedJob(SequenceToSequenceJob):
    """The job of a translator with alignment guidance."""

    def __init__(self, config: TranslationConfig, corpus: TextCorpus, model: SequenceToSequenceModel) -> None:
        super().__init__(config, corpus, model)
        assert config.alignment_guidance is not None
        self.guidance = Guidance(config.alignment_guidance, corpus, model)

    def load(self, planned: Any) -> GuidedBatch:
        return self.guidance.batch(super().load(planned), self.batches.kept[planned])

    def loss(self, model: nn.Module, batch: PairBatch, device: torch.device) -> Loss:
        batch = batch.to(device)
        return self.guidance.loss(batch, lambda: super(GuidedJob, self).loss(model, batch, device))


def token_alignment(links: Set[Link], source_words: Sequence[int], target_words: Sequence[int]) -> NDArray[np.float32]:
    """Return links of words as the target distribution [T, S] of each target token's weight over source tokens.

    `source_words` and `target_words` give each token's word, NO_WORD (-1) for none, as `words_of_tokens` does.
    """
    sizes = [
        max([*words, *ends, 0]) + 2 for words, ends in zip((target_words, source_words), _ends(links), strict=True)
    ]
    linked = np.zeros(sizes, dtype=np.float32)  # the last row and column are of tokens without a word
    for source, target in links:
        linked[target, source] = 1
    tokens = linked[np.ix_(target_words, source_words)]
    return tokens / np.maximum(tokens.sum(1, keepdims=True), 1)


def _ends(links: Set[Link]) -> tuple[list[int], list[int]]:
    """Return the target words and the source words of links."""
    return [target for _, target in links], [source for source, _ in links]
