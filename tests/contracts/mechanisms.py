"""Every mechanism that keeps the contracts.

The list of mechanisms is the package's own, so a new one is tested before its author writes a test; a plugin shows
that the same holds for what users add.
"""

import functools
from collections.abc import Callable
from typing import Any

from regardant.attention import KERNELS, Attention, AttentionConfig, ScaledDotProduct
from regardant.checks.contracts import maker

from . import plugins  # noqa: F401  which adds a mechanism

NARROW: dict[str, dict[str, Any]] = {
    "entmax": {"alpha": 2.0},
    "linformer": {"rank": 3},
    "local_predictive": {"window": 1},
    "lsh": {"num_buckets": 4, "num_rounds": 3, "reach": 1},
    "performer": {"num_features": 20},
    "scaled_dot_product": {"scaled": False, "temperature": 2.0},
    "segment": {"segment": 2},
    "sparse": {"window": 1, "stride": 2, "num_strides": 2, "num_global": 1},
    "strided": {"stride": 2, "num_strides": 1},
    "top_k": {"k": 2},
    "window": {"window": 1},
}
"""Settings under which a mechanism leaves something out even of so few tokens."""


def mechanisms() -> dict[str, Callable[[], Attention]]:
    """What makes each mechanism, by its kind; exact attention once for each of its kernels."""
    made: dict[str, Callable[[], Attention]] = {}
    for kind, config in AttentionConfig.kinds().items():
        for name, settings in {kind: {}, f"{kind}/narrow": NARROW.get(kind)}.items():
            if settings is None:
                continue
            make = maker(config(**settings))
            if isinstance(make(), ScaledDotProduct):
                made |= {f"{name}/{kernel}": functools.partial(_with_kernel, make, kernel) for kernel in KERNELS}
            else:
                made[name] = make
    return made


def _with_kernel(make: Callable[[], Attention], kernel: str) -> Attention:
    attention: Any = make()
    attention.kernel = KERNELS[kernel]
    return attention


MECHANISMS = mechanisms()
