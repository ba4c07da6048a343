"""Recurrent models: encoder-decoders, encoders of one input, language models."""

from regardant.models.recurrent.decoder_only import RecurrentLanguageModel, RecurrentLanguageModelConfig
from regardant.models.recurrent.encoder_decoder import RecurrentConfig, RecurrentEncoderDecoder
from regardant.models.recurrent.encoder_only import RecurrentEncoderConfig

__all__ = [
    "RecurrentConfig",
    "RecurrentEncoderConfig",
    "RecurrentEncoderDecoder",
    "RecurrentLanguageModel",
    "RecurrentLanguageModelConfig",
]
