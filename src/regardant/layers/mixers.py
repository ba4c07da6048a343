"""Layers that move information between the tokens of one sequence: self-attention, or an alternative."""

from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from regardant.attention import AttentionConfig, MixerConfig, View
from regardant.attention.cache import BeamOrigin
from regardant.layers.cache import LayerCache
from regardant.layers.convolution import Convolution, ConvolutionConfig
from regardant.layers.dense import Dense, DenseConfig
from regardant.layers.multi_head import HeadShape, Projections, SelfAttention
from regardant.positions import Positions

__all__ = ["Mixer", "MixerConfig", "build_mixer"]


@runtime_checkable
class Mixer(Protocol):
    """Interface of a layer that moves information between tokens."""

    def __call__(self, x: Tensor, view: View, cache: Any = None) -> Tensor:
        """Mix all tokens [B, T, M] of a sequence; with a cache of `start`, the newest tokens [N, T, M] of every row.

        The cache is updated in place.
        """

    def start(self, capacity: int, beam_origin: BeamOrigin | None = None) -> LayerCache:
        """Return the cache before the first of at most `capacity` tokens.

        beam_origin: of beams that may share a cache. None: every row has its own.
        """


def build_mixer(
    config: MixerConfig,
    shape: HeadShape,
    positions: Positions,
    projections: Projections,
    *,
    max_length: int,
    causal: bool,
) -> Mixer:
    """Return the mixer of a layer; `causal` in a decoder.

    Raises:
        ValueError: the mixer cannot use these positions, or an attention refuses its settings.
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
