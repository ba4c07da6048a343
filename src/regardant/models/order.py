"""Refusal of modules that depend on the order of elements which have none, such as the nodes of a graph."""

import torch
from torch import Tensor, nn

from regardant.attention import Attention, AttentionConfig, View
from regardant.layers.feed_forward import FeedForward, FeedForwardConfig
from regardant.layers.memory_attention import MemoryAttention
from regardant.layers.mixers import MixerConfig, TokenMixerConfig
from regardant.layers.multi_head import CrossAttention
from regardant.models.heads import Head
from regardant.models.representations import Representation


def require_mixing_by_pairs(
    encoder: nn.Module, input: Representation, mixer: MixerConfig, feed_forward: FeedForwardConfig
) -> None:
    """Raise ValueError if an encoder layer mixes elements by their order, or cannot honour their pairs and edges."""
    kinds = [mixer.kind] if _reads_order(mixer) else []
    biased = input.biases_scores
    if biased and not isinstance(mixer, AttentionConfig):
        raise ValueError(
            f"{mixer.kind} has no scores that distances or features of edges could be added to: "
            "choose attention, or data without them and input.distance_bias=0"
        )
    view = View(pairs=torch.ones(1, 1, 1, 1, dtype=torch.bool), bias=_no_bias if biased else None)
    for module in encoder.modules():
        if isinstance(module, Attention):
            module.check(view)
            if module.reads_order:
                kinds = [mixer.kind]
        if isinstance(module, FeedForward) and module.start() is not None:
            kinds = [feed_forward.kind]
    if kinds:
        raise ValueError(
            f"{kinds[0]} mixes elements by their order, and a {input.unit} has none: choose attention that compares "
            "elements (such as scaled_dot_product) or graph_convolution, and a feed-forward network of each element by "
            "itself"
        )


def require_pooling_in_any_order(head: Head, input: Representation) -> None:
    """Raise ValueError if a head reads the first or the last element."""
    if head.pooling in ("first", "last"):
        raise ValueError(
            f"pooling {head.pooling} reads an element by its position, and a {input.unit} has none: choose another "
            "pooling (such as mean)"
        )


def require_keys_in_any_order(decoder: nn.Module, source: Representation) -> None:
    """Raise ValueError if a decoder attends to the elements of its source by their order."""
    for module in decoder.modules():
        if isinstance(module, CrossAttention | MemoryAttention) and module.mechanism.reads_order:
            raise ValueError(
                f"{type(module.mechanism).__name__} attends to a source by the order of its elements, and a "
                f"{source.unit} has none: choose a cross-attention that compares elements, such as scaled_dot_product"
            )


def _no_bias(queries: Tensor, keys: Tensor) -> Tensor:
    return torch.zeros(1, len(queries), len(keys))


def _reads_order(config: MixerConfig) -> bool:
    return isinstance(config, TokenMixerConfig) and config.reads_order
