"""Kinds of items: one kind, one file, which reads them, makes vectors of them and names their elements."""

from regardant.modalities.base import Codec, ModalityConfig
from regardant.modalities.text import TextModalityConfig

__all__ = ["Codec", "ModalityConfig", "TextModalityConfig"]
