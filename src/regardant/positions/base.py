"""Interface of position schemes.

A scheme declares where it acts: on the `input` (added or concatenated to the representation), on `query_key` (rotates
queries and keys in the layer), on the `scores` (a bias that the layer passes to the mechanism) or `nowhere`. The
docstrings below name the place in brackets.

Shape legend: T positions, M d_model, P size of a position's own vector, B batch, H heads, D head size, Q queries,
K keys.
"""

import threading
from collections.abc import Callable
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from regardant.config import Variants

Place = Literal["input", "query_key", "scores", "nowhere"]

_GROWING = threading.Lock()

PositionBias = Callable[[Int[Tensor, " Q"], Int[Tensor, " K"]], Float[Tensor, "*B H Q K"]]
"""Function of the positions of queries and keys. Returns the bias added to their scores."""


class Positions(nn.Module):
    """Base of position schemes. Write the method of the place where the scheme acts."""

    acts_on: ClassVar[Place]

    depends_on_query: ClassVar[bool] = False
    """True if the bias depends on the content of queries (scores). Write `bias_of`."""

    scaled_by: float | None = None
    """Factor on a bias inside the scaling of a mechanism (scores). None: the bias is outside."""

    concatenated: int = 0
    """Number of features of a token's vector that hold only its position (input). 0: the position is added."""

    dimensions: ClassVar[int] = 1
    """Number of dimensions of a position (input): 1 in a sequence, 2 on a grid, 3 in a video."""

    longest: int | None = None
    """Maximum number of positions (input). None: any number."""

    interpolates: ClassVar[bool] = False
    """True if positions learned on a grid are interpolated to a grid of another size (input). Write `interpolate`."""

    ready: int = 0
    """Number of positions that are prepared. More need `reach`."""

    def reach(self, length: int) -> None:
        """Prepare for positions below `length`. Does nothing by default."""

    def embed(self, positions: Int[Tensor, " T"]) -> Float[Tensor, "T P"]:
        """Return the vectors of these positions, of size d_model or `concatenated` (input)."""
        raise NotImplementedError

    def interpolate(self, trained: tuple[int, ...], grid: tuple[int, ...]) -> Float[Tensor, "T P"]:
        """Return the vectors of a `grid` of these sizes, interpolated from the grid of training items (input)."""
        raise NotImplementedError

    def turn(self, x: Float[Tensor, "B H T D"], positions: Int[Tensor, " T"]) -> Float[Tensor, "B H T D"]:
        """Return queries or keys rotated by their positions (query_key)."""
        raise NotImplementedError

    def bias(self, queries: Int[Tensor, " Q"], keys: Int[Tensor, " K"]) -> Float[Tensor, "H Q K"]:
        """Return the bias of pairs of these positions (scores)."""
        raise NotImplementedError

    def bias_of(self, q: Float[Tensor, "B H T D"], first: int) -> PositionBias:
        """Return the bias of these queries, which are at positions `first`, `first` + 1, ... (scores)."""
        raise NotImplementedError

    def shared_bias(self) -> PositionBias | None:
        """Return the bias that all layers of a stack share. None: there is none."""
        return self.bias if self.acts_on == "scores" and not self.depends_on_query else None


class TabulatedPositions(Positions):
    """Base of schemes that tabulate a function of the position, for any length. Write `codes`; call `reach` when built.

    The table is kept since powers and sines at every step would dominate the decoding of a short sentence.
    """

    table: Tensor
    """Codes of positions 0, 1, 2 ..., neither learned nor saved."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.empty(0), persistent=False)

    def codes(self, positions: Int[Tensor, " T"]) -> Float[Tensor, "T ..."]:
        """Return the entries of the table for these positions, in float32."""
        raise NotImplementedError

    def reach(self, length: int) -> None:
        if length <= len(self.table):
            return
        with _GROWING:  # otherwise a thread could replace a longer table by a shorter one
            known = len(self.table)
            if length > known:  # doubled, so that decoding does not grow it at each token
                at = torch.arange(max(length, 2 * known), device=self.table.device)
                self.table = self.codes(at).to(self.table.dtype)
                self.ready = len(self.table)


class PositionsConfig(Variants):
    """Configuration of a position scheme. A class derived from it, with a `kind`, adds a scheme."""

    def build(self, *, d_model: int, num_heads: int, head_size: int, max_length: int, causal: bool) -> Positions:
        """Return the scheme of a stack; `causal` if no token attends to a later one."""
        raise NotImplementedError

    def width(self, d_model: int, max_length: int) -> int:
        """Return the number of features of a token's vector that hold only its position."""
        return 0


class InputConfig(PositionsConfig):
    """Configuration of a scheme that acts on the input."""

    combine: Literal["add", "concatenate"] = "add"
    """Operation that joins position and token: add, or concatenate, which leaves the token fewer features."""

    size: int | None = Field(None, gt=0)
    """Number of features of a concatenated position. Empty: a quarter of d_model."""

    @model_validator(mode="after")
    def size_is_of_concatenated_positions(self) -> "InputConfig":
        """Refuse a size of added positions, which have d_model features."""
        if self.combine == "add" and self.size is not None:
            raise ValueError("size is for concatenated positions: set combine=concatenate or leave it out")
        return self

    def width(self, d_model: int, max_length: int) -> int:
        return 0 if self.combine == "add" else self.size or d_model // 4
