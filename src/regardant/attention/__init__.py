"""How a query weighs keys: one mechanism, one file; no projections, no cache."""

from regardant.attention.base import EVERYTHING, Attention, AttentionConfig, View
from regardant.attention.kernels import KERNELS
from regardant.attention.scaled_dot_product import ScaledDotProduct, ScaledDotProductConfig

AnyAttention = ScaledDotProductConfig
"""The configurations of all mechanisms, told apart by `kind`."""

__all__ = [
    "EVERYTHING",
    "KERNELS",
    "AnyAttention",
    "Attention",
    "AttentionConfig",
    "ScaledDotProduct",
    "ScaledDotProductConfig",
    "View",
]
