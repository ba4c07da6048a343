"""Parts that learn: attention layers and other mixers, feed-forward networks, norms, residual streams, recurrence.

Importing a mixer registers it.
"""

from regardant.layers import convolution, dense

__all__ = ["convolution", "dense"]
