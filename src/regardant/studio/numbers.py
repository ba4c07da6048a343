"""Tensors as JSON. Infinity and NaN, which JSON lacks, are null."""

from typing import Any

from torch import Tensor

FLOAT32_DIGITS = 7
"""Significant digits of float32."""


def plain(x: Tensor | None, digits: int = FLOAT32_DIGITS) -> Any:
    """Return nested lists of numbers, rounded to `digits` significant digits."""
    if x is None:
        return None
    if x.dim() > 1:
        return [plain(row, digits) for row in x]
    return _number(float(x), digits) if x.dim() == 0 else [_number(one, digits) for one in x.tolist()]


def _number(value: float, digits: int) -> float | None:
    return float(f"{value:.{digits}g}") if abs(value) < float("inf") else None
