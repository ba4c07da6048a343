"""Items to vectors: one representation, one file."""

from regardant.models.representations.base import InputShape, Representation, RepresentationBuilder
from regardant.models.representations.graph import GraphNodes, GraphTensors, graph_nodes
from regardant.models.representations.patches import Patches, patches
from regardant.models.representations.series import SeriesPatches, SeriesShape, series_patches
from regardant.models.representations.tokens import TokenEmbedding, tokens

__all__ = [
    "GraphNodes",
    "GraphTensors",
    "InputShape",
    "Patches",
    "Representation",
    "RepresentationBuilder",
    "SeriesPatches",
    "SeriesShape",
    "TokenEmbedding",
    "graph_nodes",
    "patches",
    "series_patches",
    "tokens",
]
