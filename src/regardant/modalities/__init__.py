"""Kinds of items: one kind, one file, which reads them, makes vectors of them and names their elements."""

from regardant.modalities.base import Codec, Layout, ModalityConfig
from regardant.modalities.image import ImageModalityConfig
from regardant.modalities.text import TextModalityConfig

__all__ = ["Codec", "ImageModalityConfig", "Layout", "ModalityConfig", "TextModalityConfig"]
