"""Beam search: every step continues the W likeliest hypotheses of each sentence.

A step considers the 2 W best continuations, of which at most W end. Those that end among the first W are set
aside with their length-penalised score; the first W that do not end continue, so that W are always live. A sentence is
done

- when W of its hypotheses have ended and the present score of the best live one is no better than the N-th best of
  them: greedy search when W = 1. The count alone is not enough: with a confident model, W unlikely hypotheses end
  within a few tokens, long before the likely one;
- or earlier, when N have ended and no live one can still become one of the N best. Log-probabilities only fall, so a
  live one scores at most its present log-probability / limit ** length_penalty, and stopping there never changes the
  result;
- or at its length limit, where live hypotheses, as unfinished, fill up the N best after those that ended.

Done sentences leave the batch. The host waits for the device twice a step, and again where a hypothesis ends.

Shape legend: B sentences still being written, S source length, W beams, N n best, t tokens written, V vocabulary.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor

from regardant.data.vocabulary import EOS, NEVER_WRITTEN, SOS
from regardant.generation.config import GenerationConfig
from regardant.generation.constraints import Constraints
from regardant.generation.length_penalty import Hypothesis, divisor, impossible, length_penalised
from regardant.models.base import JoinableState, SequenceToSequenceModel

LANES = 64
"""Divisor of the number of groups of words: with other numbers their maxima take twice as long."""


class Search:
    """Base of a search for the targets of a batch, one token a step."""

    def __init__(
        self,
        model: SequenceToSequenceModel,
        source: Any,
        limits: list[int],
        constraints: Constraints | None,
        config: GenerationConfig,
    ) -> None:
        """Encode a batch of sources [B, ...] and begin; `limits` are maximum target lengths in tokens, EOS counted."""
        self.model, self.constraints, self.config = model, constraints, config
        self.state = model.start(model.encode(source), config.beam_size, max(limits))
        self.size = len(limits)
        """Maximum number of sentences at a step."""
        self.sentences = torch.arange(len(source), device=source.device)
        """Numbers of the sentences still being written, [B] int64."""
        self.never_written = torch.tensor(NEVER_WRITTEN, device=source.device)
        self.found: dict[int, list[Hypothesis]] = {}
        """Hypotheses by sentence number: the best of a sentence that is done, else those that have ended so far."""
        self.begin(torch.tensor(limits, device=source.device))

    def begin(self, limits: Tensor) -> None:
        """Initialise the hypotheses of each sentence. limits [B] int64."""
        raise NotImplementedError

    def step(self) -> None:
        """Write one more token of each sentence, and drop the sentences that are done."""
        raise NotImplementedError

    @property
    def length(self) -> int:
        """Number of tokens of each target so far, SOS counted."""
        raise NotImplementedError

    @property
    def joins(self) -> bool:
        """True if this search can be joined with another of the same kind, model and configuration."""
        return self.constraints is None and isinstance(self.state, JoinableState) and self.state.joins

    def takes(self, other: Self) -> bool:
        """Return whether `join` can take another search. `joins` must be true of both."""
        size = len(self.sentences) + len(other.sentences)
        return self.length == other.length and size <= min(self.size, other.size)

    def join(self, other: Self) -> None:
        """Take over the sentences and hypotheses of another search. Sentence numbers must not overlap."""
        self.size = min(self.size, other.size)
        self.sentences = torch.cat([self.sentences, other.sentences])
        self.found.update(other.found)
        self.state.join(other.state)

    def allowed(self, logits: Tensor, written: Tensor) -> Tensor:
        """Return log-probabilities [B, W, V] in float32, minus infinity where a token may not follow the written ones.

        They overwrite logits that are in float32: no tensor of this size is allocated.
        """
        logits = logits.float().contiguous()  # beams may be one vector, repeated by `expand`
        log_probabilities = torch.log_softmax(logits, dim=-1, out=logits)
        log_probabilities.index_fill_(-1, self.never_written, -torch.inf)
        if self.constraints is not None:
            self.constraints.apply(log_probabilities, written)
        return log_probabilities


class BeamSearch(Search):
    """Search for the N best hypotheses of each sentence."""

    beams: "Beams"

    def begin(self, limits: Tensor) -> None:
        self.beams = Beams.begin(limits, self.config)

    @property
    def length(self) -> int:
        return self.beams.tokens.shape[2]

    def join(self, other: Self) -> None:
        super().join(other)
        self.beams.join(other.beams)

    def step(self) -> None:
        beams, before = self.beams, self.beams.tokens
        log_probabilities = self.allowed(self.model.step(before[..., -1], self.state), before[..., 1:])
        candidates = expand(beams.totals, log_probabilities, self.config.beam_size)
        ended = candidates.ended()
        parents = beams.advance(candidates, ended, self.config.length_penalty)
        if ended is not None:
            for row, tokens, total in endings(candidates, ended, before):
                ending = Hypothesis.of(tokens, total, self.config.length_penalty)
                self.found.setdefault(int(self.sentences[row]), []).append(ending)
        done = beams.done(self.config) if self.found else beams.stopped()
        if done.any():
            parents = parents.index_select(0, self._drop(done))
        if len(parents):
            self.state.reorder(parents)

    def _drop(self, done: Tensor) -> Tensor:
        """Drop sentences that are done, and return the indices of the others."""
        for row in done.nonzero().squeeze(1).tolist():
            sentence = int(self.sentences[row])
            self.found[sentence] = choose(self.found.get(sentence, []), self.beams, row, self.config)
        going = without(done)
        self.sentences = self.sentences.index_select(0, going)
        if len(going):
            self.beams.keep(going)
            if self.constraints is not None:
                self.constraints.keep(going)
            self.state.keep(going)
        return going


@dataclass(frozen=True)
class Candidates:
    """Set of the 2 W best continuations of each sentence, best first: a beam and its next token."""

    totals: Tensor
    """Log-probabilities, [B, 2W] float32; minus infinity where there is no continuation."""
    parents: Tensor
    """Beams that are continued, [B, 2W] int64."""
    tokens: Tensor
    """Next tokens, [B, 2W] int64."""

    def ended(self) -> Tensor | None:
        """Return which of the first W have ended, [B, W] bool. An ending ranked lower has fallen out of the beam.

        None: no candidate of any rank is an ending.
        """
        endings, beam_size = self.tokens == EOS, self.tokens.shape[1] // 2
        return (endings & (self.totals != -torch.inf))[:, :beam_size] if endings.any() else None


def expand(totals: Tensor, log_probabilities: Tensor, beam_size: int) -> Candidates:
    """Return the best continuations of live hypotheses, from their totals [B, L] and the log-probabilities [B, L, V] of
    next tokens. L is 1 at the first step, then W."""
    vocab_size = log_probabilities.shape[2]
    best, places = likeliest(totals, log_probabilities, 2 * beam_size)
    if missing := 2 * beam_size - best.shape[1]:  # fewer words than 2 W, for a single beam
        best, places = F.pad(best, (0, missing), value=-torch.inf), F.pad(places, (0, missing))
    return Candidates(best, places // vocab_size, places % vocab_size)


def endings(candidates: Candidates, ended: Tensor, before: Tensor) -> Iterator[tuple[int, list[int], float]]:
    """Yield row, tokens after SOS and log-probability of each candidate that ended.

    ended [B, W] bool; before [B, W, 1 + t], the tokens before this step.
    """
    rows, ranks = ended.nonzero(as_tuple=True)
    tokens = before[rows, candidates.parents[rows, ranks], 1:].tolist()
    totals = candidates.totals[rows, ranks].tolist()
    for row, written, total in zip(rows.tolist(), tokens, totals, strict=True):
        yield row, [*written, EOS], total


@dataclass
class Beams:
    """Live hypotheses of the sentences being written, and the values of the stopping rule."""

    tokens: Tensor
    """Written tokens, [B, W, 1 + t] int64, SOS first. W is 1 at the first step, where all beams would be alike."""
    totals: Tensor
    """Log-probabilities, [B, W] float32, best first; minus infinity where a beam is empty."""
    best_ended: Tensor
    """Length-penalised scores of the best that ended, [B, N] float32, best first; minus infinity until there are N."""
    num_ended: Tensor
    """Number of hypotheses that have ended, [B] int64."""
    limits: Tensor
    """Maximum number of tokens of a target, EOS counted, [B] int64."""
    largest_divisor: Tensor
    """Divisor of the log-probability of a target of `limits` tokens, [B] float32."""

    @classmethod
    def begin(cls, limits: Tensor, config: GenerationConfig) -> Self:
        totals = torch.zeros(len(limits), 1, device=limits.device)
        return cls(
            tokens=torch.full_like(totals, SOS, dtype=torch.int64)[..., None],
            totals=totals,
            best_ended=totals.new_full((len(limits), config.nbest), -torch.inf),
            num_ended=torch.zeros_like(limits),
            limits=limits,
            largest_divisor=divisor(limits, config.length_penalty),
        )

    def advance(self, candidates: Candidates, ended: Tensor | None, length_penalty: float) -> Tensor:
        """Append a token to each live hypothesis; return the beam that each hypothesis continues, [B, W]."""
        beam_size, length = candidates.tokens.shape[1] // 2, self.tokens.shape[2]  # SOS counts for this step's token
        if ended is None:  # as in most steps: the first W go on as they are
            self.totals, newest, parents = (
                of_all[:, :beam_size] for of_all in (candidates.totals, candidates.tokens, candidates.parents)
            )
        else:
            scores = length_penalised(candidates.totals[:, :beam_size], length, length_penalty)
            scores = torch.cat([self.best_ended, scores.masked_fill(~ended, -torch.inf)], dim=1)
            self.best_ended = scores.topk(self.best_ended.shape[1]).values
            self.num_ended = self.num_ended + ended.sum(1)
            live = (candidates.tokens == EOS).int().argsort(dim=1, stable=True)[:, :beam_size]
            self.totals, newest, parents = (
                of_all.gather(1, live) for of_all in (candidates.totals, candidates.tokens, candidates.parents)
            )
        # An empty beam is fed EOS: the token it happens to hold may be PAD, which a model need not read.
        newest = newest.masked_fill(self.totals == -torch.inf, EOS)
        history = self.tokens.gather(1, parents[..., None].expand(-1, -1, length))
        self.tokens = torch.cat([history, newest[..., None]], dim=2)
        return parents

    def stopped(self) -> Tensor:
        """Return the result of `done` while no hypothesis has ended: every beam is empty, or NaN, or at the limit."""
        return ~(self.totals[:, 0] > -torch.inf) | (self.tokens.shape[2] > self.limits)

    def done(self, config: GenerationConfig) -> Tensor:
        """Return which sentences need no further step, [B] bool."""
        length = self.tokens.shape[2] - 1
        present = length_penalised(self.totals[:, 0], length, config.length_penalty)
        reachable = self.totals[:, 0] / self.largest_divisor
        return (
            ((self.num_ended >= config.beam_size) & (present <= self.best_ended[:, -1]))
            | ~(reachable > self.best_ended[:, -1])  # so also where every beam is empty, or NaN
            | (self.tokens.shape[2] > self.limits)
        )

    def keep(self, sentences: Tensor) -> None:
        """Drop all other sentences. [B'] int64 indices into the present B."""
        for name, of_all in vars(self).items():
            setattr(self, name, of_all.index_select(0, sentences))  # faster than an index

    def join(self, other: Self) -> None:
        """Append the beams of other sentences, of the same length in tokens."""
        for name, mine in vars(self).items():
            setattr(self, name, torch.cat([mine, getattr(other, name)]))


def choose(ended: list[Hypothesis], beams: Beams, row: int, config: GenerationConfig) -> list[Hypothesis]:
    """Return the N best hypotheses of a sentence that is done: those that ended, by score, then the live."""
    best = sorted(ended, key=lambda hypothesis: hypothesis.score, reverse=True)[: config.nbest]
    if len(best) < config.nbest:  # at its limit, or every beam is empty
        live = zip(beams.tokens[row, :, 1:].tolist(), beams.totals[row].tolist(), strict=True)
        cut = [Hypothesis.of(tokens, total, config.length_penalty) for tokens, total in live if total != -torch.inf]
        best += cut[: config.nbest - len(best)]
    if not best:
        raise impossible()
    return best


def likeliest(totals: Tensor, log_probabilities: Tensor, wanted: int) -> tuple[Tensor, Tensor]:
    """Return totals and indices into W x V of the `wanted` best continuations of each sentence, or all, best first.

    [B, wanted] each, from totals [B, W] and log-probabilities [B, W, V]. The result is that of `topk` over the sums,
    which would scan every word for each of the best. The best are in the groups of words with the largest maxima, and
    maxima are computed at memory bandwidth.
    """
    beam_size, vocab_size = log_probabilities.shape[1:]
    wanted = min(wanted, beam_size * vocab_size)
    grouped, ungrouped = groups_of_words(beam_size, vocab_size, wanted, log_probabilities.device)
    size, count = grouped.shape[1], len(grouped) // beam_size
    maxima = log_probabilities[..., : size * count].unflatten(2, (size, count)).amax(2) + totals[..., None]
    groups = maxima.flatten(1).topk(min(wanted, len(grouped)), sorted=False).indices
    places = torch.cat([F.embedding(groups, grouped).flatten(1), ungrouped.expand(len(groups), -1)], 1)
    sums = log_probabilities.flatten(1).gather(1, places) + totals.gather(1, places // vocab_size)
    best, chosen = sums.topk(wanted)
    return best, places.gather(1, chosen)


@lru_cache(maxsize=8)  # of two searches at a time, each with a first step of one beam
def groups_of_words(beam_size: int, vocab_size: int, wanted: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the indices into W x V of the words of each group, and of ungrouped words, for the `wanted` best.

    [W * groups of a beam, words of a group] and [W * others]. Sizes are balanced: there are about as many groups as
    words in the `wanted` best groups.
    """
    about = vocab_size // math.isqrt(beam_size * vocab_size // wanted)
    count = min(-(-about // LANES) * LANES, vocab_size)
    size = vocab_size // count  # group g of a beam: words g, g + count, ...
    places = torch.arange(beam_size * vocab_size, device=device).view(beam_size, vocab_size)
    grouped = places[:, : size * count].view(beam_size, size, count).transpose(1, 2)
    return grouped.reshape(beam_size * count, size), places[:, size * count :].flatten()


def without(done: Tensor) -> Tensor:
    """Return the indices of sentences that are not done. The last ones fill the places of done ones: few rows move."""
    count = len(done) - int(done.sum())
    going = torch.arange(count, device=done.device)
    going[done[:count]] = (~done[count:]).nonzero().squeeze(1) + count
    return going
