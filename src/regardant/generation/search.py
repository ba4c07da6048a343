"""From sources to their best targets: one padded batch, or any number of sentences, by whatever searches.

Shape legend: B sentences, S source length.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from regardant.data.vocabulary import EOS, PAD, SOS
from regardant.errors import DataError
from regardant.generation.beam import BeamSearch
from regardant.generation.config import GenerationConfig
from regardant.generation.constraints import Constraints
from regardant.generation.greedy import GreedySearch
from regardant.generation.hypothesis import Hypothesis
from regardant.generation.parallel import share_out
from regardant.generation.together import Found, Search, search_together
from regardant.layers.linear import Layouts
from regardant.models.base import SequenceToSequenceModel

BATCH_TOKENS = 5_120
"""Of a batch on a CPU: more no longer fit its caches, fewer leave a worker too little to do at a time."""


FEW = 4
"""Batches of each worker. For fewer, forking and memory that is new to each process take too large a share: a tenth of
a second and more."""


@dataclass(frozen=True)
class Work:
    """How many sentences are worked on, and how. It changes no more of what is found than rounding does."""

    batch_tokens: int = BATCH_TOKENS
    """A batch holds at most as many = sentences * beam_size * longest source, and at least one sentence."""
    batch_sentences: int | None = None
    """And at most so many sentences. None: any number."""
    workers: int = 1
    """Processes or threads of one, see `parallel`. Each decodes a batch of its own."""
    in_turn: bool = False
    """The same batches one after the other: for who listens or intervenes."""
    layouts: Layouts | None = None
    """Of the weights, where they outlive one search."""


class Searcher(Protocol):
    """What finds targets: a model's own decoding, or an engine that it was exported to."""

    @property
    def name(self) -> str:
        """What an evaluation notes down beside its scores."""

    def search(
        self, sources: list[list[int]], prefixes: list[list[int]], config: GenerationConfig, max_length: int
    ) -> list[list[Hypothesis]]:
        """What `generate` finds, for any number of sources, each ending with EOS; in their order."""


@dataclass(frozen=True)
class ModelSearcher:
    """A model in evaluation mode, and the device it is on."""

    model: SequenceToSequenceModel
    device: torch.device
    layouts: Layouts = field(default_factory=Layouts)
    """They say what matrices are multiplied in, if not in the weights' own precision. All else stays as the model has
    it."""

    @property
    def name(self) -> str:
        products = self.layouts.dtype
        return "torch" if products is None else f"torch-{str(products).removeprefix('torch.')}"

    def search(
        self, sources: list[list[int]], prefixes: list[list[int]], config: GenerationConfig, max_length: int
    ) -> list[list[Hypothesis]]:
        on_cpu = self.device.type == "cpu"
        work = Work(
            batch_tokens=BATCH_TOKENS if on_cpu else 3 * BATCH_TOKENS,
            workers=torch.get_num_threads() if on_cpu else 1,
            in_turn=any(module._forward_hooks for module in self.model.modules()),
            layouts=self.layouts,
        )
        return generate_all(
            self.model, sources, config, self.device, prefixes=prefixes, max_length=max_length, work=work
        )


def generate(
    model: SequenceToSequenceModel,
    source: Tensor,
    config: GenerationConfig,
    prefixes: list[list[int]] | None = None,
    max_length: int | None = None,
) -> list[list[Hypothesis]]:
    """The n best targets of each sentence of source [B, S], best first, those that ended before those cut.

    There may be fewer than nbest, never none. Each prefix is a sentence's first target tokens: it is written
    whatever it costs, and its log-probabilities count. max_length is the most tokens the model can write, EOS
    counted. What a sentence gets does not depend on the others. The model must be in evaluation mode.

    Raises DataError for a prefix that cannot be written, RunError where the model's scores are NaN.
    """
    prefixes = [[] for _ in source] if prefixes is None else prefixes
    limits = length_limits((source != PAD).sum(1).tolist(), config, prefixes, max_length)
    with torch.inference_mode():
        search = _begin(model, source, range(len(source)), limits, prefixes, config)
        found = search_together([search], fits=lambda batch: True)
    return [found[sentence] for sentence in range(len(source))]


def generate_all(
    model: SequenceToSequenceModel,
    sources: list[list[int]],
    config: GenerationConfig,
    device: torch.device,
    *,
    prefixes: list[list[int]] | None = None,
    max_length: int | None = None,
    work: Work = Work(),
) -> list[list[Hypothesis]]:
    """`generate` for any number of sources, each ending with EOS, in batches of like length; in their order.

    `device` is the model's.
    """
    lengths = [len(source) for source in sources]
    prefixes = [[] for _ in sources] if prefixes is None else prefixes
    limits = length_limits(lengths, config, prefixes, max_length)
    share = -(-sum(lengths) // work.workers)  # of few sentences, so that none is idle
    batch_tokens, most = min(work.batch_tokens // config.beam_size, share), work.batch_sentences or len(sources)
    batches = batches_of_like_length(lengths, batch_tokens, most)
    layouts = work.layouts or Layouts()

    def begin(batch: list[int]) -> Search:
        rows = [torch.tensor(sources[index]) for index in batch]
        source = pad_sequence(rows, batch_first=True, padding_value=PAD).to(device)
        return _begin(model, source, batch, limits, prefixes, config)

    def fits(batch: list[int]) -> bool:
        return len(batch) <= most and len(batch) * max(lengths[index] for index in batch) <= batch_tokens

    def decode(batches: Iterator[list[int]]) -> Found:
        with layouts.in_use(), torch.inference_mode():
            if not work.in_turn:
                return search_together(map(begin, batches), fits)
            # Those who listen know what is in a batch.
            return {row: best for batch in batches for row, best in search_together([begin(batch)], fits).items()}

    found: Found = {}
    fork = len(batches) >= FEW * work.workers
    for part in share_out(decode, batches, work.workers, in_turn=work.in_turn, fork=fork):
        found.update(part)
    return [found[index] for index in range(len(sources))]


def _begin(
    model: SequenceToSequenceModel,
    source: Tensor,
    sentences: Sequence[int],
    limits: list[int],
    prefixes: list[list[int]],
    config: GenerationConfig,
) -> Search:
    """The search for source [B, S], which are `sentences` of those that limits and prefixes are of."""
    kind = BeamSearch if config.beam_size > 1 else GreedySearch
    numbers, most = (torch.tensor(each, device=source.device) for each in (list(sentences), limits))
    constraints = Constraints.of([prefixes[one] for one in sentences], config.no_repeat_ngram_size, source.device)
    return kind.begin(model, source, numbers, most[numbers], constraints, config, max(limits))


def length_limits(
    lengths: Sequence[int], config: GenerationConfig, prefixes: list[list[int]], max_length: int | None
) -> list[int]:
    """The most tokens of each target, EOS counted: from its own source's length, EOS counted and padding not.

    Never more than the model can write, never less than the prefix.
    """
    limits = []
    for length, prefix in zip(lengths, prefixes, strict=True):
        if not {PAD, SOS, EOS}.isdisjoint(prefix):
            raise DataError(f"a forced prefix holds the ids {prefix}: leave out PAD, SOS and EOS ({PAD}, {SOS}, {EOS})")
        limit = int(length * config.max_length_ratio) + config.max_length_extra
        if max_length is not None:
            if len(prefix) > max_length:
                raise DataError(f"a forced prefix has {len(prefix)} tokens, the model writes {max_length}: shorten it")
            limit = min(limit, max_length)
        limits.append(max(limit, len(prefix)))
    return limits


def batches_of_like_length(lengths: list[int], batch_tokens: int, most: int | None = None) -> list[list[int]]:
    """Indices into lengths, the longest first, so that too large a batch is met at once; at most so many in each."""
    batches: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        room = batches and (most is None or len(batches[-1]) < most)
        if room and (len(batches[-1]) + 1) * lengths[batches[-1][0]] <= batch_tokens:
            batches[-1].append(index)
        else:
            batches.append([index])
    return batches
