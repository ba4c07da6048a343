"""Scaled dot-product attention, softmax(Q K^T / sqrt(d_k)) V, and the exact kernels that compute it.

Vaswani et al. 2017, "Attention is all you need", https://arxiv.org/abs/1706.03762, eq. 1.

Kernels differ in speed, and for inputs narrower than float32 in rounding: `sdpa` rounds a bias to the type of the
inputs, `matmul` adds it in float32. `sdpa` is PyTorch's own (flash attention where it has it). `matmul` multiplies
batched matrices and keeps the weights for the backward pass: on sentences of some twenty tokens it trains faster on a
CPU, where the flash kernel's bfloat16 backward is slow. For longer causal texts in bfloat16 `causal_tiles` takes its
place, for other long sequences `sdpa`. `triton` reads all keys of a short sequence at once on an accelerator.
`online_softmax` is flash attention in readable form and is never chosen. `planning.probes` chooses the kernel for
training, on a CPU by measuring.

Shape legend: as in `attention.interface`; P pairs.
"""

import math
from collections.abc import Callable
from typing import Any, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from regardant.attention.causal_tiles import TILE, attend_in_causal_tiles
from regardant.attention.interface import AttentionConfig, Keys, Mixed, Queries, Values, Weights
from regardant.attention.listed_pairs import attend_along
from regardant.attention.masks import View, product_dtype, softmax_dtype
from regardant.attention.online_softmax import online_softmax
from regardant.attention.scored import ScoredAttention
from regardant.attention.softmax import exact, softmax, softmax_backward
from regardant.kernels import available

Kernel = Callable[[Tensor, Tensor, Tensor, View, float], Tensor]
"""(q, k, v, view, scale) to mixed values."""

SHORTEST_NARROW = 64
"""Number of keys below which `matmul` computes in float32 on a CPU: a narrower type saves less time there than it
takes to compile a product for every shape of a batch; see docs/decisions/0014."""

LONGEST_MATMUL = 512
"""Number of keys above which `matmul` is replaced: storing its weights would cost more than it saves."""


class ScaledDotProductConfig(AttentionConfig):
    """softmax(Q K^T / sqrt(d_k)) V."""

    kind: Literal["scaled_dot_product"] = "scaled_dot_product"

    scaled: bool = True
    """True divides scores by sqrt(d_k). False gives Luong's dot score."""

    temperature: float = Field(1.0, gt=0)
    """Divisor of the scores: near 0 the best key gets all the weight, far above 1 all keys get the same."""

    def build(self, *, num_heads: int, head_size: int) -> "ScaledDotProduct":
        return ScaledDotProduct(head_size, scaled=self.scaled, temperature=self.temperature)


class ScaledDotProduct(ScoredAttention):
    """Exact attention over every key."""

    lists_pairs = True
    shared_beam_cache = True

    def __init__(self, head_size: int, *, scaled: bool = True, temperature: float = 1.0) -> None:
        super().__init__()
        self.scale = (1 / math.sqrt(head_size) if scaled else 1.0) / temperature
        self.kernel: Kernel = sdpa

    def compute_scores(self, q: Queries, k: Keys, view: View) -> Weights:
        return (q @ k.mT).to(softmax_dtype(q)) * self.scale

    def mix(self, q: Queries, k: Keys, v: Values, view: View) -> Mixed:
        if (pairs := view.listed_pairs(q, k)) is not None:
            return attend_along(pairs, self._score, self.drop, q, k, v)
        kernel = self.kernel
        # `matmul` gains only where a backward pass uses the weights that it keeps.
        if kernel is matmul and not torch.is_grad_enabled():
            kernel = sdpa
        elif kernel is matmul and k.shape[2] > TILE and _suits_tiles(q, k, v, view):
            kernel = causal_tiles
        elif kernel is matmul and k.shape[2] > LONGEST_MATMUL:
            kernel = sdpa
        return kernel(q, k, v, view, self.scale)

    def mix_groups(self, q: Queries, k: Keys, v: Values, view: View) -> Mixed | None:
        if q.shape[2] >= k.shape[2] or torch.is_grad_enabled() or view.pairs is not None:
            return None  # not a decoding step
        if self.kernel not in (sdpa, matmul, triton) or type(self).mix is not ScaledDotProduct.mix:
            return None
        drops = self.training and not isinstance(self.drop, nn.Identity)
        return None if drops else grouped_sdpa(q, k, v, view, self.scale)

    def _score(self, q: Float[Tensor, "B H P D"], k: Float[Tensor, "B H P D"]) -> Float[Tensor, "B H P"]:
        return (q * k).sum(-1) * self.scale


def sdpa(q: Queries, k: Keys, v: Values, view: View, scale: float) -> Mixed:
    """Run PyTorch's scaled_dot_product_attention."""
    q, k = q.to(v.dtype), k.to(v.dtype)  # rotated or normalised queries and keys may be wider
    if _is_causal_alone(q, k, view):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale)
    added = view.additive_mask(q, k)
    mask = None if added is None else view.rounded(added, q.dtype).expand(*q.shape[:3], k.shape[2])
    mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)
    fully_masked = None if mask is None else view.fully_masked(q, k)
    return mixed if fully_masked is None else mixed.masked_fill(fully_masked, 0)


def grouped_sdpa(q: Queries, k: Keys, v: Values, view: View, scale: float) -> Mixed:
    """Run `sdpa` with fewer key heads: the query heads that share a key head are queries of one head.

    Repeating key heads would copy all keys and values at every step.
    """
    group = q.shape[1] // k.shape[1]
    added, fully_masked = view.additive_mask(q, k), view.fully_masked(q, k)
    if added is not None:
        heads = group if added.shape[1] == 1 else q.shape[1]
        added = _group(added.to(v.dtype).expand(-1, heads, q.shape[2], -1), group).expand(*k.shape[:2], -1, -1)
    queries = _group(q, group).to(v.dtype)
    mixed = F.scaled_dot_product_attention(queries, k.to(v.dtype), v, attn_mask=added, scale=scale)
    mixed = mixed.unflatten(2, (group, -1)).flatten(1, 2)
    return mixed if fully_masked is None else mixed.masked_fill(fully_masked, 0)


def _group(x: Float[Tensor, "B H Q D"], group: int) -> Float[Tensor, "B G Q2 D"]:
    return x.unflatten(1, (-1, group)).flatten(2, 3)  # head h reads key head h // group


def triton(q: Queries, k: Keys, v: Values, view: View, scale: float) -> Mixed:
    """Run the kernel of `regardant.kernels.attention`, or `sdpa` where its limits are exceeded."""
    if not available(q.device) or not view.asked <= {"causal", "keys"}:
        return sdpa(q, k, v, view, scale)
    from regardant.kernels.attention import LARGEST_HEAD, MOST_KEYS, attend

    if k.shape[2] > MOST_KEYS or max(k.shape[3], v.shape[3]) > LARGEST_HEAD or v.element_size() != 2:
        return sdpa(q, k, v, view, scale)
    return attend(q.to(v.dtype), k.to(v.dtype), v, view.keys, scale, causal=view.causal)


def matmul(q: Queries, k: Keys, v: Values, view: View, scale: float) -> Mixed:
    """Multiply batched matrices, with sums of the softmax in at least float32."""
    dtype = product_dtype(v)  # autocast reaches the forward pass only, and both must see the same tensors
    inside = softmax_dtype(q) if q.device.type == "cpu" and k.shape[2] < SHORTEST_NARROW else dtype
    added, fully_masked = view.additive_mask(q, k), view.fully_masked(q, k)
    with exact(q):
        if inside != softmax_dtype(q) and view.bias is None:
            q, k, v = (_contiguous(x, inside) for x in (q, k, v))
            mask = None if added is None else added.to(inside)  # 0 or minus infinity in any type
            narrow: Tensor = _NarrowAttention.apply(q, k, v, mask, fully_masked, scale)  # type: ignore[no-untyped-call]
            return narrow
        mixed: Tensor = _MatmulAttention.apply(q, k, v, added, fully_masked, scale, (inside, dtype))  # type: ignore[no-untyped-call]
    return mixed


def causal_tiles(q: Queries, k: Keys, v: Values, view: View, scale: float) -> Mixed:
    """Run the products of `attention.causal_tiles`, for a view that is causal and no more."""
    return attend_in_causal_tiles(q, k, v, scale)


def _suits_tiles(q: Tensor, k: Tensor, v: Tensor, view: View) -> bool:
    """Return whether products are in bfloat16 on a CPU and the view is causal and no more."""
    return q.device.type == "cpu" and product_dtype(v) == torch.bfloat16 and _is_causal_alone(q, k, view)


def _is_causal_alone(q: Tensor, k: Tensor, view: View) -> bool:
    return view.causal and view.asked == {"causal"} and q.shape[2] == k.shape[2]


KERNELS: dict[str, Kernel] = {"sdpa": sdpa, "matmul": matmul, "triton": triton, "online_softmax": online_softmax}


def _contiguous(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Return x contiguous and in `dtype`, by one copy where it is neither."""
    return x.to(dtype, memory_format=torch.contiguous_format).contiguous()


def _by_token(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Return x in `dtype`. A copy is stored by token, as projections store heads, and is merged without another."""
    if x.dtype == dtype:
        return x
    return x.new_empty(x.transpose(1, 2).shape, dtype=dtype).copy_(x.transpose(1, 2)).transpose(1, 2)


class _MatmulAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        added: Tensor | None,
        fully_masked: Tensor | None,
        scale: float,
        dtypes: tuple[torch.dtype, torch.dtype],
    ) -> Tensor:
        inside, dtype = dtypes  # of the products, and of the output
        ctx.dtypes = q.dtype, k.dtype, v.dtype
        q, k, v = (_contiguous(x, inside) for x in (q, k, v))
        scores = q @ k.mT
        scores = scores.to(softmax_dtype(q)) * scale if added is None else torch.add(added, scores, alpha=scale)
        weights = softmax(scores)
        if fully_masked is not None:
            weights = weights.masked_fill(fully_masked, 0)
        ctx.save_for_backward(q, k, v, weights)
        ctx.added_shape = None if added is None else added.shape
        ctx.scale = scale
        return _by_token(weights.to(v.dtype) @ v, dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, weights = ctx.saved_tensors
        gradient = _contiguous(gradients[0], v.dtype)
        to_v = weights.to(v.dtype).mT @ gradient
        to_weights = (gradient @ v.mT).to(weights.dtype)
        to_scores = softmax_backward(to_weights, weights)
        to_added = to_scores.sum_to_size(ctx.added_shape) if ctx.needs_input_grad[3] else None
        to_scores = (to_scores * ctx.scale).to(q.dtype)
        found = zip((to_scores @ k, to_scores.mT @ q, to_v), ctx.dtypes, strict=True)
        return *(_by_token(gradient, dtype) for gradient, dtype in found), to_added, None, None, None


class _NarrowAttention(torch.autograd.Function):
    """Form of `_MatmulAttention` in a narrow type, without a bias. Scores and weights are narrow too, as products read
    them so anyway: half of the memory traffic."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, fully_masked: Tensor | None, scale: float
    ) -> Tensor:
        q = q * scale  # there are fewer queries than scores
        scores = q @ k.mT
        weights = torch.softmax(scores if mask is None else scores.add_(mask), -1)  # sums are in float32
        if fully_masked is not None:
            weights.masked_fill_(fully_masked, 0)
        ctx.save_for_backward(q, k, v, weights)
        ctx.scale = scale
        return weights @ v

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, weights = ctx.saved_tensors
        gradient = _contiguous(gradients[0], v.dtype)
        to_scores = torch._softmax_backward_data(gradient @ v.mT, weights, -1, weights.dtype)
        return (to_scores @ k) * ctx.scale, to_scores.mT @ q, weights.mT @ gradient, None, None, None
