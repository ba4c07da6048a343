"""CTranslate2's beam search behind the same interface as our own.

Both take the 2 W best continuations of W beams, keep W that do not end, and rank by log-probability / length ** alpha
with EOS counted. They differ where CTranslate2

- masks forbidden tokens before the softmax, which renormalises over the others: its scores are not the model's. Ours
  masks them after the softmax;
- counts a forced prefix as certain. Ours counts the model's log-probability of the prefix;
- has one length limit for a whole batch, and ranks a hypothesis that the limit cut among those that ended. Ours has
  a limit for every sentence, and ranks cut hypotheses last;
- stops when W hypotheses, times its patience, have ended. Ours goes on while a live hypothesis is better than those.

A sentence is therefore first searched freely: no token is forbidden, no prefix forced, and the limit is the batch's.
If that cannot be done (a prefix, n-grams that must not repeat) or fails (a hypothesis was cut, is too long or holds a
token that is never written), the sentence is searched carefully: in batches of one limit, until 2 W hypotheses have
ended, which are then scored again by teacher forcing and ranked by these scores. Only the last difference remains: W
poor hypotheses may end before a good one. A patient search waits for more hypotheses: with a confident model it writes
the same texts as ours, with a less confident one it may find better hypotheses than ours.

Shape legend: W beams.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ctranslate2
from numpy.typing import NDArray

from regardant.data.tokenizers import Tokenizers
from regardant.data.vocabulary import EOS, NEVER_WRITTEN
from regardant.errors import ConfigError
from regardant.generation.config import GenerationConfig
from regardant.generation.length_penalty import Hypothesis, impossible
from regardant.generation.search import batches_of_like_length, length_limits
from regardant.interop.ctranslate2.threads import Choice, Threads

BATCH_TOKENS = 1024
"""Source tokens of a batch, with padding. Batches of half the size take a tenth longer in float32."""
BATCH_TOKENS_INT8 = 512
"""BATCH_TOKENS with int8 weights. Batches of twice the size take a few per cent longer."""
PATIENCE = 1.5
"""Hypotheses that must end before a patient search stops, as a multiple of W."""
IMPOSSIBLE = -1e9
"""Bound below any text's log-probability. CTranslate2 gives less to a forbidden token, or a copy of a forced prefix."""

EngineHypotheses = list[tuple[list[int], float]]
"""Hypotheses: the tokens after SOS, with EOS if it was written, and CTranslate2's log-probability of them."""


@dataclass(frozen=True)
class SearchInput:
    """Input of one search."""

    source: list[str]
    """Source tokens without EOS, which CTranslate2 adds."""
    prefix: list[int]
    limit: int
    """Maximum number of target tokens, EOS included."""


class CTranslate2Searcher:
    """Searcher (`generation.search.Searcher`) that decodes with an exported model."""

    def __init__(
        self, folder: Path, tokenizers: Tokenizers, threads: Choice, device: str, *, patient: bool = False
    ) -> None:
        self.folder, self.device, self.patient = folder, device, patient
        self.name = f"{folder.name}-patient" if patient else folder.name
        self.sources, self.targets = tokenizers.source.pieces, tokenizers.target.pieces
        self.ids = {piece: token for token, piece in enumerate(self.targets)}
        self.threads = threads
        self.engine = self._load(threads.many)
        # Loaded here and not at first use, when the folder may hold another export.
        self.engine_alone = self.engine if threads.alone == threads.many else self._load(threads.alone)
        self.batch_tokens = BATCH_TOKENS_INT8 if self.engine.compute_type.startswith("int8") else BATCH_TOKENS

    def _load(self, threads: Threads) -> ctranslate2.Translator:
        return ctranslate2.Translator(
            str(self.folder), device=self.device, inter_threads=threads.batches, intra_threads=threads.a_batch
        )

    def search(
        self, sources: Sequence[NDArray[Any]], prefixes: list[list[int]], config: GenerationConfig, max_length: int
    ) -> list[list[Hypothesis]]:
        """Find the best targets, as `Searcher.search` describes.

        Raises ConfigError for `generation.trees`, DataError for a prefix that cannot be written, RunError if no target
        has a finite score.
        """
        if config.trees:
            raise ConfigError(
                "CTranslate2 cannot restrict its search to trees (generation.trees): choose the engine torch"
            )
        limits = length_limits([len(source) + 1 for source in sources], config, prefixes, max_length)
        sentences = [
            SearchInput([self.sources[token] for token in source], prefix, limit)
            for source, prefix, limit in zip(sources, prefixes, limits, strict=True)
        ]
        free = [row for row, one in enumerate(sentences) if not one.prefix and not config.no_repeat_ngram_size]
        found = {
            row: hypotheses
            for row, hypotheses in self._search_freely(sentences, free, config)
            if all(_will_do(hypothesis, sentences[row], config) for hypothesis in hypotheses)
        }
        if rest := [row for row in range(len(sentences)) if row not in found]:
            found.update(self._search_carefully(sentences, rest, config))
        return [found[row] for row in range(len(sentences))]

    def _search_freely(
        self, sentences: list[SearchInput], rows: list[int], config: GenerationConfig
    ) -> Iterator[tuple[int, list[Hypothesis]]]:
        patience = PATIENCE if self.patient and config.beam_size > 1 else 1
        for row, found in self._search(sentences, [rows], config, num_hypotheses=config.nbest, patience=patience):
            yield row, [Hypothesis.of(tokens, total, config.length_penalty) for tokens, total in found]

    def _search_carefully(
        self, sentences: list[SearchInput], rows: list[int], config: GenerationConfig
    ) -> Iterator[tuple[int, list[Hypothesis]]]:
        groups = defaultdict(list)
        for row in rows:  # CTranslate2 searches a sentence without a prefix differently beside one with a prefix
            groups[sentences[row].limit, bool(sentences[row].prefix)].append(row)
        wide = {"patience": 2, "num_hypotheses": 2 * config.beam_size} if config.beam_size > 1 else {}
        searched = self._search(
            sentences,
            list(groups.values()),
            config,
            suppress_sequences=[[self.targets[token]] for token in NEVER_WRITTEN],
            no_repeat_ngram_size=config.no_repeat_ngram_size,
            **wide,
        )
        possible = [(row, tokens) for row, found in searched for tokens, total in found if total > IMPOSSIBLE]
        hypotheses: dict[int, list[Hypothesis]] = {row: [] for row in rows}
        for (row, tokens), total in zip(possible, self._totals(sentences, possible), strict=True):
            hypotheses[row].append(Hypothesis.of(tokens, total, config.length_penalty))
        for row, unsorted in hypotheses.items():
            if not unsorted:
                raise impossible()
            yield row, sorted(unsorted, key=lambda one: (one.finished, one.score), reverse=True)[: config.nbest]

    def _search(
        self, sentences: list[SearchInput], groups: list[list[int]], config: GenerationConfig, **options: Any
    ) -> Iterator[tuple[int, EngineHypotheses]]:
        """Yield each row of the groups with its hypotheses. A batch holds rows of one group."""
        engine = self.engine_alone if len(sentences) == 1 else self.engine
        waiting: list[tuple[int, Any]] = []
        for rows in groups:
            lengths = [len(sentences[row].source) + 1 for row in rows]
            share = math.ceil(sum(lengths) / self.threads.many.batches)  # keeps all threads busy
            for batch in batches_of_like_length(lengths, min(self.batch_tokens, share)):
                chosen = [rows[index] for index in batch]
                results = engine.translate_batch(
                    [sentences[row].source for row in chosen],
                    [[self.targets[token] for token in sentences[row].prefix] for row in chosen],
                    asynchronous=True,
                    beam_size=config.beam_size,
                    length_penalty=config.length_penalty,
                    max_input_length=0,
                    min_decoding_length=0,
                    max_decoding_length=max(sentences[row].limit for row in chosen),
                    return_end_token=True,
                    return_scores=True,
                    **options,
                )
                waiting += zip(chosen, results, strict=True)
        for row, result in waiting:
            done = result.result()
            written = [[self.ids[piece] for piece in pieces] for pieces in done.hypotheses]
            yield (
                row,
                [
                    (tokens, score * len(tokens) ** config.length_penalty)
                    for tokens, score in zip(written, done.scores, strict=True)
                ],
            )

    def _totals(self, sentences: list[SearchInput], written: list[tuple[int, list[int]]]) -> list[float]:
        """Return the log-probability of each written target (the tokens after SOS), by teacher forcing."""
        results = self.engine.score_batch(
            [sentences[row].source for row, _ in written],
            [[self.targets[token] for token in tokens if token != EOS] for _, tokens in written],
            max_batch_size=self.batch_tokens,
            batch_type="tokens",
            max_input_length=0,
        )
        # CTranslate2 adds an EOS to every target, also to one that was cut.
        return [sum(result.log_probs[: len(tokens)]) for result, (_, tokens) in zip(results, written, strict=True)]


def _will_do(hypothesis: Hypothesis, sentence: SearchInput, config: GenerationConfig) -> bool:
    """Return whether a careful search would find the same hypothesis. Of the cut ones, only those of greedy search (one
    beam) would be found: their tokens do not depend on the limit."""
    length = len(hypothesis.tokens) + hypothesis.finished
    in_time = length <= sentence.limit and (hypothesis.finished or config.beam_size == 1)
    return in_time and set(NEVER_WRITTEN).isdisjoint(hypothesis.tokens)
