"""How a query weighs keys: one mechanism, one file; no projections, no cache.

A mechanism is known by being imported: a new one takes a file and a line here, a user's own one a module that is
named to `regardant.load(run, plugins=[...])` or `--plugin`.
"""

from regardant.attention import (
    additive,
    cosine,
    entmax,
    general,
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
from regardant.attention.base import EVERYTHING, Attention, AttentionConfig, MixerConfig, View
from regardant.attention.kernels import KERNELS
from regardant.attention.scaled_dot_product import ScaledDotProduct, ScaledDotProductConfig

__all__ = [
    "EVERYTHING",
    "KERNELS",
    "Attention",
    "AttentionConfig",
    "MixerConfig",
    "ScaledDotProduct",
    "ScaledDotProductConfig",
    "View",
    "additive",
    "cosine",
    "entmax",
    "general",
    "hard",
    "linear",
    "linformer",
    "local_predictive",
    "location",
    "lsh",
    "performer",
    "segment",
    "sparse",
    "strided",
    "top_k",
    "window",
]
