"""A trained translator: lines in, lines out."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch

from regardant.data.batching import PairBatch, collate
from regardant.data.tokenizers import Tokenizer, Tokenizers
from regardant.data.vocabulary import EOS, MASK, UNK
from regardant.errors import DataError
from regardant.generation.config import GenerationConfig
from regardant.generation.length_penalty import Hypothesis
from regardant.generation.search import ModelSearcher, Searcher, batches_of_like_length
from regardant.generation.teacher_forcing import score_pairs
from regardant.models import SequenceToSequenceModel

SENTENCE_END = re.compile(r"(?<=[.!?…。！？])(?=\s)")
WORD_END = re.compile(r"(?<=\S)(?=\s)")
"""Both leave the space with what follows, as the pieces of a tokenizer do."""
LINE_BREAK = re.compile(r"[\r\n]+")

SCORED_TOKENS = 2048
"""Of a batch that is scored: all its logits are held at once."""


@dataclass(frozen=True)
class Candidate:
    """One proposed translation."""

    text: str
    """One line."""
    score: float
    """Log-probability / length ** length_penalty, in nats; the mean over its pieces for a line that was split."""
    tokens: list[str]
    """The pieces the text is made of, as the vocabulary writes them."""


@dataclass(frozen=True)
class Translation:
    """What became of one line."""

    source: str
    candidates: list[Candidate]
    """Best first."""
    pieces: int = 1
    """How many parts a line longer than the model was translated in."""
    finished: bool = True
    """False: stopped at the length limit before the translation ended."""
    notes: list[str] = field(default_factory=list)
    """What the user should know: a line that was split, a translation that did not end."""

    @property
    def text(self) -> str:
        """The best translation."""
        return self.candidates[0].text

    @property
    def score(self) -> float:
        """Its score."""
        return self.candidates[0].score

    @property
    def tokens(self) -> list[str]:
        """Its pieces."""
        return self.candidates[0].tokens


class Translator:
    """A model with its tokenizers, and what searches for translations: the model itself unless another is given.

    Makes no difference between one line and many.
    """

    def __init__(
        self,
        model: SequenceToSequenceModel,
        tokenizers: Tokenizers,
        device: torch.device,
        searcher: Searcher | None = None,
    ) -> None:
        self.model, self.tokenizers, self.device = model.eval().to(device), tokenizers, device
        self.searcher = searcher or ModelSearcher(model, device)
        self.max_length = model.config.max_length

    def translate(
        self, lines: Sequence[str], generation: GenerationConfig, prefixes: Sequence[str] | None = None
    ) -> list[Translation]:
        """A translation a line, in their order; a blank line gives an empty one.

        Each prefix is how its line's translation must begin.
        """
        parts = [self._parts(line) for line in lines]
        sources = [[*ids, EOS] for part in parts for ids in part]
        starts: list[list[int]] = []
        for number, part in enumerate(parts):
            forced = self._forced(prefixes[number]) if prefixes is not None else []
            starts += [[] if index else forced for index in range(len(part))]
        found = iter(self.searcher.search(sources, starts, generation, self.max_length - 1))
        return [self._translation(line, [next(found) for _ in part]) for line, part in zip(lines, parts, strict=True)]

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[float]:
        """Log-probability of each target given its source, in nats, EOS included. DataError as for `pairs`."""
        source_ids, target_ids = self._encode(sources, targets)
        lengths = [max(map(len, both)) + 1 for both in zip(source_ids, target_ids, strict=True)]
        scores = [0.0] * len(lengths)
        for rows in batches_of_like_length(lengths, SCORED_TOKENS):
            batch = collate([source_ids[row] for row in rows], [target_ids[row] for row in rows]).to(self.device)
            with torch.inference_mode():
                found = score_pairs(self.model, batch.source, batch.target).tolist()
            for row, value in zip(rows, found, strict=True):
                scores[row] = value
        return scores

    def pairs(self, sources: Sequence[str], targets: Sequence[str], first_line: int = 1) -> PairBatch:
        """Sentence pairs as one batch on the model's device. Raises DataError for one longer than the model."""
        return collate(*self._encode(sources, targets, first_line)).to(self.device)

    def _encode(self, sources: Sequence[str], targets: Sequence[str], first_line: int = 1) -> list[list[list[int]]]:
        if len(sources) != len(targets):
            raise DataError(f"{len(sources)} sources and {len(targets)} targets: give as many of each")
        both_sides = ((self.tokenizers.source, sources), (self.tokenizers.target, targets))
        encoded = [tokenizer.encode_batch(list(texts)) for tokenizer, texts in both_sides]
        for number, both in enumerate(zip(*encoded, strict=True), first_line):
            longest = max(map(len, both)) + 1
            if longest > self.max_length:
                raise DataError(f"line {number} has {longest} tokens, the model takes {self.max_length}: shorten it")
        return encoded

    def _forced(self, prefix: str) -> list[int]:
        ids = self.tokenizers.target.encode(prefix)
        if not {UNK, MASK}.isdisjoint(ids):
            raise DataError(f"the prefix {prefix!r} has words or signs that the vocabulary lacks: give another one")
        return ids

    def _parts(self, line: str) -> list[list[int]]:
        """The ids of a line, in as many parts as the model's length asks: cut between sentences, then words."""
        tokenizer = self.tokenizers.source
        ids = tokenizer.encode(line) if line.strip() else []
        if not ids or len(ids) < self.max_length:
            return [ids] if ids else []
        return list(_pack(line, tokenizer, self.max_length - 1))

    def _translation(self, line: str, parts: list[list[Hypothesis]]) -> Translation:
        if not parts:
            return Translation(line, [Candidate("", 0.0, [])], pieces=0)
        notes = []
        if len(parts) > 1:
            notes.append(f"longer than the model's {self.max_length} tokens, translated in {len(parts)} parts")
        finished = all(hypotheses[0].finished for hypotheses in parts)
        if not finished:
            notes.append("stopped at the length limit before the translation ended")
        if len(parts) == 1:
            candidates = [self._candidate([hypothesis]) for hypothesis in parts[0]]
        else:
            candidates = [self._candidate([hypotheses[0] for hypotheses in parts])]
        return Translation(line, candidates, len(parts), finished, notes)

    def _candidate(self, parts: list[Hypothesis]) -> Candidate:
        target = self.tokenizers.target
        text = LINE_BREAK.sub(" ", " ".join(target.decode(part.tokens) for part in parts))
        tokens = [token for part in parts for token in target.tokens(part.tokens)]
        return Candidate(text, sum(part.score for part in parts) / len(parts), tokens)


def _pack(line: str, tokenizer: Tokenizer, longest: int) -> Iterator[list[int]]:
    """Whole sentences together while they fit; a sentence that does not fit, by words; a word, by tokens."""
    waiting: list[int] = []
    for unit in _units(line, tokenizer, longest):
        if waiting and len(waiting) + len(unit) > longest:
            yield waiting
            waiting = []
        waiting = waiting + unit
    if waiting:
        yield waiting


def _units(line: str, tokenizer: Tokenizer, longest: int) -> Iterator[list[int]]:
    for sentence in SENTENCE_END.split(line):
        ids = tokenizer.encode(sentence)
        if len(ids) <= longest:
            yield ids
            continue
        for word in WORD_END.split(sentence):
            ids = tokenizer.encode(word)
            yield from (ids[start : start + longest] for start in range(0, len(ids), longest))
