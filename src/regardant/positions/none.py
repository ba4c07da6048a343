"""No positions: without them and without a causal mask, a Transformer cannot tell the order of tokens."""

from typing import Literal

from regardant.positions.base import Positions, PositionsConfig


class NoneConfig(PositionsConfig):
    """No positions, as an ablation."""

    kind: Literal["none"] = "none"

    def build(self, *, d_model: int, num_heads: int, head_size: int, max_length: int, causal: bool) -> "NoPositions":
        return NoPositions()


class NoPositions(Positions):
    """Scheme that acts nowhere."""

    acts_on = "nowhere"
