"""Softmax under a mask, in the precision that sums of exponentials need.

Shape legend: as in `attention.interface`.
"""

import torch
from torch import Tensor

from regardant.attention.interface import Keys, Queries, Weights
from regardant.attention.masks import View

VECTOR = 16
"""Number of float32 that a processor with AVX-512 computes at once. PyTorch's softmax computes a shorter row number by
number: six times as long."""


def exact(x: Tensor) -> torch.autocast:
    """Return a context without autocast on the device of x: exponentials and running sums need full precision."""
    return torch.autocast(x.device.type, enabled=False)


def masked_softmax(scores: Weights, q: Queries, k: Keys, view: View) -> Weights:
    """Return the softmax of scores, in `softmax_dtype`, biased and masked by the view. Fully masked rows are zeros."""
    added, fully_masked = view.additive_mask(q, k), view.fully_masked(q, k)
    if added is not None:
        scores = scores + added
    if fully_masked is None:
        return torch.softmax(scores, -1)
    # Filled before the softmax as well: its gradient over a fully masked row is NaN and would spread.
    return torch.softmax(scores.masked_fill(fully_masked, 0), -1).masked_fill(fully_masked, 0)


def softmax(scores: Tensor) -> Tensor:
    """Return the softmax over the last axis, quickly for short rows too. Gradients do not flow through it."""
    if scores.device.type != "cpu" or scores.shape[-1] >= VECTOR or not scores.numel():
        return torch.softmax(scores, -1)
    weights = (scores - scores.amax(-1, keepdim=True)).exp_()
    return weights.div_(weights.sum(-1, keepdim=True))


def softmax_backward(gradient: Tensor, weights: Tensor) -> Tensor:
    """Return the gradient of the scores from that of their softmax over the last axis."""
    if weights.device.type != "cpu" or weights.shape[-1] >= VECTOR:
        return torch._softmax_backward_data(gradient, weights, -1, weights.dtype)
    to_scores = gradient * weights
    return to_scores.addcmul_(weights, to_scores.sum(-1, keepdim=True), value=-1)


def nonzero(total: Tensor) -> Tensor:
    """Return a sum of weights to divide by: 1 in place of 0, which a fully masked query has."""
    return total.masked_fill(total == 0, 1)
