"""Sequence models, the representations they read and the heads that answer. A model is known by being imported."""

from regardant.models import decoder_only, one_to_one, recurrent
from regardant.models.base import CausalModel, CausalModelConfig, Model, ModelConfig
from regardant.models.config import EncoderDecoderConfig
from regardant.models.encoder_decoder import EncoderDecoder

__all__ = [
    "CausalModel",
    "CausalModelConfig",
    "EncoderDecoder",
    "EncoderDecoderConfig",
    "Model",
    "ModelConfig",
    "decoder_only",
    "one_to_one",
    "recurrent",
]
