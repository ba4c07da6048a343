"""Parts that learn: attention layers and other mixers, feed-forward networks, norms, residual streams, recurrence.

Importing a mixer registers it.
"""

from regardant.layers import (  # noqa: F401  # importing a module registers its kind
    convolution,
    dense,
    graph_convolution,
)
