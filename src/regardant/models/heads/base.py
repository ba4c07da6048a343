"""The promise of a head: vectors to answers, and the loss of given answers.

Shape legend: B batch, T elements, M size of a vector.
"""

from collections.abc import Callable
from typing import ClassVar, NamedTuple

from torch import Tensor, nn

from regardant.config import Variants
from regardant.models.heads.pooling import Pooling
from regardant.models.vectors import Vectors

IGNORED = -100
"""Target that counts nothing, as in `torch.nn.functional.cross_entropy`: padding, or an element without a label."""


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

    pooling: Pooling | None = None
    """The vector of a sequence that the head reads. None: the vectors of all elements."""

    compares_inputs: ClassVar[bool] = False
    """Whether the head reads two vectors [B, 2, M], one for each input of a dual encoder."""

    divisible: ClassVar[bool] = True
    """Whether the loss is a sum over batch elements. A contrastive loss is not: its batches cannot be divided."""

    ignored: ClassVar[int] = IGNORED
    """Target [B, T] of an element that counts nothing."""

    @property
    def reads_class_token(self) -> bool:
        """Whether the first vector has to be that of a class token."""
        return self.pooling == "class_token"

    def scores(self, vectors: Vectors) -> Tensor:
        """Return the answers' scores, before any softmax."""
        raise NotImplementedError

    def loss(self, vectors: Vectors, targets: Tensor) -> Loss:
        """Return the loss of the targets. Padding counts nothing."""
        raise NotImplementedError

    def embedding(self) -> nn.Parameter:
        """Return the matrix that may be tied to an input embedding.

        Raises:
            ValueError: the head scores no vocabulary.
        """
        raise ValueError(f"{type(self).__name__} scores no vocabulary, so that it has no matrix to tie")


class HeadConfig(Variants):
    """Configuration of a head. A subclass with a `kind` adds a head."""

    def build(self, d_model: int, num_outputs: int) -> Head:
        """Return the head over vectors of d_model, for so many answers: words, classes, labels, numbers."""
        raise NotImplementedError


HeadBuilder = Callable[[int], Head]
"""d_model to a head. The builder knows the number of words, classes or channels."""
