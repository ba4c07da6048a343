"""Recurrent encoder-decoders: with one context for the whole target, or one for every step."""

from regardant.models.recurrent.config import RecurrentConfig
from regardant.models.recurrent.model import RecurrentEncoderDecoder

__all__ = ["RecurrentConfig", "RecurrentEncoderDecoder"]
