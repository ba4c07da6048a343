"""Beam search: at every step the W likeliest hypotheses of each sentence go on.

A step looks at the 2 W best continuations, of which at most W end. Those that end among the first W are put
aside with their penalised score; the first W that do not end go on, so that W are always live. A sentence is
done

- when W of its hypotheses have ended and the best live one, as it stands, scores no better than the N-th best of
  them: greedy search when W = 1. The count alone will not do: of a model that is sure of itself, W unlikely
  hypotheses end within a few tokens, long before the likely one;
- or before that, when N have ended and no live one can still become one of the N best. The sums only fall, so
  the most that a live one can reach is its present sum / limit ** length_penalty, and stopping there
  never changes the answer;
- or at its length limit, where the live fill the N best after those that ended, as not finished.

Done sentences leave the batch. The host waits for the device once a step, and again where a hypothesis ends.

Shape legend: B sentences still being written, S source length, W beams, N n best, t tokens written, V vocabulary.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor

from regardant.data.vocabulary import EOS, SOS
from regardant.generation.config import GenerationConfig
from regardant.generation.constraints import Constraints
from regardant.generation.hypothesis import Hypothesis, impossible, penalised
from regardant.generation.steps import likeliest, normalised, without
from regardant.generation.together import Found
from regardant.models.base import DecodingState, SequenceToSequenceModel


@dataclass
class BeamSearch:
    """Implements `together.Search`: the N best hypotheses for each sentence."""

    model: SequenceToSequenceModel = field(metadata={"rows": None})
    state: DecodingState
    constraints: Constraints
    sentences: Tensor
    """[B] int64, their numbers."""
    beams: "Beams"
    config: GenerationConfig = field(metadata={"rows": None})

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
        state = model.start(model.encode(source), config.beam_size, capacity)
        return cls(model, state, constraints, sentences, Beams.begin(limits, config), config)

    @property
    def length(self) -> int:
        """Tokens written."""
        return self.beams.tokens.shape[2] - 1

    @property
    def rows(self) -> int:
        """What a step multiplies."""
        return len(self.sentences) * self.config.beam_size

    def step(self, found: Found) -> None:
        """Write a token more of all; those that are done leave."""
        beams, before = self.beams, self.beams.tokens
        log_probabilities = normalised(self.model.step(before[..., -1], self.state))
        self.constraints.apply(log_probabilities, before[..., 1:])
        candidates = expand(beams.totals, log_probabilities, self.config.beam_size)
        ended = candidates.ended()
        parents = beams.advance(candidates, ended, self.config.length_penalty)
        done = beams.done(self.config)
        any_ended, any_done = torch.stack([ended.any(), done.any()]).tolist()
        if any_ended:
            for row, tokens, total in endings(candidates, ended, before):
                ending = Hypothesis.of(tokens, total, self.config.length_penalty)
                found.setdefault(int(self.sentences[row]), []).append(ending)
        if any_done:
            parents = parents.index_select(0, self._take(done, found))
        if len(parents):
            self.state.reorder(parents)

    def _take(self, done: Tensor, found: Found) -> Tensor:
        """The sentences that go on."""
        for row in done.nonzero().squeeze(1).tolist():
            sentence = int(self.sentences[row])
            found[sentence] = choose(found.get(sentence, []), self.beams, row, self.config)
        going = without(done)
        self.sentences = self.sentences.index_select(0, going)
        if len(going):
            self.beams.keep(going)
            self.constraints.keep(going)
            self.state.keep(going)
        return going


@dataclass(frozen=True)
class Candidates:
    """The 2 W best continuations of each sentence, best first: what they continue, and by which token."""

    totals: Tensor
    """[B, 2W] float32, minus infinity where there is no continuation."""
    parents: Tensor
    """[B, 2W] int64, a beam."""
    tokens: Tensor
    """[B, 2W] int64"""

    def ended(self) -> Tensor:
        """[B, W] bool: which of the first W are whole. An ending ranked lower has fallen out of the beam."""
        beam_size = self.tokens.shape[1] // 2
        return ((self.tokens == EOS) & (self.totals != -torch.inf))[:, :beam_size]


def expand(totals: Tensor, log_probabilities: Tensor, beam_size: int) -> Candidates:
    """From the totals of the live [B, L] and the next tokens' log-probabilities [B, L, V]; L is 1 at first, then W."""
    vocab_size = log_probabilities.shape[2]
    best, places = likeliest(totals, log_probabilities, 2 * beam_size)
    if missing := 2 * beam_size - best.shape[1]:  # words for a single beam
        best, places = F.pad(best, (0, missing), value=-torch.inf), F.pad(places, (0, missing))
    return Candidates(best, places // vocab_size, places % vocab_size)


def endings(candidates: Candidates, ended: Tensor, before: Tensor) -> Iterator[tuple[int, list[int], float]]:
    """Row, tokens after SOS and log-probability of each candidate that ended.

    ended [B, W] bool; before [B, W, 1 + t], the tokens before this step.
    """
    rows, ranks = ended.nonzero(as_tuple=True)
    tokens = before[rows, candidates.parents[rows, ranks], 1:].tolist()
    totals = candidates.totals[rows, ranks].tolist()
    for row, written, total in zip(rows.tolist(), tokens, totals, strict=True):
        yield row, [*written, EOS], total


@dataclass
class Beams:
    """The live hypotheses of the sentences being written, and what the stopping rule must know."""

    tokens: Tensor
    """[B, W, 1 + t] int64, SOS first. W is 1 as long as there is no more: all beams would be alike."""
    totals: Tensor
    """[B, W] float32 log-probabilities, best first; minus infinity where a beam is empty."""
    best_ended: Tensor
    """[B, N] float32, the best penalised scores that ended, best first; minus infinity until there are N."""
    num_ended: Tensor
    """[B] int64"""
    limits: Tensor
    """[B] int64, most tokens of a target, with EOS."""

    @classmethod
    def begin(cls, limits: Tensor, config: GenerationConfig) -> Self:
        totals = torch.zeros(len(limits), 1, device=limits.device)
        return cls(
            tokens=torch.full_like(totals, SOS, dtype=torch.int64)[..., None],
            totals=totals,
            best_ended=totals.new_full((len(limits), config.nbest), -torch.inf),
            num_ended=torch.zeros_like(limits),
            limits=limits,
        )

    def advance(self, candidates: Candidates, ended: Tensor, length_penalty: float) -> Tensor:
        """Take one step; returns the beam that each live hypothesis continues, [B, W]."""
        beam_size, length = candidates.tokens.shape[1] // 2, self.tokens.shape[2]  # SOS counts for this step's token
        scores = penalised(candidates.totals[:, :beam_size], length, length_penalty)
        scores = torch.cat([self.best_ended, scores.masked_fill(~ended, -torch.inf)], dim=1)
        self.best_ended = scores.topk(self.best_ended.shape[1]).values
        self.num_ended = self.num_ended + ended.sum(1)

        live = (candidates.tokens == EOS).int().argsort(dim=1, stable=True)[:, :beam_size]
        self.totals = candidates.totals.gather(1, live)
        # An empty beam is fed EOS: the token it happens to hold may be PAD, which a model need not read.
        newest = candidates.tokens.gather(1, live).masked_fill(self.totals == -torch.inf, EOS)
        parents = candidates.parents.gather(1, live)
        history = self.tokens.gather(1, parents[..., None].expand(-1, -1, length))
        self.tokens = torch.cat([history, newest[..., None]], dim=2)
        return parents

    def done(self, config: GenerationConfig) -> Tensor:
        """[B] bool: which sentences need no further step."""
        length = self.tokens.shape[2] - 1
        present = penalised(self.totals[:, 0], length, config.length_penalty)
        reachable = penalised(self.totals[:, 0], self.limits, config.length_penalty)
        return (
            ((self.num_ended >= config.beam_size) & (present <= self.best_ended[:, -1]))
            | ~(reachable > self.best_ended[:, -1])  # so also where every beam is empty, or NaN
            | (self.tokens.shape[2] > self.limits)
        )

    def keep(self, sentences: Tensor) -> None:
        """Go on with these sentences alone. [B'] int64 indices into the present B."""
        for name, of_all in vars(self).items():
            setattr(self, name, of_all.index_select(0, sentences))  # faster than an index


def choose(ended: list[Hypothesis], beams: Beams, row: int, config: GenerationConfig) -> list[Hypothesis]:
    """The N best of a sentence that is done: those that ended, by score, then the live."""
    best = sorted(ended, key=lambda hypothesis: hypothesis.score, reverse=True)[: config.nbest]
    if len(best) < config.nbest:  # at its limit, or every beam is empty
        live = zip(beams.tokens[row, :, 1:].tolist(), beams.totals[row].tolist(), strict=True)
        cut = [Hypothesis.of(tokens, total, config.length_penalty) for tokens, total in live if total != -torch.inf]
        best += cut[: config.nbest - len(best)]
    if not best:
        raise impossible()
    return best
