"""Attention mechanisms, one file each, without projections.

Importing a mechanism registers it. To add one, add a file and a line here; a user's own mechanism is a module passed to
`regardant.load(run, plugins=[...])` or `--plugin`.
"""

from regardant.attention import (  # noqa: F401  # importing a module registers its kind
    additive,
    cosine,
    entmax,
    general,
    graph_attention,
    hard,
    linear,
    linformer,
    local_predictive,
    location,
    lsh,
    performer,
    segment,
    sparse,
    strided,
    top_k,
    window,
)
from regardant.attention.interface import Attention, AttentionConfig, MixerConfig
from regardant.attention.masks import EVERYTHING, PassView, View
from regardant.attention.scaled_dot_product import KERNELS, ScaledDotProduct, ScaledDotProductConfig

__all__ = [
    "EVERYTHING",
    "KERNELS",
    "Attention",
    "AttentionConfig",
    "MixerConfig",
    "PassView",
    "ScaledDotProduct",
    "ScaledDotProductConfig",
    "View",
]
