"""What moves information between the tokens of one sequence: attention, or what it is compared with."""

from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from regardant.attention import AttentionConfig, MixerConfig, View
from regardant.attention.beam_keys import Ancestry
from regardant.layers.convolution import Convolution, ConvolutionConfig
from regardant.layers.dense import Dense, DenseConfig
from regardant.layers.multi_head import HeadShape, Projections, SelfAttention
from regardant.layers.remembered import Remembered
from regardant.positions import Positions

__all__ = ["Mixer", "MixerConfig", "build_mixer"]


@runtime_checkable
class Mixer(Protocol):
    """What a layer asks of it."""

    def __call__(self, x: Tensor, view: View) -> Tensor:
        """All tokens [B, T, M] at once."""

    def start(self, capacity: int, ancestry: Ancestry | None = None) -> Remembered:
        """The state before the first of at most `capacity` tokens. Beams of an ancestry may share what is kept."""

    def step(self, x: Tensor, state: Any, view: View) -> tuple[Tensor, Any]:
        """The newest tokens [N, T, M] of every row."""


def build_mixer(
    config: MixerConfig,
    shape: HeadShape,
    positions: Positions,
    projections: Projections,
    *,
    max_length: int,
    causal: bool,
) -> Mixer:
    """The mixer of a layer, for a decoder where `causal`.

    Raises:
        ValueError: the mixer does not go with the positions, or an attention not with what else is asked for.
    """
    if isinstance(config, AttentionConfig):
        return SelfAttention(shape, config, positions, projections, causal=causal)
    if positions.acts_on in ("query_key", "scores"):
        raise ValueError(
            f"{config.kind} has no queries, keys or scores for {type(positions).__name__} positions to act on: choose "
            "positions on the input, or none"
        )
    if isinstance(config, ConvolutionConfig):
        return Convolution(shape.d_model, config.kernel, causal=causal)
    assert isinstance(config, DenseConfig)
    return Dense(shape.d_model, max_length, causal=causal)
