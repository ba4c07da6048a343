"""Recurrent models: with one context for the whole target, or one for every step."""

from regardant.models.recurrent.encoder_decoder import RecurrentConfig, RecurrentEncoderDecoder
from regardant.models.recurrent.encoder_only import RecurrentEncoderConfig

__all__ = ["RecurrentConfig", "RecurrentEncoderConfig", "RecurrentEncoderDecoder"]
