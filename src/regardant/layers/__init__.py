"""Parts that learn: attention layers and other mixers, feed-forward networks, norms, residual streams, recurrence.

Importing a mixer registers it.
"""

from regardant.layers import convolution, dense, graph_convolution

__all__ = ["convolution", "dense", "graph_convolution"]
