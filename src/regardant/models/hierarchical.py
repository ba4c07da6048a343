"""Long inputs in two levels: a Transformer over the elements of each segment, and one over the segments.

Yang et al. 2016, "Hierarchical attention networks for document classification"; with Transformers: Pappagari et al.
2019, https://arxiv.org/abs/1910.10781. For n elements in segments of k the lower stack costs n k, the upper (n / k)^2.

Shape legend: B batch, T elements, K elements of a segment, S segments, M d_model.
"""

from dataclasses import replace
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field

from regardant.models.encoder_only import EncoderOnly, EncoderOnlyConfig
from regardant.models.heads.pooling import pool
from regardant.models.sequence import SequenceEncoder
from regardant.models.stacks import Encoder
from regardant.models.transformer import EncoderStackConfig
from regardant.models.vectors import Vectors
from regardant.positions import Positions
from regardant.positions.none import NoPositions
from regardant.positions.sinusoidal import sinusoids


class HierarchicalConfig(EncoderOnlyConfig):
    """A Transformer over each segment of an input, and one over the means of the segments."""

    kind: Literal["hierarchical"] = "hierarchical"  # type: ignore[assignment]  # a variant has a kind of its own

    most_keys: ClassVar[str] = "segment"

    segment: int = Field(64, gt=1)
    """Elements of a segment, which attend only to each other."""

    upper_layers: int = Field(2, gt=0, le=1000)
    """Number of layers over the segments, with scaled dot-product attention."""

    def build_encoder(self, stack: EncoderStackConfig, positions: Positions) -> SequenceEncoder:
        lower = Encoder(self, stack, positions, self.segment)
        segments = -(-self.max_length // self.segment)
        upper = Encoder(self, EncoderStackConfig(num_layers=self.upper_layers), NoPositions(), segments)
        return HierarchicalEncoder(lower, upper, self.segment)

    def require_any_order(self, model: EncoderOnly) -> None:
        raise ValueError(
            f"hierarchical cuts an input into segments by the order of its elements, and a {model.input.unit} has "
            "none: set model.kind=encoder_only"
        )


class HierarchicalEncoder(SequenceEncoder):
    """Encoder that adds to each element's vector of the lower stack the vector of its segment.

    Attention is within segments and among segments, so that there is no matrix of all pairs of elements.
    """

    def __init__(self, lower: Encoder, upper: Encoder, segment: int) -> None:
        super().__init__()
        self.lower, self.upper, self.segment = lower, upper, segment

    def forward(self, x: Vectors) -> Vectors:
        """Return the vectors of all elements.

        Raises:
            ValueError: the elements have pairs or edges, such as those of a graph.
        """
        if x.pairs is not None or x.edges is not None:
            raise ValueError("segments cut a graph's edges: choose model.kind=encoder_only")
        batch, length, size = x.values.shape
        missing = -length % self.segment
        given = x.values.new_ones(batch, length, dtype=torch.bool) if x.real is None else x.real
        real = F.pad(given, (0, missing)).view(-1, self.segment)
        values = F.pad(x.values, (0, 0, 0, missing)).view(-1, self.segment, size)
        read = self.lower(Vectors(values, real)).values
        of_segments = pool(Vectors(read, real), "mean").view(batch, -1, size)
        count = of_segments.shape[1]
        places = sinusoids(torch.arange(count, device=read.device), size).to(of_segments.dtype)
        above = self.upper(Vectors(of_segments + places, real.any(1).view(batch, count))).values
        joined = read.view(batch, -1, size) + above.repeat_interleave(self.segment, 1)
        return replace(x, values=joined[:, :length])
