"""Where a token stands: one scheme, one file."""

from typing import Annotated

from pydantic import Field

from regardant.positions.base import Place, Positions, PositionsConfig
from regardant.positions.learned import LearnedConfig
from regardant.positions.sinusoidal import SinusoidalConfig

AnyPositions = Annotated[SinusoidalConfig | LearnedConfig, Field(discriminator="kind")]
"""The configurations of all schemes, told apart by `kind`."""

__all__ = ["AnyPositions", "LearnedConfig", "Place", "Positions", "PositionsConfig", "SinusoidalConfig"]
