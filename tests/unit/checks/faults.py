"""Translators with the faults that one makes: models as a user adds them, which train without a complaint."""

from dataclasses import replace
from typing import Literal

from torch import nn

from regardant.attention import View
from regardant.layers.residual import Residual
from regardant.models import EncoderDecoderConfig
from regardant.models.encoder_decoder import EncoderDecoder
from regardant.models.encoder_only import EncoderOnly, EncoderOnlyConfig
from regardant.models.stacks import Decoder


class UnmaskedConfig(EncoderDecoderConfig):
    """Padding is read like words."""

    kind: Literal["unmasked"] = "unmasked"

    def build(self, source, target, head):
        model = super().build(source, target, head)
        model.__class__ = Unmasked
        return model


class Unmasked(EncoderDecoder):
    """Takes every token for a real one."""

    def encode(self, source):
        return self.encoder(replace(self.source(source), real=None))


class UnshiftedConfig(EncoderDecoderConfig):
    """The decoder reads what it has to say."""

    kind: Literal["unshifted"] = "unshifted"

    def build(self, source, target, head):
        model = super().build(source, target, head)
        model.__class__ = Unshifted
        return model


class Unshifted(EncoderDecoder):
    """Trained on targets that are not shifted."""

    def forward(self, source, target, *, targets):
        return super().forward(source, targets, targets=targets)


class ForesightedConfig(EncoderDecoderConfig):
    """The decoder sees the words that it has to write."""

    kind: Literal["foresighted"] = "foresighted"

    def build(self, source, target, head):
        model = super().build(source, target, head)
        model.decoder.__class__ = ForesightedDecoder
        return model


class ForesightedDecoder(Decoder):
    """Without a causal mask."""

    def _view(self):
        return View(bias=self.positions.shared_bias())


class DeafConfig(EncoderDecoderConfig):
    """The decoder hears nothing of the source."""

    kind: Literal["deaf"] = "deaf"

    def build(self, source, target, head):
        model = super().build(source, target, head)
        model.__class__ = Deaf
        return model


class Deaf(EncoderDecoder):
    """The encoder's words are zeroed on their way."""

    def encode(self, source):
        memory = super().encode(source)
        return replace(memory, values=0 * memory.values)


class UnnormalisedConfig(EncoderDecoderConfig):
    """No norms, and initial weights that are too large: every layer makes its input larger."""

    kind: Literal["unnormalised"] = "unnormalised"

    def build(self, source, target, head):
        model = super().build(source, target, head)
        for module in model.modules():
            if isinstance(module, Residual):
                module.norm = nn.Identity()
            if isinstance(module, nn.Linear):
                module.weight.data.mul_(2)
        model.encoder.final_norm = model.decoder.final_norm = nn.Identity()
        return model


class UnmaskedEncoderConfig(EncoderOnlyConfig):
    """An encoder that reads padding like words, and a head that pools it."""

    kind: Literal["unmasked_encoder"] = "unmasked_encoder"

    def build(self, representation, head):
        model = super().build(representation, head)
        model.__class__ = UnmaskedEncoder
        return model


class UnmaskedEncoder(EncoderOnly):
    """Takes every element for a real one."""

    def vectors(self, input):
        return self.encoder(replace(self.input(input), real=None))


class BlindConfig(EncoderOnlyConfig):
    """An encoder whose answers do not depend on its input."""

    kind: Literal["blind"] = "blind"

    def build(self, representation, head):
        model = super().build(representation, head)
        model.__class__ = Blind
        return model


class Blind(EncoderOnly):
    """The elements are zeroed on their way."""

    def vectors(self, input):
        x = self.input(input)
        return self.encoder(replace(x, values=0 * x.values))
