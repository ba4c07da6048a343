"""Blocks of raw sound at several scales to vectors: learned filters, whose energies over a block are projected.

Energies of a learned filter bank: Zeghidour et al. 2021, "LEAF: A Learnable Frontend for Audio Classification",
https://arxiv.org/abs/2101.08596, sections 3.1 to 3.3, here without Gabor filters and with the mean over a block as the
low-pass filter. Every scale has filters of its own.

Shape legend: B recordings, T blocks, N samples of a block, P periods, J blocks of a period.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regardant.models.representations.base import InputShape, Representation, RepresentationBuilder
from regardant.models.vectors import Vectors

WIDTH = 40
"""Samples of a filter (fewer if a block has fewer)."""

STRIDE = 10
"""Stride of the filters in samples."""

LEAST_ENERGY = 1e-6
"""Energy of a filter below which a block counts as silent."""


@dataclass(frozen=True)
class WaveformShape:
    """Sizes of the blocks that recordings are cut into.

    A period is one block of the coarsest scale, followed by the blocks of finer scales over the same time: a block
    comes before the finer blocks that it covers.
    """

    block: int
    """Samples of a block, at its own scale."""
    scales: Sequence[int]
    """Decimation factor of each scale, coarsest scale first; each is a multiple of the next."""

    @property
    def period(self) -> int:
        """Original samples of a period."""
        return self.block * self.scales[0]

    @cached_property
    def order(self) -> list[tuple[int, int]]:
        """Pairs (number of the scale, number of its block in the period), one for each block of a period [J]."""
        starts = [
            (number * scale, place, number)
            for place, scale in enumerate(self.scales)
            for number in range(self.scales[0] // scale)
        ]
        return [(place, number) for _, place, number in sorted(starts)]

    def places(self, scale: int) -> list[int]:
        """Return the indices in `order` of the blocks of a scale."""
        return [at for at, (place, _) in enumerate(self.order) if place == scale]


class WaveformBlocks(Representation):
    """The energies of learned filters over each block, projected."""

    unit = "block"

    def __init__(self, shape: InputShape, waveform: WaveformShape) -> None:
        super().__init__(shape)
        size = shape.element_size
        self.waveform = waveform
        width = min(WIDTH, waveform.block)
        self.filters = nn.ModuleList(nn.Conv1d(1, size, width, STRIDE, bias=False) for _ in waveform.scales)
        self.projections = nn.ModuleList(nn.Linear(size, size) for _ in waveform.scales)

    def embed(self, inputs: Float[Tensor, "B T N"]) -> Vectors:
        """Return the vectors of whole periods of blocks. Rows of NaN are padding."""
        real = ~inputs[..., 0].isnan()
        blocks = inputs.nan_to_num(0.0).unflatten(1, (-1, len(self.waveform.order)))
        vectors = []
        for scale, (filters, projection) in enumerate(zip(self.filters, self.projections, strict=True)):
            own = blocks[:, :, self.waveform.places(scale)]
            energies = filters(own.flatten(0, 2)[:, None]).square().mean(-1).clamp_min(LEAST_ENERGY).log()
            vectors.append(projection(energies.unflatten(0, own.shape[:3])))
        of_scales = torch.cat(vectors, 2)
        places = [at for scale in range(len(self.waveform.scales)) for at in self.waveform.places(scale)]
        back = torch.tensor(places, device=inputs.device).argsort()
        return Vectors(of_scales[:, :, back].flatten(1, 2), real=real)


def waveform_blocks(shape: WaveformShape) -> RepresentationBuilder:
    """Return the builder of a projection of blocks of raw sound."""
    return partial(WaveformBlocks, waveform=shape)
