"""Permanent removal of heads from a layer; `ScaleHead` switches them off only while a context is open.

Michel et al. 2019, "Are sixteen heads really better than one?", https://arxiv.org/abs/1905.10650. `regardant measure`
prints the importance of each head.
"""

import copy
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

import torch
from torch import nn

from regardant.layers.multi_head import SelfAttention


def prune_heads(layer: SelfAttention, heads: Sequence[int]) -> SelfAttention:
    """Return a smaller layer without these heads, counted from 0; its output is that of `layer` with them switched off.

    Raises:
        ValueError: no head would be left, a head does not exist or has no projections of its own, or the mechanism or
            its positions have parameters per head.
    """
    shape = layer.shape
    kept = [head for head in range(shape.num_heads) if head not in heads]
    if not kept or len(kept) + len(set(heads)) != shape.num_heads:
        raise ValueError(
            f"heads {list(heads)} cannot be pruned from {shape.num_heads}: count them from 0, and leave one or more"
        )
    output, projection = layer.output, layer.query_key_value
    plain = layer.parts == ("query", "key", "value") and shape.num_key_heads == shape.num_heads
    if not plain or not isinstance(output, nn.Linear) or not isinstance(projection, nn.Linear):
        raise ValueError("only heads with projections of their own can be pruned: set model.projections=separate")
    own = next(chain(layer.mechanism.parameters(), layer.mechanism.buffers()), None)
    if own is not None or layer.positions.acts_on == "scores":
        raise ValueError("the mechanism or its positions have parameters per head: switch heads off by ScaleHead")
    small = copy.deepcopy(layer)
    small.shape = replace(shape, num_heads=len(kept), num_key_heads=len(kept))
    sizes = (shape.key_size, shape.key_size, shape.value_size)
    small.widths = [len(kept) * size for size in sizes]
    rows = torch.cat([_rows(kept, size, first) for size, first in zip(sizes, _starts(layer.widths), strict=True)])
    columns = _rows(kept, shape.value_size, 0)
    for linear, dim, part in ((small.query_key_value, 0, rows), (small.output, 1, columns)):
        assert isinstance(linear, nn.Linear)
        _keep(linear, dim, part)
    return small


def _keep(linear: nn.Linear, dim: int, numbers: torch.Tensor) -> None:
    """Keep the outputs (dim 0) or the inputs (dim 1) of these numbers.

    A new layer would draw random numbers, and lose the device, type and requires_grad of this one.
    """
    linear.weight = _part(linear.weight, dim, numbers)
    linear.out_features, linear.in_features = linear.weight.shape
    if dim == 0 and linear.bias is not None:
        linear.bias = _part(linear.bias, dim, numbers)


def _part(whole: torch.Tensor, dim: int, numbers: torch.Tensor) -> nn.Parameter:
    return nn.Parameter(whole.detach().index_select(dim, numbers.to(whole.device)), whole.requires_grad)


def _rows(heads: Sequence[int], size: int, first: int) -> torch.Tensor:
    return torch.cat([first + head * size + torch.arange(size) for head in heads])


def _starts(widths: Sequence[int]) -> list[int]:
    return [sum(widths[:number]) for number in range(len(widths))]
