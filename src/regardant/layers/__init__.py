"""Layers of models: attention and other mixers, feed-forward networks, norms, residual streams, recurrent layers.

Importing a mixer registers it.
"""

from regardant.layers import (  # noqa: F401  # importing a module registers its kind
    convolution,
    dense,
    graph_convolution,
)
