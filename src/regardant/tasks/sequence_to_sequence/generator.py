"""An encoder-decoder that answers items by texts."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from regardant.data.batching import PairBatch, pad
from regardant.data.tokenizers import Tokenizer
from regardant.data.vocabulary import MASK, PAD, UNK
from regardant.errors import DataError
from regardant.generation.config import GenerationConfig
from regardant.generation.length_penalty import Hypothesis
from regardant.generation.search import ModelSearcher, Searcher, batches_of_like_length
from regardant.generation.teacher_forcing import score_pairs
from regardant.modalities import Codec
from regardant.models import SequenceToSequenceModel
from regardant.pictures import facts
from regardant.tasks.probe import Probe

LINE_BREAK = re.compile(r"[\r\n]+")

SCORED_TOKENS = 2048
"""Tokens of a batch that is scored: all its logits are held at once."""


def in_one_line(text: str) -> str:
    """Return the text with spaces in place of line breaks."""
    return LINE_BREAK.sub(" ", text)


@dataclass(frozen=True)
class Candidate:
    """One proposed text."""

    text: str
    """Text in one line."""
    score: float
    """Log-probability / length ** length_penalty, in nats; the mean over parts for a source that was split."""
    tokens: list[str]
    """Tokens of the text, as the vocabulary writes them."""


@dataclass(frozen=True)
class GeneratedText:
    """The texts proposed for one source."""

    source: str
    """Source as it was given: a text, or the path of a file."""
    candidates: list[Candidate]
    """Best first."""
    pieces: int = 1
    """Number of parts in which a source longer than the model was read."""
    finished: bool = True
    """False: stopped at the length limit before the text ended."""
    notes: list[str] = field(default_factory=list)
    """Notes for the user: a source that was split or cut, a text that did not end."""

    @property
    def text(self) -> str:
        """The best text."""
        return self.candidates[0].text

    @property
    def score(self) -> float:
        """Score of the best text."""
        return self.candidates[0].score

    @property
    def tokens(self) -> list[str]:
        """Tokens of the best text."""
        return self.candidates[0].tokens

    def _repr_html_(self) -> str:
        others = [("next best", f"{one.text} ({one.score:.3f})") for one in self.candidates[1:]]
        score = f"{self.score:.3f} (log-probability / length ** length_penalty)"
        rows = [("text", self.text), ("score", score), *others, *(("note", note) for note in self.notes)]
        return facts(self.source, rows)


class TextGenerator:
    """A model with the codec of its sources and the tokenizer of its texts.

    The model itself searches unless another searcher is given.
    """

    answer_name = "Text"
    """The name of an answer on a page."""

    def __init__(
        self,
        model: SequenceToSequenceModel,
        codec: Codec,
        tokenizer: Tokenizer,
        device: torch.device,
        searcher: Searcher | None = None,
    ) -> None:
        self.model, self.codec, self.tokenizer = model.eval().to(device), codec, tokenizer
        self.device = device
        self.searcher = searcher or ModelSearcher(model, codec, device, pieces=tokenizer.pieces)
        self.max_length = model.config.max_length
        # A text that was stopped has no EOS: one token fewer, so that it can be read as a target, with EOS.
        self.longest_written = self.max_length - 1

    def generate(
        self, items: Sequence[str], generation: GenerationConfig, prefixes: Sequence[str] | None = None
    ) -> list[GeneratedText]:
        """Return a text for each item of a command line, in their order; a blank one gives an empty text.

        Each prefix is the beginning that the text of its item must have. Raises DataError for more or fewer prefixes
        than items.
        """
        if prefixes is not None and len(prefixes) != len(items):
            raise DataError(f"{len(items)} texts and {len(prefixes)} prefixes: give as many of each")
        read = [self.codec.parts(item, self.max_length) for item in items]
        starts: list[list[int]] = []
        for number, (parts, _) in enumerate(read):
            forced = self.forced(prefixes[number]) if prefixes is not None else []
            starts += [[] if index else forced for index in range(len(parts))]
        sources = [part for parts, _ in read for part in parts]
        found = iter(self.searcher.search(sources, starts, generation, self.longest_written))
        return [
            self._answer(item, [next(found) for _ in parts], notes)
            for item, (parts, notes) in zip(items, read, strict=True)
        ]

    def generate_encoded(
        self, names: Sequence[str], items: Sequence[NDArray[Any]], generation: GenerationConfig
    ) -> list[GeneratedText]:
        """Return a text for each encoded item, with its name as source. An item longer than the model is cut."""
        sources = [self.codec.cut(one, self.max_length) for one in items]
        found = self.searcher.search(sources, [[] for _ in items], generation, self.longest_written)
        return [self._answer(name, [hypotheses], []) for name, hypotheses in zip(names, found, strict=True)]

    def encode(self, items: Sequence[Any]) -> list[NDArray[Any]]:
        """Return items of a command line as the codec encodes them. Raises DataError."""
        return self.codec.encode([self.codec.parse(item) for item in items])

    def forced(self, prefix: str) -> list[int]:
        """Return the tokens that a text must begin with. Raises DataError for words that the vocabulary lacks."""
        ids = self.tokenizer.encode(prefix)
        if not {UNK, MASK}.isdisjoint(ids):
            raise DataError(
                f"the prefix {prefix!r} has words or characters that the vocabulary lacks: give another one"
            )
        return ids

    def _answer(self, item: str, parts: list[list[Hypothesis]], notes: Sequence[str]) -> GeneratedText:
        """Return the text of an item from the hypotheses of each part that it was read in."""
        if not parts:
            return GeneratedText(item, [Candidate("", 0.0, [])], pieces=0)
        finished = all(hypotheses[0].finished for hypotheses in parts)
        if not finished:
            notes = [*notes, f"stopped at the length limit before the {self.answer_name.lower()} ended"]
        if len(parts) == 1:
            candidates = [self._candidate([hypothesis]) for hypothesis in parts[0]]
        else:
            candidates = [self._candidate([hypotheses[0] for hypotheses in parts])]
        return GeneratedText(item, candidates, len(parts), finished, list(notes))

    def pairs(self, items: Sequence[str], targets: Sequence[str], first_line: int = 1) -> PairBatch:
        """Return items and their texts as one batch on the model's device. Raises DataError as `encoded` does."""
        sources, written = self.encoded(items, targets, first_line)
        return PairBatch(self.codec.collate(sources), pad(written, sos=True)).to(self.device)

    def score(self, items: Sequence[str], targets: Sequence[str]) -> list[float]:
        """Return the log-probability of each text given its item, in nats, EOS included.

        Raises DataError as `encoded` does.
        """
        return self.scores(*self.encoded(items, targets))

    def scores(self, sources: Sequence[NDArray[Any]], targets: Sequence[Sequence[int]]) -> list[float]:
        """Return the log-probability of each encoded text given its encoded source, as `score`."""
        lengths = self.lengths(sources, targets)
        scores = [0.0] * len(lengths)
        for rows in batches_of_like_length(lengths, SCORED_TOKENS):
            source = self.codec.collate([sources[row] for row in rows]).to(self.device)
            target = pad([targets[row] for row in rows], sos=True).to(self.device)
            with torch.inference_mode():
                found = score_pairs(self.model, source, target).tolist()
            for row, value in zip(rows, found, strict=True):
                scores[row] = value
        return scores

    def lengths(self, sources: Sequence[NDArray[Any]], targets: Sequence[Sequence[int]]) -> list[int]:
        """Return the length of the longer side of each pair, EOS included."""
        read = self.codec.lengths(np.array([len(source) for source in sources], dtype=np.int64))
        return [max(int(length), len(ids) + 1) for length, ids in zip(read, targets, strict=True)]

    def fitting(self, items: Sequence[str], targets: Sequence[str]) -> list[int]:
        """Return the indices of the pairs that fit the model. `encoded` refuses the others."""
        lengths = self.lengths(self.encode(items), self.tokenizer.encode_batch(list(targets)))
        return [index for index, length in enumerate(lengths) if length <= self.max_length]

    def probe(self, sources: Sequence[NDArray[Any]], targets: Sequence[Sequence[int]]) -> Probe:
        """Return encoded pairs as a probe."""
        batch = PairBatch(self.codec.collate(sources), pad(targets, sos=True)).to(self.device)
        inputs = batch.read
        written = [self.tokenizer.tokens(row[row != PAD].tolist()) for row in inputs["target"]]
        return Probe(inputs, batch.targets, {"source": [self.codec.labels(one) for one in sources], "target": written})

    def encoded(
        self, items: Sequence[str], targets: Sequence[str], first_line: int = 1
    ) -> tuple[list[NDArray[Any]], list[list[int]]]:
        """Return encoded items and texts. Raises DataError for a pair longer than the model."""
        if len(items) != len(targets):
            raise DataError(f"{len(items)} sources and {len(targets)} targets: give as many of each")
        sources, written = self.encode(items), self.tokenizer.encode_batch(list(targets))
        for number, longest in enumerate(self.lengths(sources, written), first_line):
            if longest > self.max_length:
                raise DataError(f"line {number} has {longest} tokens, the model takes {self.max_length}: shorten it")
        return sources, written

    def as_written(self, reference: str) -> str:
        """Return a reference as a candidate's text is written: in one line, with the white space of decoded tokens."""
        return in_one_line(self.tokenizer.as_written(reference))

    def _candidate(self, parts: list[Hypothesis]) -> Candidate:
        text = in_one_line(" ".join(self.tokenizer.decode(part.tokens) for part in parts))
        tokens = [token for part in parts for token in self.tokenizer.tokens(part.tokens)]
        return Candidate(text, sum(part.score for part in parts) / len(parts), tokens)
