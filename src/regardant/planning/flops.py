"""Floating-point operations, counted while a model runs.

PyTorch's counter does not know fused attention on a CPU, and counts the scores that a fused kernel recomputes in its
backward pass. Here every kernel counts as the matrix products that attention and its gradient need, over all pairs of
queries and keys: two forward, four backward. Recomputation by `model.activation_checkpointing` is counted.
"""

from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

_KERNELS = ("flash_attention_for_cpu", "flash_attention", "efficient_attention", "cudnn_attention")


def flop_counter() -> FlopCounterMode:
    """Return a context that counts the operations inside, whose `get_total_flops` returns the number."""
    operations: dict[Any, Any] = {}
    for kernel in _KERNELS:
        forward = f"_scaled_dot_product_{kernel}"
        operations[getattr(torch.ops.aten, forward)] = _forward
        operations[getattr(torch.ops.aten, f"{forward}_backward")] = _backward
    return FlopCounterMode(display=False, custom_mapping=operations)


def _forward(query: Any, key: Any, value: Any, *others: Any, **options: Any) -> int:
    """Return the operations of fused attention, from the shapes of its arguments."""
    return int(sdpa_flop_count(query, key, value))


def _backward(gradient: Any, query: Any, key: Any, value: Any, *others: Any, **options: Any) -> int:
    """Return the operations of the gradient of fused attention: two products for each one of the forward pass."""
    return 2 * int(sdpa_flop_count(query, key, value))
