"""A trained translator: lines in, lines out."""

import re
from collections.abc import Iterator, Sequence

import numpy as np
import torch

from regardant.data.tokenizers import Tokenizer, Tokenizers
from regardant.generation.config import GenerationConfig
from regardant.generation.length_penalty import Hypothesis
from regardant.generation.search import Searcher
from regardant.modalities.text import SentenceCodec
from regardant.models import SequenceToSequenceModel
from regardant.tasks.sequence_to_sequence.generator import Candidate, GeneratedText, TextGenerator

SENTENCE_END = re.compile(r"(?<=[.!?…。！？])(?=\s)")
WORD_END = re.compile(r"(?<=\S)(?=\s)")
"""Both leave the space with what follows, as the pieces of a tokenizer do."""


class Translator(TextGenerator):
    """A text generator whose sources are texts: a line longer than the model is translated in parts."""

    answer_name = "Translation"

    def __init__(
        self,
        model: SequenceToSequenceModel,
        tokenizers: Tokenizers,
        device: torch.device,
        searcher: Searcher | None = None,
    ) -> None:
        super().__init__(model, SentenceCodec(tokenizers.source), tokenizers.target, device, searcher)
        self.tokenizers = tokenizers

    def generate(
        self, items: Sequence[str], generation: GenerationConfig, prefixes: Sequence[str] | None = None
    ) -> list[GeneratedText]:
        """Return a translation of each line, in their order; a blank line gives an empty one.

        Each prefix is the beginning that the translation of its line must have.
        """
        parts = [self._parts(line) for line in items]
        sources = [np.array(ids) for part in parts for ids in part]
        starts: list[list[int]] = []
        for number, part in enumerate(parts):
            forced = self.forced(prefixes[number]) if prefixes is not None else []
            starts += [[] if index else forced for index in range(len(part))]
        found = iter(self.searcher.search(sources, starts, generation, self.max_length - 1))
        return [self._translation(line, [next(found) for _ in part]) for line, part in zip(items, parts, strict=True)]

    def _parts(self, line: str) -> list[list[int]]:
        """The ids of a line, in as many parts as the model's length asks: cut between sentences, then words."""
        tokenizer = self.tokenizers.source
        ids = tokenizer.encode(line) if line.strip() else []
        if not ids or len(ids) < self.max_length:
            return [ids] if ids else []
        return list(_pack(line, tokenizer, self.max_length - 1))

    def _translation(self, line: str, parts: list[list[Hypothesis]]) -> GeneratedText:
        if not parts:
            return GeneratedText(line, [Candidate("", 0.0, [])], pieces=0)
        notes = []
        if len(parts) > 1:
            notes.append(f"longer than the model's {self.max_length} tokens, translated in {len(parts)} parts")
        return self.answer(line, parts, notes)


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
