"""Position schemes, one file each. Importing a scheme registers it."""

from regardant.positions import (  # noqa: F401  # importing a module registers its kind
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
    three_dimensional,
    two_dimensional,
)
from regardant.positions.base import Place, PositionBias, Positions, PositionsConfig
from regardant.positions.sinusoidal import SinusoidalConfig

__all__ = [
    "Place",
    "PositionBias",
    "Positions",
    "PositionsConfig",
    "SinusoidalConfig",
]
