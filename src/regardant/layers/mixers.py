"""Mixers: layers that move information between the tokens of one sequence. Self-attention is one; there are others.

A class derived from `TokenMixerConfig`, with a `kind`, adds a mixer. A class derived from `AttentionConfig` adds a
mechanism of attention, which `SelfAttention` gives projections, heads, positions and a cache.
"""

from typing import Any, ClassVar, Protocol, runtime_checkable

from torch import Tensor

from regardant.attention import AttentionConfig, MixerConfig, View
from regardant.attention.cache import BeamOrigin
from regardant.layers.cache import LayerCache
from regardant.layers.multi_head import HeadShape, Projections, SelfAttention
from regardant.positions import Positions

__all__ = ["Mixer", "MixerConfig", "TokenMixerConfig", "build_mixer"]


@runtime_checkable
class Mixer(Protocol):
    """Interface of a layer that moves information between tokens: a `torch.nn.Module`."""

    def __call__(self, x: Tensor, view: View, cache: Any = None) -> Tensor:
        """Mix all tokens [B, T, M] of a sequence; with a cache of `start`, the newest tokens [N, T, M] of every row.

        The cache is updated in place.
        """

    def start(self, capacity: int, beam_origin: BeamOrigin | None = None) -> LayerCache:
        """Return an empty cache for at most `capacity` tokens.

        beam_origin: record of beams that may share a cache. None: every row has its own.
        """


class TokenMixerConfig(MixerConfig):
    """Configuration of a mixer that is not attention."""

    reads_order: ClassVar[bool] = True
    """True if the output depends on the order of elements. False: the mixer honours the pairs of its view."""

    def build(self, d_model: int, *, max_length: int, causal: bool) -> Mixer:
        """Return the mixer of sequences of at most `max_length` tokens; `causal` in a decoder.

        Raises:
            ValueError: the mixer does not support these settings.
        """
        raise NotImplementedError


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
        ValueError: the mixer cannot use these positions, or refuses its settings.
    """
    if isinstance(config, AttentionConfig):
        return SelfAttention(shape, config, positions, projections, causal=causal)
    assert isinstance(config, TokenMixerConfig)
    if positions.acts_on in ("query_key", "scores"):
        raise ValueError(
            f"{config.kind} has no queries, keys or scores for {type(positions).__name__} positions to act on: choose "
            "positions on the input, or none"
        )
    return config.build(shape.d_model, max_length=max_length, causal=causal)
