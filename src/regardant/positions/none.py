"""No positions: a Transformer without them sees a bag of tokens."""

from typing import Literal

from regardant.positions.base import Positions, PositionsConfig


class NoneConfig(PositionsConfig):
    """Nothing at all, to see what order is worth."""

    kind: Literal["none"] = "none"

    def build(self, *, d_model: int, num_heads: int, head_size: int, max_length: int, causal: bool) -> "NoPositions":
        return NoPositions()


class NoPositions(Positions):
    """Acts nowhere."""

    acts_on = "nowhere"
