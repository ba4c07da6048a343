"""Translators with the faults that one makes: models as a user adds them, which train without a complaint."""

from typing import Literal

import torch
from torch import nn

from regardant.attention import View
from regardant.layers.residual import Residual
from regardant.models import EncoderDecoderConfig
from regardant.models.base import Vectors
from regardant.models.decoder import Decoder
from regardant.models.encoder_decoder import EncoderDecoder


class UnmaskedConfig(EncoderDecoderConfig):
    """Padding is read like words."""

    kind: Literal["unmasked"] = "unmasked"

    def build(self, source_vocab_size, target_vocab_size):
        return Unmasked(self, source_vocab_size, target_vocab_size)


class Unmasked(EncoderDecoder):
    """Takes every token for a real one."""

    def encode(self, source):
        everything = torch.ones_like(source, dtype=torch.bool)
        return Vectors(self.encoder(self.source(source), everything), everything)


class UnshiftedConfig(EncoderDecoderConfig):
    """The decoder reads what it has to say."""

    kind: Literal["unshifted"] = "unshifted"

    def build(self, source_vocab_size, target_vocab_size):
        return Unshifted(self, source_vocab_size, target_vocab_size)


class Unshifted(EncoderDecoder):
    """Trained on targets that are not shifted."""

    def forward(self, source, target, label_smoothing=0.0, z_loss=0.0):
        said = target[:, 1:]
        return self.head.loss(self._decode(source, said), said, label_smoothing, z_loss)


class ForesightedConfig(EncoderDecoderConfig):
    """The decoder sees the words that it has to write."""

    kind: Literal["foresighted"] = "foresighted"

    def build(self, source_vocab_size, target_vocab_size):
        return Foresighted(self, source_vocab_size, target_vocab_size)


class ForesightedDecoder(Decoder):
    """Without a causal mask."""

    def _view(self):
        return View(bias=self.positions.shared_bias())


class Foresighted(EncoderDecoder):
    """With such a decoder."""

    def __init__(self, config, source_vocab_size, target_vocab_size):
        super().__init__(config, source_vocab_size, target_vocab_size)
        self.decoder.__class__ = ForesightedDecoder


class DeafConfig(EncoderDecoderConfig):
    """The decoder hears nothing of the source."""

    kind: Literal["deaf"] = "deaf"

    def build(self, source_vocab_size, target_vocab_size):
        return Deaf(self, source_vocab_size, target_vocab_size)


class Deaf(EncoderDecoder):
    """The encoder's words are zeroed on their way."""

    def encode(self, source):
        read = super().encode(source)
        return Vectors(0 * read.values, read.real)


class UnnormalisedConfig(EncoderDecoderConfig):
    """No norms, and initial weights that are too large."""

    kind: Literal["unnormalised"] = "unnormalised"

    def build(self, source_vocab_size, target_vocab_size):
        return Unnormalised(self, source_vocab_size, target_vocab_size)


class Unnormalised(EncoderDecoder):
    """Every layer makes what it reads larger."""

    def __init__(self, config, source_vocab_size, target_vocab_size):
        super().__init__(config, source_vocab_size, target_vocab_size)
        for module in self.modules():
            if isinstance(module, Residual):
                module.norm = nn.Identity()
            if isinstance(module, nn.Linear):
                module.weight.data.mul_(2)
        self.encoder.final_norm = self.decoder.final_norm = nn.Identity()
