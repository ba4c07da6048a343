"""Representations, which turn items into vectors: one file each."""

from regardant.models.representations.base import InputShape, Representation, RepresentationBuilder
from regardant.models.representations.graph import GraphNodes, GraphTensors, graph_nodes
from regardant.models.representations.graphs import GraphShape, SmallGraphs, small_graphs
from regardant.models.representations.joined import Blocks, JoinedBuilder, JoinedParts
from regardant.models.representations.patches import Patches, patches
from regardant.models.representations.series import SeriesPatches, SeriesShape, series_patches
from regardant.models.representations.sound import SoundFrames, Subsampling, sound_frames
from regardant.models.representations.tokens import TokenEmbedding, tokens
from regardant.models.representations.tubelets import Tubelets, TubeletShape, tubelets
from regardant.models.representations.waveform import WaveformBlocks, WaveformShape, waveform_blocks

__all__ = [
    "Blocks",
    "GraphNodes",
    "GraphShape",
    "GraphTensors",
    "InputShape",
    "JoinedBuilder",
    "JoinedParts",
    "Patches",
    "Representation",
    "RepresentationBuilder",
    "SeriesPatches",
    "SeriesShape",
    "SmallGraphs",
    "SoundFrames",
    "Subsampling",
    "TokenEmbedding",
    "TubeletShape",
    "Tubelets",
    "WaveformBlocks",
    "WaveformShape",
    "graph_nodes",
    "patches",
    "series_patches",
    "small_graphs",
    "sound_frames",
    "tokens",
    "tubelets",
    "waveform_blocks",
]
