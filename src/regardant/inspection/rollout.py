"""Attention rollout and attention flow, which trace attention through the layers down to the input tokens.

Both assume that a layer's output is half residual connection and half the mean of its heads, with weights W_l:

    A_l = (W_l + I) / 2, rows normalised
    rollout   A_l A_(l-1) ... A_1
    flow      the maximum flow from a token of layer l to a token of the input, with A as the capacities of the edges
              between layers

Abnar and Zuidema 2020, https://arxiv.org/abs/2005.00928, section 3.

Shape legend: L layers, H heads, N tokens.
"""

import numpy as np
import torch
from torch import Tensor

UNIT = 10**8
"""Integer capacity of a share of 1: SciPy takes int32 capacities, and the sum of a row stays below 2^31."""


def with_residual(weights: Tensor) -> Tensor:
    """Return A of every layer [L, N, N], from attention among the tokens of one sequence [L, H, N, N]."""
    mean = weights.double().clamp(min=0).mean(1)
    passed = mean / mean.sum(-1, keepdim=True).clamp(min=torch.finfo(mean.dtype).tiny)
    joined = passed + torch.eye(mean.shape[-1], dtype=mean.dtype)
    return joined / joined.sum(-1, keepdim=True)


def rollout(weights: Tensor) -> Tensor:
    """Return the share of each input token in each token after every layer [L, N, N]. Rows sum to one."""
    found: list[Tensor] = []
    for layer in with_residual(weights):
        found.append(layer @ found[-1] if found else layer)
    return torch.stack(found)


def flow(weights: Tensor) -> Tensor:
    """Return the maximum flow from each token of the last layer to each input token [N, N].

    Values are at most 1, but rows may sum to more.

    Costs N^2 searches of a graph of (L + 1) N nodes: a second for 20 tokens of 4 layers.
    """
    from scipy.sparse import csr_array  # imported here: it takes part of a second
    from scipy.sparse.csgraph import maximum_flow

    layers = with_residual(weights).numpy()
    depth, size = len(layers), layers.shape[-1]
    # Node (l, i) is l N + i, the input being layer 0; edges go down.
    capacities = np.zeros(((depth + 1) * size,) * 2, dtype=np.int32)
    for number, layer in enumerate(layers):
        above, below = (slice(at * size, (at + 1) * size) for at in (number + 1, number))
        capacities[above, below] = np.round(layer * UNIT)
    graph = csr_array(capacities)
    found = [[maximum_flow(graph, depth * size + i, j).flow_value for j in range(size)] for i in range(size)]
    return torch.tensor(found, dtype=torch.float64) / UNIT
