"""The promise of a head: vectors to answers, and the loss of given answers.

Shape legend: B batch, T elements, M size of a vector.
"""

from collections.abc import Callable
from typing import ClassVar, NamedTuple

from torch import Tensor, nn

from regardant.config import Variants
from regardant.models.vectors import Vectors


class Loss(NamedTuple):
    """Sums over targets, so that the mean over several batches, or ranks, is exact."""

    total: Tensor
    """What is minimised, summed over the targets, in nats or squared units. Differentiable."""
    plain: Tensor
    """The same without smoothing and other additions: what validation reports."""
    count: Tensor  # type: ignore[assignment]  # in the place of tuple.count
    """How many targets were summed."""
    state: tuple[Tensor, ...] | None = None
    """The state after the last element, without a gradient. None: the model carries no state."""


class Head(nn.Module):
    """Base of all heads."""

    reads_class_token: bool = False
    """Whether the first vector has to be that of a class token."""

    divisible: ClassVar[bool] = True
    """Whether the loss is a sum over batch elements. A contrastive loss is not: its batches cannot be divided."""

    def scores(self, vectors: Vectors) -> Tensor:
        """Return the answers' scores, before any softmax."""
        raise NotImplementedError

    def loss(self, vectors: Vectors, targets: Tensor) -> Loss:
        """Return the loss of the targets. Padding counts nothing."""
        raise NotImplementedError


class HeadConfig(Variants):
    """Configuration of a head. A subclass with a `kind` adds a head."""

    def build(self, d_model: int, num_outputs: int) -> Head:
        """Return the head over vectors of d_model, for so many answers: words, classes, labels, numbers."""
        raise NotImplementedError


HeadBuilder = Callable[[int], Head]
"""d_model to a head: the vocabulary, the classes or the horizon are known to whoever made it."""
