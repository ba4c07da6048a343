"""How scaled dot products are computed: exact kernels that differ in speed alone.

`sdpa` is PyTorch's own (flash attention where it has it). `matmul` multiplies batched matrices and keeps the
weights for the backward pass: on sentences of some twenty tokens it trains faster on a CPU, where
the flash kernel's bfloat16 backward is slow; where none follows it leaves all to `sdpa`. Which one runs is measured on
the machine, see `planning.probes`.
`online_softmax` is flash attention to read, and is never chosen.

Shape legend: as in `attention.base`.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from regardant.attention.base import Keys, Mixed, Queries, Values, View, exact, softmax_dtype
from regardant.attention.online_softmax import online_softmax

Kernel = Callable[[Tensor, Tensor, Tensor, View, float], Tensor]
"""(q, k, v, view, scale) to mixed values."""

SHORTEST_NARROW = 64
"""Below as many keys `matmul` computes in float32 on a CPU: narrower numbers save less time there than compiling
a product for every shape of a batch takes, and the softmax is in float32 anyway; see docs/decisions/0014."""

LONGEST_MATMUL = 512
"""Beyond as many keys `matmul` hands over to `sdpa`: its weights would cost more memory than they save time."""


def sdpa(q: Queries, k: Keys, v: Values, view: View, scale: float) -> Mixed:
    """PyTorch's scaled_dot_product_attention."""
    q, k = q.to(v.dtype), k.to(v.dtype)  # where they were turned, or normed, in more digits
    if view.causal and view.asks() == {"causal"} and q.shape[2] == k.shape[2]:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale)
    added = view.additive(q, k)
    mask = None if added is None else added.to(q.dtype).expand(*q.shape[:3], k.shape[2])
    mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)
    blind = None if mask is None else view.blind(q, k)
    return mixed if blind is None else mixed.masked_fill(blind, 0)


def matmul(q: Queries, k: Keys, v: Values, view: View, scale: float) -> Mixed:
    """Batched matrix products, softmax in at least float32."""
    if k.shape[2] > LONGEST_MATMUL or not torch.is_grad_enabled():
        return sdpa(q, k, v, view, scale)
    device, dtype = q.device.type, v.dtype
    if torch.is_autocast_enabled(device):  # which reaches the forward pass only: both have to see the same tensors
        dtype = torch.get_autocast_dtype(device)
    inside = softmax_dtype(q) if device == "cpu" and k.shape[2] < SHORTEST_NARROW else dtype
    q, k, v = (_contiguous(x, inside) for x in (q, k, v))
    added, blind = view.additive(q, k), view.blind(q, k)
    with exact(q):
        mixed: Tensor = _MatmulAttention.apply(q, k, v, added, blind, scale, dtype)  # type: ignore[no-untyped-call]
    return mixed


def _contiguous(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Contiguous and in `dtype`, by one copy where it is neither."""
    return x.to(dtype, memory_format=torch.contiguous_format).contiguous()


KERNELS: dict[str, Kernel] = {"sdpa": sdpa, "matmul": matmul, "online_softmax": online_softmax}


class _MatmulAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        added: Tensor | None,
        blind: Tensor | None,
        scale: float,
        dtype: torch.dtype,
    ) -> Tensor:
        scores = q @ k.mT
        scores = scores.to(softmax_dtype(q)) * scale if added is None else torch.add(added, scores, alpha=scale)
        weights = torch.softmax(scores, -1)
        if blind is not None:
            weights = weights.masked_fill(blind, 0)
        ctx.save_for_backward(q, k, v, weights, added)
        ctx.scale = scale
        return (weights.to(v.dtype) @ v).to(dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, weights, added = ctx.saved_tensors
        gradient = _contiguous(gradients[0], v.dtype)
        to_v = weights.to(v.dtype).mT @ gradient
        to_weights = (gradient @ v.mT).to(weights.dtype)
        to_scores = torch._softmax_backward_data(to_weights, weights, -1, weights.dtype)
        to_added = to_scores.sum_to_size(added.shape) if ctx.needs_input_grad[3] else None
        to_scores = (to_scores * ctx.scale).to(q.dtype)
        return to_scores @ k, to_scores.mT @ q, to_v, to_added, None, None, None
