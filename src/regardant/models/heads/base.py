"""Interface of heads: vectors to scores, and the loss of targets.

Shape legend: B batch, T elements, M size of a vector.
"""

from collections.abc import Callable
from typing import ClassVar, NamedTuple

from torch import Tensor, nn

from regardant.config import Variants
from regardant.models.heads.pooling import Pooling
from regardant.models.vectors import Vectors

IGNORED = -100
"""Target that the loss ignores, as in `torch.nn.functional.cross_entropy`: padding, or an element without a label."""


class Loss(NamedTuple):
    """Sums over targets, so that the mean over several batches, or ranks, is exact."""

    total: Tensor
    """Minimised loss, summed over the targets: cross-entropy in nats, or errors of forecasts. Differentiable."""
    plain: Tensor
    """Loss without label smoothing and additional terms, as validation reports it."""
    count: Tensor  # type: ignore[assignment]  # shadows tuple.count
    """Number of targets."""
    state: tuple[Tensor, ...] | None = None
    """The state after the last element, without a gradient. None: the model carries no state."""


class Head(nn.Module):
    """Base of all heads."""

    pooling: Pooling | None = None
    """Pooling to the one vector of a sequence that the head reads. None: it reads the vectors of all elements."""

    reads_order: bool = False
    """True if the head distinguishes the vectors of a sequence by their position."""

    compares_inputs: ClassVar[bool] = False
    """True if the head reads two vectors [B, 2, M], one for each input of a dual encoder."""

    ignored: ClassVar[int] = IGNORED
    """Target that the loss ignores."""

    divisible: ClassVar[bool] = True
    """True if the loss is a sum over batch elements. False for a contrastive loss, whose batches cannot be divided."""

    @property
    def reads_class_token(self) -> bool:
        """True if the first vector must be that of a class token."""
        return self.pooling == "class_token"

    @property
    def single_vector(self) -> str | None:
        """Name of the one vector that the head reads, for messages. None: it reads them all."""
        if self.reads_class_token:
            return "the class token"
        return f"the {self.pooling} element" if self.pooling in ("first", "last") else None

    def scores(self, vectors: Vectors) -> Tensor:
        """Return the scores, before any softmax."""
        raise NotImplementedError

    def loss(self, vectors: Vectors, targets: Tensor) -> Loss:
        """Return the loss of the targets. Padding is ignored."""
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
        """Return the head over vectors of d_model, with `num_outputs` words, classes, labels or channels."""
        raise NotImplementedError


HeadBuilder = Callable[[int], Head]
"""Function from d_model to the head. The builder knows the number of words, classes or channels."""
