"""Interface of representations: a batch of items to vectors.

Positions, scale, class token and dropout are the same for all kinds of items: a representation implements `embed`.

Shape legend: B batch, T elements of an item, M d_model, P dimensions of a position.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from regardant.layers.dropout import Dropout
from regardant.layers.norms import NormConfig
from regardant.models.vectors import Vectors
from regardant.positions import Positions


@dataclass(frozen=True)
class InputShape:
    """Requirements of a model on the representation of an input."""

    d_model: int
    positions: Positions
    """Shared with the stack that reads the input."""
    scale: bool = False
    """True multiplies elements by sqrt(d_model) before positions are added."""
    dropout: float = 0.0
    class_token: bool = False
    """True puts a learned vector before all elements, for the head to read."""
    num_heads: int | None = None
    """Number of heads of the attention that adds `Vectors.edges` to its scores. None: nothing reads them."""
    normalisation: NormConfig | None = None
    """Norm of elements with their positions, before dropout. None: there is none."""

    @property
    def element_size(self) -> int:
        """Size of an element's own vector: d_model without concatenated positions."""
        return self.d_model - self.positions.concatenated


class Representation(nn.Module):
    """Base of all representations. Subclasses implement `embed`.

    Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, sections 3.4 (scale), 3.5 and 5.4 (dropout on the sum).
    """

    unit: ClassVar[str]
    """Name of an element: token, patch, node, frame, step."""

    reads_order: ClassVar[bool] = True
    """True if the elements of an item have an order. Nodes of a graph have none."""

    grid: tuple[int, ...] | None = None
    """Sizes of the grid of training items, from which learned positions are interpolated to other sizes. None: items
    have no grid."""

    biases_scores: bool = False
    """True if `embed` sets `Vectors.edges`."""

    def __init__(self, shape: InputShape) -> None:
        super().__init__()
        self.positions = shape.positions
        self.scale = math.sqrt(shape.d_model) if shape.scale else 1.0
        self.norm = nn.Identity() if shape.normalisation is None else shape.normalisation.build(shape.d_model)
        self.dropout = Dropout(shape.dropout)
        self.written = nn.Identity()  # a module, so that inspection can hook it
        if shape.class_token:
            self.class_token = nn.Parameter(torch.randn(shape.d_model) * shape.d_model**-0.5)

    def embed(self, inputs: Any) -> Vectors:
        """Return the elements' own vectors [B, T, element_size], without positions."""
        raise NotImplementedError

    def forward(self, inputs: Any, start: int = 0) -> Vectors:
        """Return the vectors of items.

        The elements are at positions `start`, `start` + 1, ...; for a scheme of several dimensions at the positions
        that `embed` returns, if any.
        """
        embedded = self.embed(inputs)
        values = embedded.values * self.scale
        if self.positions.acts_on == "input":
            at = self._positions(embedded, start)
            if self.positions.concatenated:
                values = torch.cat([values, at.expand(len(values), -1, -1)], -1)
            else:
                values = values + at
        if hasattr(self, "class_token"):
            embedded, values = self._with_class_token(embedded, values)
        values = self.norm(values)
        return replace(embedded, values=self.written(self.dropout(values) if self.training else values))

    def tie(self, weight: nn.Parameter) -> None:
        """Share the embedding matrix with the head.

        Raises:
            ValueError: this representation has no matrix that could be shared, or one of another shape.
        """
        raise ValueError(f"a {self.unit} has no embedding matrix that the output could share")

    def _positions(self, embedded: Vectors, start: int) -> Tensor:
        count = embedded.values.shape[1]
        if (at := embedded.positions) is not None:
            if at.shape[1] == 1:
                raise ValueError("positions of one dimension follow from the order of elements: leave them out")
            if at.shape[1] == self.positions.dimensions:
                return self.positions.embed(at)
        trained, grid = self.grid, embedded.grid
        if trained and grid and trained != grid and self.positions.interpolates:
            return self.positions.interpolate(trained, grid)
        end, longest = start + count, self.positions.longest
        if longest is not None and end > longest:
            raise ValueError(
                f"these positions end at {self.unit} {longest} and {end} were given: raise model.max_length and train "
                "anew, or choose positions without a maximum (sinusoidal, rotary, alibi)"
            )
        self.positions.reach(end)
        return self.positions.embed(torch.arange(start, end, device=embedded.values.device))

    def _with_class_token(self, embedded: Vectors, values: Tensor) -> tuple[Vectors, Tensor]:
        rows = len(values)
        values = torch.cat([self.class_token.to(values.dtype).expand(rows, 1, -1), values], 1)
        real, pairs, edges = embedded.real, embedded.pairs, embedded.edges
        return replace(
            embedded,
            real=None if real is None else torch.cat([real.new_ones(rows, 1), real], 1),
            pairs=None if pairs is None else nn.functional.pad(pairs, (1, 0, 1, 0), value=True),
            edges=None if edges is None else nn.functional.pad(edges, (1, 0, 1, 0)),
            positions=None,
            grid=None,
        ), values


RepresentationBuilder = Callable[[InputShape], Representation]
"""Function from a model's requirements to the representation. The builder knows the vocabulary or the patch size."""
