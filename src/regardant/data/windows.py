"""Windows of a text: what a model that goes on with a text is trained on and measured by.

A window of T targets is T + 1 tokens, of which each but the first is predicted from those before it in the window.

Shape legend: N windows, T targets of a window.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from regardant.data.batching import sent
from regardant.data.text import Tokens
from regardant.errors import DataError


@dataclass(frozen=True)
class WindowBatch:
    """Windows of one length."""

    tokens: Int[Tensor, "N T1"]

    def to(self, device: torch.device) -> Self:
        return type(self)(sent(self.tokens, device))

    def part(self, number: int, parts: int) -> Self:
        """Return windows `number::parts`, the shard of one rank. Empty if there are fewer windows."""
        return type(self)(self.tokens[number::parts])

    @property
    def inputs(self) -> dict[str, Tensor]:
        """The inputs of a model by name: each window without its last token."""
        return {"text": self.tokens[:, :-1]}

    @property
    def targets(self) -> Tensor:
        """The tokens to be predicted [N, T]: each window without its first."""
        return self.tokens[:, 1:]

    @property
    def count(self) -> int:
        """Number of predicted tokens."""
        return len(self.tokens) * (self.tokens.shape[1] - 1)


class TrainingWindows:
    """The training batches of every epoch.

    An epoch cuts the text at a random place and from there on into windows, which it takes in random order: every
    token is predicted about once, and from another context in the next epoch. The plan is a pure function of seed
    and epoch.
    """

    def __init__(self, tokens: Tokens, *, context: int, batch_tokens: int, seed: int) -> None:
        if len(tokens) <= context:
            raise DataError(
                f"the text to train on has {len(tokens):,} tokens, a window {context + 1:,}: give more text, or lower "
                "model.max_length"
            )
        self.tokens, self.context, self.seed = tokens, context, seed
        self.windows_per_batch = max(1, batch_tokens // context)
        self.targets_per_epoch = context * sum(map(len, self.plan(0)))
        """Number of predicted tokens in an epoch."""

    def plan(self, epoch: int) -> list[NDArray[np.int64]]:
        """Where the windows of each batch begin."""
        generator = np.random.default_rng([self.seed, epoch])
        first = generator.integers(min(self.context, len(self.tokens) - self.context))
        starts = generator.permutation(np.arange(first, len(self.tokens) - self.context, self.context))
        return [starts[at : at + self.windows_per_batch] for at in range(0, len(starts), self.windows_per_batch)]

    def load(self, planned: NDArray[np.int64]) -> WindowBatch:
        """One planned batch as tensors."""
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
        """Windows have none."""
        return {}


def consecutive_windows(tokens: Tokens, context: int, batch_tokens: int) -> Iterator[WindowBatch]:
    """The whole text in windows without overlap, so that every token but the first is predicted once.

    The last window may be shorter, and comes alone.
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
