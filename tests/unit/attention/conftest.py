"""What the tests of mechanisms share: numbers to weigh, and exact attention to compare with."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from regardant.attention import ScaledDotProductConfig, View


@pytest.fixture
def draw() -> Callable[..., list[Tensor]]:
    """q, k and v of unit variance [B, H, n, D], float64, the same every time."""

    def drawn(length: int, *, batch: int = 2, num_heads: int = 2, head_size: int = 8) -> list[Tensor]:
        generator = torch.Generator().manual_seed(length)
        shape = (batch, num_heads, length, head_size)
        return [torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(3)]

    return drawn


@pytest.fixture
def exact() -> Callable[..., Tensor]:
    """Exact attention under a view: what a mechanism gives when its pattern leaves nothing out."""

    def mixed(q: Tensor, k: Tensor, v: Tensor, view: View | None = None) -> Tensor:
        attention = ScaledDotProductConfig().build(num_heads=q.shape[1], head_size=q.shape[3])
        return attention(q, k, v, view or View())

    return mixed
