"""Sequence models, the representations they read and the heads that answer. A model is known by being imported."""

from regardant.models import one_to_one, recurrent
from regardant.models.base import Model, ModelConfig
from regardant.models.config import EncoderDecoderConfig
from regardant.models.encoder_decoder import EncoderDecoder

__all__ = ["EncoderDecoder", "EncoderDecoderConfig", "Model", "ModelConfig", "one_to_one", "recurrent"]
