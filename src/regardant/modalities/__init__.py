"""Kinds of items: one kind, one file, which reads them, makes vectors of them and names their elements."""

from regardant.modalities.base import Codec, ModalityConfig
from regardant.modalities.graph import GraphModalityConfig
from regardant.modalities.image import ImageModalityConfig
from regardant.modalities.series import SeriesModalityConfig
from regardant.modalities.sound import SoundModalityConfig
from regardant.modalities.text import TextModalityConfig
from regardant.modalities.video import VideoModalityConfig
from regardant.pictures import Layout

__all__ = [
    "Codec",
    "GraphModalityConfig",
    "ImageModalityConfig",
    "Layout",
    "ModalityConfig",
    "SeriesModalityConfig",
    "SoundModalityConfig",
    "TextModalityConfig",
    "VideoModalityConfig",
]
