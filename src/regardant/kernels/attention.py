"""Exact attention over few keys: scores, softmax and mixing of a head of a sentence in one program.

Flash attention loops over blocks of 64 or 128 keys, which are mostly empty where sentences have some twenty tokens.
Here all keys of a head are one block. Only the inputs are kept for the backward pass, which recomputes the weights.
Queries, keys and values are read in the memory layout of the projections, heads beside each other, and results are
written in the same layout.

Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, eq. 1; weights are recomputed as in Dao et al. 2022,
https://arxiv.org/abs/2205.14135, section 3.1.

Shape legend: B batch, H heads, Q queries, K keys, D size of a query or key, E size of a value.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable

MOST_KEYS = 128
"""Maximum number of keys of a block."""

LARGEST_HEAD = 128
"""Largest D and E."""

MOST_QUERIES = 64
"""Maximum number of queries of a block."""

LENGTHS = ["num_queries", "num_keys"]
"""Arguments that kernels are not specialised for, since they change from batch to batch."""

SMALLEST_BLOCK = 32
"""Smallest side of a block of queries or keys: half of it would be no faster, and one more kernel to compile."""

SMALLEST_SIDE = 16
"""Smallest side of a matrix product."""


def attend(
    q: Float[Tensor, "B H Q D"],
    k: Float[Tensor, "B H K D"],
    v: Float[Tensor, "B H K E"],
    real: Bool[Tensor, "B K"] | None,
    scale: float,
    *,
    causal: bool,
) -> Float[Tensor, "B H Q E"]:
    """Return softmax(q k^T scale) v over the real keys; zeros for a query without any.

    `causal` masks later keys; the last query is at the position of the last key. At most MOST_KEYS keys, and heads of
    size LARGEST_HEAD at most.
    """
    mixed: Tensor = _Attention.apply(q, k, v, real, scale, causal)  # type: ignore[no-untyped-call]
    return mixed


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, real: Tensor | None, scale: float, causal: bool) -> Tensor:
        q, k, v = (x if x.stride(3) == 1 else x.contiguous() for x in (q, k, v))
        real = None if real is None else real.contiguous()  # kernels are given no strides of the mask
        mixed = _like(q, v.shape[3])
        ctx.save_for_backward(q, k, v, real)
        ctx.scale, ctx.causal = scale, causal
        sizes = _sizes(q, k, v)
        grid = (q.shape[0] * q.shape[1], triton.cdiv(q.shape[2], sizes["BLOCK_Q"]))
        _attention_forward[grid](
            q, k, v, real, mixed, scale, *_strides(q, k, v, mixed), *_shape(q, k), causal, real is not None, **sizes
        )
        return mixed

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, real = ctx.saved_tensors
        gradient = gradients[0] if gradients[0].stride(3) == 1 else gradients[0].contiguous()
        to_q, to_k, to_v = _like(q, q.shape[3]), _like(k, k.shape[3]), _like(v, v.shape[3])
        tensors = (q, k, v, gradient, to_q, to_k, to_v)
        _attention_backward[(q.shape[0] * q.shape[1],)](
            q,
            k,
            v,
            real,
            gradient,
            to_q,
            to_k,
            to_v,
            ctx.scale,
            *_strides(*tensors),
            *_shape(q, k),
            ctx.causal,
            real is not None,
            **_sizes(q, k, v),
        )
        return to_q, to_k, to_v, None, None, None


def _like(x: Tensor, size: int) -> Tensor:
    """Return an empty [B, H, T, size] in the type of x [B, H, T, .], with heads beside each other in memory."""
    rows, heads, length, _ = x.shape
    return x.new_empty(rows, length, heads, size).transpose(1, 2)


def _strides(*tensors: Tensor) -> list[int]:
    return [stride for tensor in tensors for stride in tensor.stride()[:3]]


def _shape(q: Tensor, k: Tensor) -> tuple[int, int, int]:
    return q.shape[1], q.shape[2], k.shape[2]


def _sizes(q: Tensor, k: Tensor, v: Tensor) -> dict[str, int]:
    """Return the sizes that a kernel is compiled for, and the warps of a program."""
    queries, keys = min(_block(q.shape[2], SMALLEST_BLOCK), MOST_QUERIES), _block(k.shape[2], SMALLEST_BLOCK)
    return {
        "D": q.shape[3],
        "E": v.shape[3],
        "BLOCK_Q": queries,
        "BLOCK_K": keys,
        "num_warps": 1 if queries == keys == SMALLEST_BLOCK else 4,  # more would be idle in so small a block
        "BLOCK_D": _block(q.shape[3], SMALLEST_SIDE),
        "BLOCK_E": _block(v.shape[3], SMALLEST_SIDE),
    }


def _block(count: int, smallest: int) -> int:
    return max(smallest, int(triton.next_power_of_2(count)))


@triton.jit
def _load(start, rows, columns, stride, num_rows, num_columns):
    inside = (rows < num_rows)[:, None] & (columns < num_columns)[None, :]
    return tl.load(start + rows[:, None] * stride + columns[None, :], mask=inside, other=0.0)


@triton.jit
def _store(start, block, rows, columns, stride, num_rows, num_columns):
    inside = (rows < num_rows)[:, None] & (columns < num_columns)[None, :]
    tl.store(start + rows[:, None] * stride + columns[None, :], block.to(start.dtype.element_ty), mask=inside)


@triton.jit
def _weights(
    q, k, real, batch, queries, keys, num_queries, num_keys, scale, CAUSAL: tl.constexpr, MASKED: tl.constexpr
):
    """Return the weights of a block [Q, K] in float32."""
    scores = tl.dot(q, tl.trans(k)) * scale
    allowed = (keys < num_keys)[None, :] & (queries < num_queries)[:, None]
    if CAUSAL:
        allowed &= keys[None, :] <= queries[:, None] + (num_keys - num_queries)
    if MASKED:
        allowed &= tl.load(real + batch * num_keys + keys, mask=keys < num_keys, other=0).to(tl.int1)[None, :]
    scores = tl.where(allowed, scores, float("-inf"))
    largest = tl.max(scores, 1)
    weights = tl.exp(scores - tl.where(largest == float("-inf"), 0.0, largest)[:, None])
    total = tl.sum(weights, 1)
    return weights / tl.where(total == 0.0, 1.0, total)[:, None]


@triton.jit(do_not_specialize=LENGTHS)
def _attention_forward(
    q, k, v, real, mixed, scale,
    q_b, q_h, q_t, k_b, k_h, k_t, v_b, v_h, v_t, m_b, m_h, m_t,
    num_heads, num_queries, num_keys,
    CAUSAL: tl.constexpr, MASKED: tl.constexpr, D: tl.constexpr, E: tl.constexpr,
    BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_E: tl.constexpr,
):  # fmt: skip
    batch, head = (tl.program_id(0) // num_heads).to(tl.int64), (tl.program_id(0) % num_heads).to(tl.int64)
    queries, keys = tl.program_id(1) * BLOCK_Q + tl.arange(0, BLOCK_Q), tl.arange(0, BLOCK_K)
    of_key, of_value = tl.arange(0, BLOCK_D), tl.arange(0, BLOCK_E)
    q_block = _load(q + batch * q_b + head * q_h, queries, of_key, q_t, num_queries, D)
    k_block = _load(k + batch * k_b + head * k_h, keys, of_key, k_t, num_keys, D)
    v_block = _load(v + batch * v_b + head * v_h, keys, of_value, v_t, num_keys, E)
    weights = _weights(q_block, k_block, real, batch, queries, keys, num_queries, num_keys, scale, CAUSAL, MASKED)
    block = tl.dot(weights.to(v_block.dtype), v_block)
    _store(mixed + batch * m_b + head * m_h, block, queries, of_value, m_t, num_queries, E)


@triton.jit(do_not_specialize=LENGTHS)
def _attention_backward(
    q, k, v, real, gradient, to_q, to_k, to_v, scale,
    q_b, q_h, q_t, k_b, k_h, k_t, v_b, v_h, v_t, g_b, g_h, g_t,
    to_q_b, to_q_h, to_q_t, to_k_b, to_k_h, to_k_t, to_v_b, to_v_h, to_v_t,
    num_heads, num_queries, num_keys,
    CAUSAL: tl.constexpr, MASKED: tl.constexpr, D: tl.constexpr, E: tl.constexpr,
    BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_E: tl.constexpr,
):  # fmt: skip
    batch, head = (tl.program_id(0) // num_heads).to(tl.int64), (tl.program_id(0) % num_heads).to(tl.int64)
    keys, of_key, of_value = tl.arange(0, BLOCK_K), tl.arange(0, BLOCK_D), tl.arange(0, BLOCK_E)
    k_block = _load(k + batch * k_b + head * k_h, keys, of_key, k_t, num_keys, D)
    v_block = _load(v + batch * v_b + head * v_h, keys, of_value, v_t, num_keys, E)
    sum_k = tl.zeros((BLOCK_K, BLOCK_D), tl.float32)
    sum_v = tl.zeros((BLOCK_K, BLOCK_E), tl.float32)
    for start in range(0, num_queries, BLOCK_Q):
        queries = start + tl.arange(0, BLOCK_Q)
        q_block = _load(q + batch * q_b + head * q_h, queries, of_key, q_t, num_queries, D)
        mixed = _load(gradient + batch * g_b + head * g_h, queries, of_value, g_t, num_queries, E)
        weights = _weights(q_block, k_block, real, batch, queries, keys, num_queries, num_keys, scale, CAUSAL, MASKED)
        sum_v += tl.dot(tl.trans(weights.to(mixed.dtype)), mixed)
        to_weights = tl.dot(mixed, tl.trans(v_block))
        to_scores = weights * (to_weights - tl.sum(weights * to_weights, 1)[:, None]) * scale
        narrow = to_scores.to(q_block.dtype)
        _store(
            to_q + batch * to_q_b + head * to_q_h,
            tl.dot(narrow, k_block),
            queries,
            of_key,
            to_q_t,
            num_queries,
            D,
        )
        sum_k += tl.dot(tl.trans(narrow), q_block)
    _store(to_k + batch * to_k_b + head * to_k_h, sum_k, keys, of_key, to_k_t, num_keys, D)
    _store(to_v + batch * to_v_b + head * to_v_h, sum_v, keys, of_value, to_v_t, num_keys, E)
