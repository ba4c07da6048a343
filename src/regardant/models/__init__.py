"""Models, composed of representations, sequence models and heads. Importing a model registers it."""

from regardant.models import (
    convolutional,
    cross,
    decoder_only,
    dlinear,
    encoder_only,
    hierarchical,
    one_to_one,
    recurrent,
)
from regardant.models.base import (
    AttentionKind,
    CausalConfig,
    CausalModel,
    EncoderConfig,
    MatchingConfig,
    Model,
    SequenceToSequenceConfig,
    SequenceToSequenceModel,
)
from regardant.models.dual_encoder import DualEncoder, DualEncoderConfig
from regardant.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from regardant.models.heads import Loss, next_token
from regardant.models.representations import tokens
from regardant.models.vectors import Vectors

__all__ = [
    "AttentionKind",
    "CausalConfig",
    "CausalModel",
    "DualEncoder",
    "DualEncoderConfig",
    "EncoderConfig",
    "EncoderDecoder",
    "EncoderDecoderConfig",
    "Loss",
    "MatchingConfig",
    "Model",
    "SequenceToSequenceConfig",
    "SequenceToSequenceModel",
    "Vectors",
    "convolutional",
    "cross",
    "decoder_only",
    "dlinear",
    "encoder_only",
    "hierarchical",
    "next_token",
    "one_to_one",
    "recurrent",
    "tokens",
]
