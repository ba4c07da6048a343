"""Items to vectors: one representation, one file."""

from regardant.models.representations.base import InputShape, Representation, RepresentationBuilder
from regardant.models.representations.graph import GraphNodes, GraphTensors, graph_nodes
from regardant.models.representations.patches import Patches, patches
from regardant.models.representations.series import SeriesPatches, SeriesShape, series_patches
from regardant.models.representations.sound import SoundFrames, Subsampling, sound_frames
from regardant.models.representations.tokens import TokenEmbedding, tokens
from regardant.models.representations.tubelets import Tubelets, TubeletShape, tubelets

__all__ = [
    "GraphNodes",
    "GraphTensors",
    "InputShape",
    "Patches",
    "Representation",
    "RepresentationBuilder",
    "SeriesPatches",
    "SeriesShape",
    "SoundFrames",
    "Subsampling",
    "TokenEmbedding",
    "TubeletShape",
    "Tubelets",
    "graph_nodes",
    "patches",
    "series_patches",
    "sound_frames",
    "tokens",
    "tubelets",
]
