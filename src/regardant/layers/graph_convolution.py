"""Graph convolution, in place of self-attention: a fixed weight for each edge, independent of the content of nodes.

Kipf and Welling 2017, "Semi-supervised classification with graph convolutional networks",
https://arxiv.org/abs/1609.02907, equation 2: out = D^-1/2 (A + I) D^-1/2 x W, where A + I are the pairs that may attend
and D is the number of pairs of each node. A bias is added to the sums, as in the authors' code.

Shape legend: B batch, T nodes, M d_model.
"""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regardant.attention import View
from regardant.attention.cache import BeamOrigin
from regardant.attention.listed_pairs import sum_along
from regardant.layers.cache import LayerCache
from regardant.layers.linear import Linear
from regardant.layers.mixers import TokenMixerConfig


class GraphConvolutionConfig(TokenMixerConfig):
    """Graph convolution (GCN): the weight of an edge depends on the number of neighbours at both ends."""

    kind: Literal["graph_convolution"] = "graph_convolution"

    reads_order = False

    def build(self, d_model: int, *, max_length: int, causal: bool) -> "GraphConvolution":
        if causal:
            raise ValueError("graph_convolution sums over all neighbours, earlier and later ones: use it in an encoder")
        return GraphConvolution(d_model)


class GraphConvolution(nn.Module):
    """Normalised sum over neighbours. Pairs must be symmetric; without pairs, every node is a neighbour."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.projection = Linear(d_model, d_model, bias=False)
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "B T M"], view: View, cache: LayerCache | None = None) -> Float[Tensor, "B T M"]:
        """Return the normalised sums of all nodes."""
        values = self.projection(x)[:, None]  # as for one head
        return self._sums(values, view).expand_as(x) + self.bias

    @staticmethod
    def _sums(values: Float[Tensor, "B 1 T M"], view: View) -> Float[Tensor, "B _ M"]:
        """Return the sums of all nodes, or one row if they are the same."""
        count = values.shape[2]
        if (pairs := view.listed_pairs(values, values)) is not None:
            queries, keys = pairs
            scale = queries.bincount(minlength=count).clamp(min=1).rsqrt()
            return sum_along(pairs, scale[queries] * scale[keys], values, count)[:, 0]
        mask = view.mask(values, values)
        if mask is None:
            return values.mean(2)
        scale = mask.sum(-1).clamp(min=1).rsqrt()
        weights = mask * scale[..., :, None] * scale[..., None, :]
        return (weights.to(values.dtype) @ values)[:, 0]  # padding alone masks the same keys for all nodes: one row

    def start(self, capacity: int, beam_origin: BeamOrigin | None = None) -> LayerCache:
        """Raise ValueError: a decoder cannot have this mixer."""
        raise ValueError("graph_convolution has no state between steps: use it in an encoder")
