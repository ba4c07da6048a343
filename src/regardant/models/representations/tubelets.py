"""Videos to vectors: a video is cut into tubelets, square patches over a few frames.

Arnab et al. 2021, "ViViT: A Video Vision Transformer", https://arxiv.org/abs/2103.15691, section 3.2 (tubelet
embedding).

Shape legend: B batch, F frames, H height, W width, C channels, T tubelets.
"""

from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regardant.models.representations.base import InputShape, Representation, RepresentationBuilder
from regardant.models.vectors import Vectors


@dataclass(frozen=True)
class TubeletShape:
    """The sizes of a tubelet."""

    frames: int
    side: int
    """Side of its patch in pixels."""
    channels: int


class Tubelets(Representation):
    """A linear projection of the pixels of each tubelet."""

    unit = "tubelet"

    def __init__(self, shape: InputShape, tubelet: TubeletShape) -> None:
        super().__init__(shape)
        self.tubelet = tubelet
        self.projection = nn.Linear(tubelet.frames * tubelet.side**2 * tubelet.channels, shape.element_size)

    def embed(self, inputs: Float[Tensor, "B F H W C"]) -> Vectors:
        """Return the vectors of the tubelets, time by time and row by row, with their times, rows and columns."""
        frames, side = self.tubelet.frames, self.tubelet.side
        batch, length, height, width, _ = inputs.shape
        grid = (length // frames, height // side, width // side)
        blocks = inputs.reshape(batch, grid[0], frames, grid[1], side, grid[2], side, -1)
        numbers = blocks.permute(0, 1, 3, 5, 2, 4, 6, 7).flatten(4).flatten(1, 3)
        places = torch.cartesian_prod(*(torch.arange(size, device=inputs.device) for size in grid))
        return Vectors(self.projection(numbers), positions=places, grid=grid)


def tubelets(shape: TubeletShape) -> RepresentationBuilder:
    """Return the builder of a projection of tubelets."""
    return partial(Tubelets, tubelet=shape)
