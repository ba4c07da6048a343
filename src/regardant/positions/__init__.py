"""Where a token stands: one scheme, one file. A scheme is known by being imported."""

from regardant.positions import (
    alibi,
    learned,
    none,
    one_hot,
    relative_bias,
    rotary,
    scalar,
    shaw,
    sinusoidal,
    t5,
    two_dimensional,
)
from regardant.positions.base import BlockBias, Place, Positions, PositionsConfig
from regardant.positions.sinusoidal import SinusoidalConfig

__all__ = [
    "BlockBias",
    "Place",
    "Positions",
    "PositionsConfig",
    "SinusoidalConfig",
    "alibi",
    "learned",
    "none",
    "one_hot",
    "relative_bias",
    "rotary",
    "scalar",
    "shaw",
    "sinusoidal",
    "t5",
    "two_dimensional",
]
