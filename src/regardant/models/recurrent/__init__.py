"""Recurrent models: with one context for the whole target, or one for every step."""

from regardant.models.recurrent.encoder_decoder import RecurrentConfig, RecurrentEncoderDecoder

__all__ = ["RecurrentConfig", "RecurrentEncoderDecoder"]
