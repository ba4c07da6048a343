"""A convolutional network for images: the baseline of Vision Transformers.

Stages of 3 x 3 convolutions that halve the sides and double the channels: Simonyan and Zisserman 2015, "VGG",
https://arxiv.org/abs/1409.1556, section 2.1; halved by strides, Springenberg et al. 2015,
https://arxiv.org/abs/1412.6806; normalised by layer norm of all channels of an image, Wu and He 2018,
https://arxiv.org/abs/1803.08494 (one group), which needs no batch statistics.

Shape legend: B images, H height, W width, C channels, T places after the last stage, M features.
"""

from typing import Literal

from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from regardant.layers.dropout import Dropout, share_key
from regardant.models.base import EncoderConfig
from regardant.models.encoder_only import EncoderOnly, NoMixing
from regardant.models.heads import HeadBuilder
from regardant.models.representations import InputShape, Patches, Representation, RepresentationBuilder
from regardant.models.vectors import Vectors
from regardant.positions.none import NoPositions


class ConvolutionalConfig(EncoderConfig):
    """3 x 3 convolutions over the pixels of an image. They need `input.kind: image` and a head that pools `mean` or
    `max`; patches count only towards `max_length` and the size of batches."""

    kind: Literal["convolutional"] = "convolutional"

    channels: int = Field(32, gt=0)
    """Channels of the first stage. Each later stage has twice as many as the one before."""

    num_stages: int = Field(2, gt=0)
    """Number of stages of two convolutions. Each but the first begins by halving the sides of the image."""

    dropout: float = Field(0.1, ge=0, lt=1)
    """Probability that a value is zeroed, after each stage."""

    @property
    def d_model(self) -> int:
        """Number of features of a place after the last stage."""
        return self.channels * 2 ** (self.num_stages - 1)

    def build(self, representation: RepresentationBuilder, head: HeadBuilder) -> EncoderOnly:
        patches = representation(InputShape(1, NoPositions()))
        if not isinstance(patches, Patches):
            raise ValueError(
                f"convolutional reads images, not {patches.unit}s: set input.kind=image, or another model.kind"
            )
        answers = head(self.d_model)
        if (vector := answers.single_vector) is not None:
            raise ValueError(f"convolutional does not mix the whole image into {vector}: set head.pooling=mean or max")
        model = EncoderOnly(self, ConvolutionalFeatures(self, patches.channels), NoMixing(), answers)
        model.dropout_key = share_key(model)
        return model


class ConvolutionalFeatures(Representation):
    """The features of each place of an image after all stages."""

    unit = "place"

    def __init__(self, config: ConvolutionalConfig, channels: int) -> None:
        super().__init__(InputShape(config.d_model, NoPositions()))
        stages: list[nn.Module] = []
        for number in range(config.num_stages):
            width = config.channels * 2**number
            stages += [*_convolution(channels, width, stride=2 if number else 1), *_convolution(width, width)]
            stages.append(Dropout(config.dropout))
            channels = width
        self.stages = nn.Sequential(*stages)

    def embed(self, inputs: Float[Tensor, "B H W C"]) -> Vectors:
        """Return the features [B, T, M] of places, row by row."""
        features: Tensor = self.stages(inputs.permute(0, 3, 1, 2))
        return Vectors(features.flatten(2).mT)


def _convolution(channels: int, width: int, stride: int = 1) -> list[nn.Module]:
    return [nn.Conv2d(channels, width, 3, stride=stride, padding=1), nn.GroupNorm(1, width), nn.GELU()]
