"""Frames of sound to vectors: two convolutions over time, which halve or quarter the number of frames.

Radford et al. 2022, "Robust Speech Recognition via Large-Scale Weak Supervision" (Whisper),
https://arxiv.org/abs/2212.04356, section 2.2: two convolutions of width 3 with GELU, the second of stride 2. A quarter
of the frames, as in Gulati et al. 2020, "Conformer", https://arxiv.org/abs/2005.08100, is a stride of 2 in both.

Shape legend: B recordings, T frames after the convolutions, S frames that become one of them, K mel bands.
"""

from functools import partial
from typing import Literal

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regardant.models.representations.base import InputShape, Representation, RepresentationBuilder
from regardant.models.vectors import Vectors

Subsampling = Literal[2, 4]
"""Log-mel frames that the convolutions merge into one element."""

WIDTH = 3
"""Kernel size of the convolutions in frames."""


class SoundFrames(Representation):
    """Two convolutions over log-mel frames."""

    unit = "frame"

    def __init__(self, shape: InputShape, num_mels: int, subsampling: Subsampling) -> None:
        super().__init__(shape)
        size = shape.element_size
        self.subsampling = subsampling
        self.first = nn.Conv1d(num_mels, size, WIDTH, stride=subsampling // 2, padding=WIDTH // 2)
        self.second = nn.Conv1d(size, size, WIDTH, stride=2, padding=WIDTH // 2)

    def embed(self, inputs: Float[Tensor, "B T SK"]) -> Vectors:
        """Return the vectors of frames. Each input row holds S frames side by side; rows of NaN are padding."""
        real = ~inputs[..., 0].isnan()
        # A convolution of stride 1 reads one frame of padding, zeros as past the end of a recording that is alone.
        # A convolution of stride 2 reads none, since each item has whole elements.
        frames = inputs.nan_to_num(0.0).unflatten(2, (self.subsampling, -1)).flatten(1, 2)
        inner = F.gelu(self.first(frames.mT))
        return Vectors(F.gelu(self.second(inner)).mT, real=real)


def sound_frames(num_mels: int, subsampling: Subsampling) -> RepresentationBuilder:
    """Return the builder of convolutions over frames of `num_mels` mel bands."""
    return partial(SoundFrames, num_mels=num_mels, subsampling=subsampling)
