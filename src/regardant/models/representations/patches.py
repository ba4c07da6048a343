"""Images to vectors: an image is cut into square patches, read row by row.

Dosovitskiy et al. 2021, "An Image is Worth 16x16 Words", https://arxiv.org/abs/2010.11929, section 3.1 (equation 1).

Shape legend: B batch, H height, W width, C channels, T patches, P side of a patch in pixels.
"""

from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regardant.models.representations.base import InputShape, Representation, RepresentationBuilder
from regardant.models.vectors import Vectors


class Patches(Representation):
    """A linear projection of the pixels of each patch.

    grid: rows and columns of patches of training images. For images of other sizes, learned positions are interpolated.
    """

    unit = "patch"

    def __init__(self, shape: InputShape, patch_size: int, channels: int, grid: tuple[int, int] | None = None) -> None:
        super().__init__(shape)
        self.patch_size, self.channels, self.grid = patch_size, channels, grid
        self.projection = nn.Linear(patch_size * patch_size * channels, shape.element_size)

    def embed(self, inputs: Float[Tensor, "B H W C"]) -> Vectors:
        """Return the vectors of the patches, with their rows and columns.

        Raises:
            ValueError: the height or the width is no multiple of the patch size.
        """
        side = self.patch_size
        batch, height, width, _ = inputs.shape
        if height % side or width % side:
            raise ValueError(
                f"images of {height} x {width} pixels cannot be cut into patches of {side} x {side}: give images whose "
                f"sides are multiples of {side}, or another patch_size"
            )
        rows, columns = height // side, width // side
        grid = inputs.reshape(batch, rows, side, columns, side, -1).transpose(2, 3)
        places = torch.cartesian_prod(
            torch.arange(rows, device=inputs.device), torch.arange(columns, device=inputs.device)
        )
        vectors = self.projection(grid.reshape(batch, rows * columns, -1))
        return Vectors(vectors, positions=places, grid=(rows, columns))


def patches(patch_size: int, channels: int, grid: tuple[int, int] | None = None) -> RepresentationBuilder:
    """Return the builder of a projection of square patches with a side of `patch_size` pixels; `grid` holds the numbers
    of their rows and columns in training images."""
    return partial(Patches, patch_size=patch_size, channels=channels, grid=grid)
