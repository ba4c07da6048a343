"""Series of numbers to vectors: a series is cut into patches of consecutive steps.

Nie et al. 2023, "A Time Series is Worth 64 Words: Long-term Forecasting with Transformers" (PatchTST),
https://arxiv.org/abs/2211.14730, section 3.1. They repeat the last value at the end, once for each step of a stride S,
so that L steps have floor((L - P) / S) + 2 patches of P steps. Here the last patch ends with the history, and the first
value is repeated at the start if patches do not fit, so that there are ceil((L - P) / S) + 1: for L = 336, P = 16 and
S = 8 these are 41 patches, theirs 42. Normalisation of each series by its own mean and deviation: Kim et al. 2022,
"Reversible Instance Normalization", https://openreview.net/forum?id=cGDAkQo1C0p, without its affine part.

Shape legend: B series, L steps of history, T patches, P steps of a patch.
"""

from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regardant.models.representations.base import InputShape, Representation, RepresentationBuilder
from regardant.models.vectors import Vectors

EPSILON = 1e-5
"""Number added to the variance of a series, so that a constant series can be divided by its standard deviation."""


@dataclass(frozen=True)
class SeriesShape:
    """Sizes of the history that is read of a series, and of its patches."""

    history: int
    """Steps of the history."""
    patch_length: int
    """Steps of a patch."""
    stride: int
    """Steps from the start of a patch to that of the next."""
    instance_norm: bool = True
    """True if a series is normalised by its own mean and standard deviation, which the forecast undoes."""

    @property
    def patches(self) -> int:
        """Number of patches. The last one ends with the history."""
        return -(-(self.history - self.patch_length) // self.stride) + 1

    @property
    def padding(self) -> int:
        """Steps by which the first patch begins before the history."""
        return (self.patches - 1) * self.stride + self.patch_length - self.history

    def cut(self, series: Float[Tensor, "B L"]) -> Float[Tensor, "B T P"]:
        """Return the patches of series, which are padded with their first value at the start."""
        padded = torch.cat([series[:, :1].expand(-1, self.padding), series], 1)
        return padded.unfold(1, self.patch_length, self.stride)

    def normalise(self, series: Float[Tensor, "B L"]) -> tuple[Tensor, Tensor | None]:
        """Return series of mean 0 and variance 1, and their moments [B, 2]. Without instance_norm: `series`, None."""
        if not self.instance_norm:
            return series, None
        mean = series.mean(1, keepdim=True)
        deviation = (series.var(1, keepdim=True, correction=0) + EPSILON).sqrt()
        return (series - mean) / deviation, torch.cat([mean, deviation], 1)


class SeriesPatches(Representation):
    """A linear projection of the steps of each patch."""

    unit = "patch"

    def __init__(self, shape: InputShape, series: SeriesShape) -> None:
        super().__init__(shape)
        self.series = series
        self.projection = nn.Linear(series.patch_length, shape.element_size)

    def embed(self, inputs: Float[Tensor, "B L"]) -> Vectors:
        """Return the vectors of the patches."""
        normalised, moments = self.series.normalise(inputs)
        return Vectors(self.projection(self.series.cut(normalised)), moments=moments)


def series_patches(shape: SeriesShape) -> RepresentationBuilder:
    """Return the builder of a projection of the patches of series."""
    return partial(SeriesPatches, series=shape)
