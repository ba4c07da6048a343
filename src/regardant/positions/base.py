"""Where a token stands: the one interface of every scheme.

A scheme declares where it acts: on the `input` (added or concatenated to the representation), on `query_key` (turns
queries and keys in the layer), on the `scores` (a bias that the layer hands to the mechanism) or `nowhere`.

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

BlockBias = Callable[[Int[Tensor, " Q"], Int[Tensor, " K"]], Float[Tensor, "*B H Q K"]]
"""What to add to the scores of a block, from where its queries and keys stand."""


class Positions(nn.Module):
    """A scheme. It implements the one method that its place calls for."""

    acts_on: ClassVar[Place]

    depends_on_query: ClassVar[bool] = False
    """scores: whether the bias is of each query's own making, by `bias_of`."""

    scaled_by: float | None = None
    """scores: what the bias is multiplied by where it stands inside a mechanism's scaling. None: it stands outside."""

    concatenated: int = 0
    """input: how many numbers of a token's vector are its position's alone. 0: the two are added."""

    dimensions: ClassVar[int] = 1
    """input: how many numbers say where an element stands: 1 in a sequence, 2 on a grid."""

    longest: int | None = None
    """input: the length past which nothing is known."""

    ready: int = 0
    """Positions below it need no `reach`."""

    def reach(self, length: int) -> None:
        """Make ready for positions below `length`. Does nothing by default."""

    def embed(self, positions: Int[Tensor, " T"]) -> Float[Tensor, "T P"]:
        """input: the vectors of tokens that stand there, of d_model or of `concatenated` numbers."""
        raise NotImplementedError

    def turn(self, x: Float[Tensor, "B H T D"], positions: Int[Tensor, " T"]) -> Float[Tensor, "B H T D"]:
        """query_key: the queries or keys, moved by where they stand."""
        raise NotImplementedError

    def bias(self, queries: Int[Tensor, " Q"], keys: Int[Tensor, " K"]) -> Float[Tensor, "H Q K"]:
        """scores: what to add to the scores of this block."""
        raise NotImplementedError

    def bias_of(self, q: Float[Tensor, "B H T D"], first: int) -> BlockBias:
        """scores: the bias of these queries, which stand at `first`, `first` + 1, ..."""
        raise NotImplementedError

    def shared_bias(self) -> BlockBias | None:
        """The bias that all layers of a stack share, if there is one."""
        return self.bias if self.acts_on == "scores" and not self.depends_on_query else None


class TabulatedPositions(Positions):
    """A function of the position alone, for any length. Write `codes`, and `reach` for the first length when built.

    They are looked up, since powers and sines at every step cost more than all else in decoding a short sentence.
    """

    table: Tensor
    """The codes of positions 0, 1, 2 ...: neither learned nor saved."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.empty(0), persistent=False)

    def codes(self, positions: Int[Tensor, " T"]) -> Float[Tensor, "T ..."]:
        """What stands in the table for these positions, in float32."""
        raise NotImplementedError

    def reach(self, length: int) -> None:
        if length <= len(self.table):
            return
        with _GROWING:  # or a thread that needs less would put its table in the place of a longer one
            known = len(self.table)
            if length > known:  # by as much again: who writes token by token shall not come back for each
                at = torch.arange(max(length, 2 * known), device=self.table.device)
                self.table = self.codes(at).to(self.table.dtype)
                self.ready = len(self.table)


class PositionsConfig(Variants):
    """What every scheme's configuration is. A class derived from it, with a `kind`, adds a scheme."""

    def build(self, *, d_model: int, num_heads: int, head_size: int, max_length: int, causal: bool) -> Positions:
        """The scheme for a stack of that shape; `causal` where no token sees a later one."""
        raise NotImplementedError

    def width(self, d_model: int, max_length: int) -> int:
        """How many numbers of a token's vector are its position's alone."""
        return 0


class InputConfig(PositionsConfig):
    """What the configuration of a scheme on the input is."""

    combine: Literal["add", "concatenate"] = "add"
    """Add to the token's vector, or put beside it, where nothing is mixed up and the token has fewer numbers."""

    size: int | None = Field(None, gt=0)
    """Numbers of a position where it is put beside. Empty: a quarter of d_model."""

    @model_validator(mode="after")
    def size_is_of_what_is_beside(self) -> "InputConfig":
        """Added, a position has as many numbers as its token."""
        if self.combine == "add" and self.size is not None:
            raise ValueError("size is of positions that are put beside: set combine=concatenate or leave it out")
        return self

    def width(self, d_model: int, max_length: int) -> int:
        return 0 if self.combine == "add" else self.size or d_model // 4
