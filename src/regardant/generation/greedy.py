"""Greedy search: the likeliest token at every step. Beam search with one beam, without its bookkeeping.

Shape legend: B sentences still being written, S source length, t tokens written, V vocabulary.
"""

from dataclasses import dataclass, field
from typing import Self

import torch
from torch import Tensor

from regardant.data.vocabulary import EOS, SOS
from regardant.generation.config import GenerationConfig
from regardant.generation.constraints import Constraints
from regardant.generation.hypothesis import Hypothesis
from regardant.generation.steps import best_word, normalised, without
from regardant.generation.together import Found
from regardant.models.base import DecodingState, SequenceToSequenceModel


@dataclass
class GreedySearch:
    """Implements `together.Search`: one hypothesis for each sentence."""

    model: SequenceToSequenceModel = field(metadata={"rows": None})
    state: DecodingState
    constraints: Constraints
    sentences: Tensor
    """[B] int64, their numbers."""
    limits: Tensor
    """[B] int64, most tokens of a target, with EOS."""
    tokens: Tensor
    """[B, 1 + t] int64, SOS first."""
    totals: Tensor
    """[B] float32 log-probabilities."""
    length_penalty: float

    @classmethod
    def begin(
        cls,
        model: SequenceToSequenceModel,
        source: Tensor,
        sentences: Tensor,
        limits: Tensor,
        constraints: Constraints,
        config: GenerationConfig,
        capacity: int,
    ) -> Self:
        """For source [B, S]; no search that it may be joined with writes more than `capacity` tokens."""
        return cls(
            model=model,
            state=model.start(model.encode(source), 1, capacity),
            constraints=constraints,
            sentences=sentences,
            limits=limits,
            tokens=torch.full_like(sentences, SOS)[:, None],
            totals=torch.zeros(len(sentences), device=sentences.device),
            length_penalty=config.length_penalty,
        )

    @property
    def length(self) -> int:
        """Tokens written."""
        return self.tokens.shape[1] - 1

    @property
    def rows(self) -> int:
        """What a step multiplies."""
        return len(self.sentences)

    def step(self, found: Found) -> None:
        """Write a token more of all; those that are done leave."""
        log_probabilities = normalised(self.model.step(self.tokens[:, -1:], self.state))
        self.constraints.apply(log_probabilities, self.tokens[:, None, 1:])
        best, newest = best_word(log_probabilities[:, 0])
        self.totals = self.totals + best[:, 0]
        self.tokens = torch.cat([self.tokens, newest], dim=1)
        done = (newest[:, 0] == EOS) | (self.limits <= self.length) | ~self.totals.isfinite()  # the last is an error
        if done.any():
            self._take(done, found)

    def _take(self, done: Tensor, found: Found) -> None:
        written, totals = self.tokens[done, 1:].tolist(), self.totals[done].tolist()
        for sentence, tokens, total in zip(self.sentences[done].tolist(), written, totals, strict=True):
            found[sentence] = [Hypothesis.of(tokens, total, self.length_penalty)]
        going = without(done)
        self.sentences, self.limits, self.tokens, self.totals = (
            of_all.index_select(0, going)  # faster than an index
            for of_all in (self.sentences, self.limits, self.tokens, self.totals)
        )
        if len(going):
            self.constraints.keep(going)
            self.state.keep(going)
