"""Named views: what each query may see. True = may be seen; a query that may see nothing mixes to zeros.

These are masks on whatever mechanism: exact attention under `window` still computes every pair, the mechanism
`window` computes only those inside.

Shape legend: B batch, K keys, N tokens.
"""

from functools import reduce

import torch
from jaxtyping import Bool
from torch import Tensor

from regardant.attention.base import View


def padding(real: Bool[Tensor, "B K"]) -> View:
    """Hide padding: `real` is True where there is a token."""
    return View(keys=real)


def causal() -> View:
    """Hide what stands later than the query."""
    return View(causal=True)


def adjacency(edges: Bool[Tensor, "N N"] | Bool[Tensor, "B N N"], *, self_loops: bool = True) -> View:
    """See along edges: edges[i, j] is True where i may look at j. Without self-loops a lonely node sees nothing."""
    if self_loops:
        edges = edges | torch.eye(edges.shape[-1], dtype=torch.bool, device=edges.device)
    return View(pairs=edges[None, None] if edges.dim() == 2 else edges[:, None])


def window(length: int, reach: int, device: torch.device | str | None = None) -> View:
    """See at most `reach` tokens to each side, for queries on that device."""
    at = torch.arange(length, device=device)
    return View(pairs=((at[:, None] - at[None, :]).abs() <= reach)[None, None])


def pairs(allowed: Bool[Tensor, "#B #H Q K"]) -> View:
    """Any pattern, spelled out."""
    return View(pairs=allowed)


def together(*views: View) -> View:
    """Everything that each of the views hides is hidden; biases and positions are not joined.

    Raises:
        ValueError: a view holds a bias or positions.
    """
    if any(view.asks() - {"causal", "keys", "pairs"} for view in views):
        raise ValueError("masks can be joined, a bias or positions cannot: put them into the joined view")
    keys = [view.keys for view in views if view.keys is not None]
    allowed = [view.pairs for view in views if view.pairs is not None]
    return View(
        causal=any(view.causal for view in views),
        keys=reduce(torch.logical_and, keys) if keys else None,
        pairs=reduce(torch.logical_and, allowed) if allowed else None,
    )
