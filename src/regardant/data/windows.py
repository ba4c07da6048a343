"""Windows of a text, on which a language model is trained and evaluated.

A window of T targets is T + 1 tokens, of which each but the first is predicted from those before it in the window.
Windows are independent of each other, or follow each other in parallel streams of the text, so that a state can be
carried from one to the next.

Shape legend: N windows, T targets of a window.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from regardant.data.batching import sent
from regardant.data.text import Tokens
from regardant.data.vocabulary import PAD
from regardant.errors import DataError


@dataclass(frozen=True)
class WindowBatch:
    """Windows of one length."""

    tokens: Int[Tensor, "N T1"]

    def to(self, device: torch.device) -> Self:
        return replace(self, tokens=sent(self.tokens, device))

    def part(self, number: int, parts: int) -> Self:
        """Return windows `number::parts`, the shard of one rank. Empty if there are fewer windows."""
        return type(self)(self.tokens[number::parts])

    @property
    def inputs(self) -> dict[str, Tensor]:
        """The inputs of a model by name: each window without its last token."""
        return {"text": self.tokens[:, :-1]}

    @property
    def targets(self) -> Tensor:
        """The tokens to be predicted [N, T]: each window without its first token."""
        return self.tokens[:, 1:]

    @property
    def count(self) -> int:
        """Number of predicted tokens."""
        return len(self.tokens) * (self.tokens.shape[1] - 1)


@dataclass(frozen=True)
class StreamBatch(WindowBatch):
    """The next window of every stream."""

    begins: bool
    """True if the streams begin with these windows."""
    streams: slice
    """Streams of these windows, among all streams."""

    def part(self, number: int, parts: int) -> Self:
        """Return the windows of the streams `number::parts`, the shard of one rank in every batch."""
        streams = slice(number, None, parts)
        return replace(self, tokens=self.tokens[streams], streams=streams)


class TrainingWindows:
    """The training batches of every epoch.

    An epoch cuts the text into windows from a random start on, and takes them in random order: every token is
    predicted about once, and with another context in the next epoch. The plan is a pure function of seed and epoch.
    """

    def __init__(self, tokens: Tokens, *, context: int, batch_tokens: int, seed: int) -> None:
        if len(tokens) <= context:
            raise DataError(
                f"the text to train on has {len(tokens):,} tokens, a window {context + 1:,}: give more text, or lower "
                "model.max_length"
            )
        self.tokens, self.context, self.seed = tokens, context, seed
        self.windows_per_batch = max(1, batch_tokens // context)

    @property
    def targets_per_epoch(self) -> int:
        """Number of predicted tokens in an epoch."""
        return self.context * sum(map(len, self.plan(0)))

    def plan(self, epoch: int) -> list[NDArray[np.int64]]:
        """Return the starts of the windows of each batch."""
        generator = np.random.default_rng([self.seed, epoch])
        first = generator.integers(min(self.context, len(self.tokens) - self.context))
        starts = generator.permutation(np.arange(first, len(self.tokens) - self.context, self.context))
        return [starts[at : at + self.windows_per_batch] for at in range(0, len(starts), self.windows_per_batch)]

    def load(self, planned: NDArray[np.int64]) -> WindowBatch:
        """Return a planned batch as tensors."""
        return _windows(self.tokens, planned, self.context)

    def largest_batches(self) -> list[NDArray[np.int64]]:
        """Return the planned batches one of which takes most memory. All but the last have the same size."""
        return self.plan(0)[:1]

    def median_batch(self) -> NDArray[np.int64]:
        """Return a planned batch of median length. All windows have the same length."""
        return self.plan(0)[0]

    def sample_batches(self) -> list[NDArray[np.int64]]:
        """Return planned batches that represent all lengths."""
        return [self.median_batch()]

    def padding(self) -> dict[str, float]:
        """Return an empty mapping: windows have no padding."""
        return {}


class PlannedStreams(NamedTuple):
    """A planned batch of streams."""

    starts: NDArray[np.int64]
    """Starts of the windows in the text."""
    begins: bool
    """True if the streams begin with these windows."""


class TrainingStreams:
    """The training batches of every epoch, as parallel streams of the text.

    An epoch cuts the text, from a random place on, into as many streams of equal length as a batch has windows. Batch k
    holds the k-th window of every stream, so that the state after a batch starts the next one. An epoch leaves out less
    than a batch. The plan is a pure function of seed and epoch.
    """

    def __init__(self, tokens: Tokens, *, context: int, batch_tokens: int, seed: int) -> None:
        self.windows = TrainingWindows(tokens, context=context, batch_tokens=batch_tokens, seed=seed)
        self.num_streams = min(self.windows.windows_per_batch, (len(tokens) - 1) // context)
        self.batches_per_epoch = (len(tokens) - 1) // (context * self.num_streams)

    @property
    def targets_per_epoch(self) -> int:
        """Number of predicted tokens in an epoch."""
        return self.batches_per_epoch * self.num_streams * self.windows.context

    def plan(self, epoch: int) -> list[PlannedStreams]:
        """Return the batches in the order of the text."""
        tokens, context, seed = self.windows.tokens, self.windows.context, self.windows.seed
        left_out = len(tokens) - 1 - self.targets_per_epoch
        first = np.random.default_rng([seed, epoch]).integers(left_out + 1)
        starts = first + np.arange(self.num_streams) * (self.batches_per_epoch * context)
        return [PlannedStreams(starts + at * context, begins=at == 0) for at in range(self.batches_per_epoch)]

    def load(self, planned: PlannedStreams) -> StreamBatch:
        """Return one planned batch as tensors."""
        windows = self.windows.load(planned.starts)
        return StreamBatch(windows.tokens, planned.begins, slice(None))

    def largest_batches(self) -> list[PlannedStreams]:
        """Return the planned batches one of which takes most memory. All have the same size."""
        return [self.median_batch()]

    def median_batch(self) -> PlannedStreams:
        """Return a planned batch of median length. All have the same size."""
        return self.plan(0)[0]

    def sample_batches(self) -> list[PlannedStreams]:
        """Return planned batches that represent all lengths."""
        return [self.median_batch()]

    def padding(self) -> dict[str, float]:
        """Return an empty mapping: no window is padded."""
        return {}


def parallel_streams(tokens: Tokens, num_streams: int, context: int) -> Iterator[WindowBatch]:
    """Yield the next `context` targets of every stream until all tokens but the first are predicted once.

    The text is cut into streams of equal length. The last one is padded with fewer tokens than there are streams.
    """
    targets = len(tokens) - 1
    length = -(-targets // num_streams)
    starts = np.arange(num_streams)[:, None] * length
    for at in range(0, length, context):
        places = starts + np.arange(at, min(at + context, length) + 1)
        chosen = np.where(places <= targets, tokens[np.minimum(places, targets)], PAD)
        yield WindowBatch(torch.from_numpy(chosen.astype(np.int64)))


def consecutive_windows(tokens: Tokens, context: int, batch_tokens: int) -> Iterator[WindowBatch]:
    """Yield the whole text in windows without overlap, so that every token but the first is predicted once.

    The last window may be shorter, and is then a batch of its own.
    """
    targets = len(tokens) - 1
    starts = np.arange(0, targets - context + 1, context)
    windows_per_batch = max(1, batch_tokens // context)
    for at in range(0, len(starts), windows_per_batch):
        yield _windows(tokens, starts[at : at + windows_per_batch], context)
    if left := targets - context * len(starts):
        yield _windows(tokens, np.array([targets - left]), left)


def _windows(tokens: Tokens, starts: NDArray[np.int64], targets: int) -> WindowBatch:
    chosen = tokens[starts[:, None] + np.arange(targets + 1)]
    return WindowBatch(torch.from_numpy(chosen.astype(np.int64)))
