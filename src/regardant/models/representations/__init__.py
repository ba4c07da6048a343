"""Items to vectors: one representation, one file."""

from regardant.models.representations.base import InputShape, Representation, RepresentationBuilder
from regardant.models.representations.tokens import TokenEmbedding, tokens

__all__ = ["InputShape", "Representation", "RepresentationBuilder", "TokenEmbedding", "tokens"]
