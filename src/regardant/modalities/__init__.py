"""Modalities, the kinds of items: one file each, which reads items, encodes them and names their elements."""

from regardant.modalities.base import Codec, ModalityConfig, PartModalityConfig
from regardant.modalities.graph import GraphModalityConfig
from regardant.modalities.graphs import GraphsModalityConfig
from regardant.modalities.image import ImageModalityConfig
from regardant.modalities.joined import JoinedModalityConfig
from regardant.modalities.series import SeriesModalityConfig
from regardant.modalities.sound import SoundModalityConfig
from regardant.modalities.text import TextModalityConfig
from regardant.modalities.video import VideoModalityConfig
from regardant.modalities.waveform import WaveformModalityConfig
from regardant.pictures import Layout

__all__ = [
    "Codec",
    "GraphModalityConfig",
    "GraphsModalityConfig",
    "ImageModalityConfig",
    "JoinedModalityConfig",
    "Layout",
    "ModalityConfig",
    "PartModalityConfig",
    "SeriesModalityConfig",
    "SoundModalityConfig",
    "TextModalityConfig",
    "VideoModalityConfig",
    "WaveformModalityConfig",
]
