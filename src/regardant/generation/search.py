"""Search for the best targets of one padded batch of sources, or of any number of sources.

Shape legend: B sources of a batch.
"""

import math
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from regardant.data.batching import Source
from regardant.data.vocabulary import EOS, NEVER_WRITTEN, PAD
from regardant.errors import ConfigError, DataError
from regardant.generation.beam import BeamSearch, Search
from regardant.generation.config import GenerationConfig
from regardant.generation.constraints import Constraints
from regardant.generation.greedy import GreedySearch
from regardant.generation.joining import Searches
from regardant.generation.length_penalty import Hypothesis
from regardant.generation.parallel import one_thread, share_out
from regardant.generation.trees import TreeTokens
from regardant.layers.linear import Layouts
from regardant.layers.observed import OBSERVED
from regardant.models.base import SequenceToSequenceModel

BATCH_TOKENS = 5_120
"""Tokens of a batch on a CPU: more no longer fit its caches, fewer leave a worker too little work per batch."""

FEW_STEPS = 50
"""Number of steps per worker, estimated as the sum of the longest source of each of its batches, below which processes
are not forked: forking and the first use of memory in each process take a tenth of a second and more."""

SMALL_STEP = 25_000_000
"""Rows of a step times parameters of the model, up to which two threads are no faster than one (d_model 128). Next to
another busy process two are several times slower, since each waits for the other in every operation."""


@dataclass(frozen=True)
class BatchSizes:
    """Size of batches and number of workers. Results do not depend on them beyond rounding."""

    batch_tokens: int = BATCH_TOKENS
    """Maximum number of elements of a batch, counted as sources * beam_size * longest source. At least one source."""
    batch_sentences: int | None = None
    """Maximum number of sources of a batch. None: any number."""
    workers: int = 1
    """Number of processes, or of threads (see `parallel`). Each decodes a batch of its own."""


class Searcher(Protocol):
    """Interface of decoding, by the model itself or by an engine that the model was exported to."""

    @property
    def name(self) -> str:
        """Name that an evaluation records with its scores."""

    def search(
        self, sources: Sequence[NDArray[Any]], prefixes: list[list[int]], config: GenerationConfig, max_length: int
    ) -> list[list[Hypothesis]]:
        """Return the result of `generate` for any number of sources, encoded by their codec, in their order."""


@dataclass(frozen=True)
class ModelSearcher:
    """Searcher of a model in evaluation mode, on the device of the model."""

    model: SequenceToSequenceModel
    codec: Source
    """Codec of the sources."""
    device: torch.device
    layouts: Layouts = field(default_factory=Layouts)
    """Copies of weights for the products of a search, and the precision of these products."""
    work: BatchSizes | None = None
    """Size of batches and number of workers. None: chosen for the device; on a CPU one worker per torch thread."""
    pieces: Sequence[str] = ()
    """Vocabulary of the targets by id, which `generation.trees` needs."""

    @property
    def name(self) -> str:
        products = self.layouts.dtype
        return "torch" if products is None else f"torch-{str(products).removeprefix('torch.')}"

    def search(
        self,
        sources: Sequence[NDArray[Any]],
        prefixes: list[list[int]],
        config: GenerationConfig,
        max_length: int | None,
    ) -> list[list[Hypothesis]]:
        work = self._work() if self.work is None else self.work
        lengths = self.codec.lengths(np.array([len(source) for source in sources])).tolist()
        limits = length_limits(lengths, config, prefixes, max_length)
        observed = self._is_observed()
        workers = 1 if observed else work.workers
        share = -(-sum(lengths) // workers)  # no worker stays idle if there are few sentences
        batch_tokens = min(work.batch_tokens // config.beam_size, share)
        batches = batches_of_like_length(lengths, batch_tokens, work.batch_sentences)
        trees = TreeTokens.of(self.pieces, self.device) if config.trees else None

        def decode(batches: Iterable[list[int]]) -> dict[int, list[Hypothesis]]:
            searches = Searches(joined=not observed)
            with self.layouts.in_use(), torch.inference_mode():
                for batch in batches:
                    source = self.codec.collate([sources[index] for index in batch]).to(self.device)
                    own = [limits[index] for index in batch]
                    search = begin(self.model, source, own, [prefixes[index] for index in batch], config, trees)
                    search.sentences = torch.tensor(batch, device=self.device)  # numbers that no other batch has
                    searches.add(search)
                searches.end()
            return searches.found

        if min(workers, len(batches)) < 2:
            with one_thread() if self._is_small(len(sources) * config.beam_size) else nullcontext():
                parts: Iterable[dict[int, list[Hypothesis]]] = [decode(batches)]
        else:
            fork = sum(lengths[batch[0]] for batch in batches) >= FEW_STEPS * workers  # longest first
            parts = share_out(decode, batches, workers, fork=fork)
        found = {index: best for part in parts for index, best in part.items()}
        return [found[index] for index in range(len(sources))]

    def _work(self) -> BatchSizes:
        if self.device.type == "cpu":
            return BatchSizes(workers=torch.get_num_threads())
        return BatchSizes(batch_tokens=3 * BATCH_TOKENS)

    @cached_property
    def _num_parameters(self) -> float:
        """Number of parameters; infinite for a model that is no torch module."""
        if not isinstance(self.model, torch.nn.Module):
            return math.inf
        return sum(parameter.numel() for parameter in self.model.parameters())

    def _is_small(self, rows: int) -> bool:
        """Return whether a step of `rows` rows gains nothing from a second thread."""
        return self.device.type == "cpu" and rows * self._num_parameters <= SMALL_STEP

    def _is_observed(self) -> bool:
        """Return whether inspection records or changes the model's vectors: then all batches run in one thread."""
        return isinstance(self.model, torch.nn.Module) and any(module in OBSERVED for module in self.model.modules())


def generate(
    model: SequenceToSequenceModel,
    source: Any,
    config: GenerationConfig,
    prefixes: list[list[int]] | None = None,
    max_length: int | None = None,
    lengths: Sequence[int] | None = None,
    trees: TreeTokens | None = None,
) -> list[list[Hypothesis]]:
    """Return the n best targets of each source of a batch [B, ...], best first, those that ended before those cut.

    There may be fewer than nbest, never none. Each prefix is forced as the first tokens of a target; its
    log-probabilities count. max_length is the maximum number of tokens that the model can write, EOS counted. `lengths`
    are the numbers of elements of the sources; None: sources are token ids [B, S], and all but PAD are counted. The
    targets of a source do not depend on the other sources. With `trees` every target is a tree of these tokens. The
    model must be in evaluation mode.

    Raises DataError for a prefix that cannot be written, RunError if the model's scores are NaN.
    """
    prefixes = [[] for _ in range(len(source))] if prefixes is None else prefixes
    lengths = (source != PAD).sum(1).tolist() if lengths is None else lengths
    limits = length_limits(lengths, config, prefixes, max_length)
    with torch.inference_mode():
        search = begin(model, source, limits, prefixes, config, trees)
        while len(search.sentences):
            search.step()
    return [search.found[sentence] for sentence in range(len(source))]


def require_repeated_brackets(config: GenerationConfig) -> None:
    """Raise ConfigError for trees without repeated n-grams: closing brackets repeat."""
    if config.trees and config.no_repeat_ngram_size:
        raise ConfigError(
            f"generation.no_repeat_ngram_size: given {config.no_repeat_ngram_size}, and trees repeat their brackets: "
            "set it to 0"
        )


def begin(
    model: SequenceToSequenceModel,
    source: Any,
    limits: list[int],
    prefixes: list[list[int]],
    config: GenerationConfig,
    trees: TreeTokens | None = None,
) -> Search:
    """Begin the search for the targets of a batch [B, ...]: greedy search for one beam, else beam search.

    Raises ConfigError for trees without repeated n-grams.
    """
    if trees is not None:
        require_repeated_brackets(config)
    kind = BeamSearch if config.beam_size > 1 else GreedySearch
    constraints = None
    if config.no_repeat_ngram_size or any(prefixes) or trees is not None:
        constraints = Constraints.of(prefixes, config.no_repeat_ngram_size, limits, source.device, trees)
    return kind(model, source, limits, constraints, config)


def length_limits(
    lengths: Sequence[int], config: GenerationConfig, prefixes: list[list[int]], max_length: int | None
) -> list[int]:
    """Return the maximum number of tokens of each target, EOS counted, for sources of `lengths` elements.

    Never more than the model can write, never less than the prefix. Raises DataError for a prefix that cannot be
    written.
    """
    limits = []
    for length, prefix in zip(lengths, prefixes, strict=True):
        if not {*NEVER_WRITTEN, EOS}.isdisjoint(prefix):
            special = sorted({*NEVER_WRITTEN, EOS})
            raise DataError(f"a forced prefix holds the ids {prefix}: leave out those of special tokens, {special}")
        limit = int(length * config.max_length_ratio) + config.max_length_extra
        if max_length is not None:
            if len(prefix) > max_length:
                raise DataError(f"a forced prefix has {len(prefix)} tokens, the model writes {max_length}: shorten it")
            limit = min(limit, max_length)
        limits.append(max(limit, len(prefix)))
    return limits


def batches_of_like_length(lengths: list[int], batch_tokens: int, most: int | None = None) -> list[list[int]]:
    """Return batches of indices into lengths, longest first, so that a batch too large for the memory fails at once.

    most: maximum number of sentences of a batch.
    """
    batches: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        room = batches and (most is None or len(batches[-1]) < most)
        if room and (len(batches[-1]) + 1) * lengths[batches[-1][0]] <= batch_tokens:
            batches[-1].append(index)
        else:
            batches.append([index])
    return batches
