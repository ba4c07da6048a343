"""A mask composed of parts by `attention.masks`, for the page *Step through*."""

import re
from typing import Annotated, Any

import torch
from pydantic import BaseModel, Field

from regardant.attention import masks
from regardant.attention.masks import View
from regardant.errors import DataError

EDGE = re.compile(r"(\d+)\s*[-:>]+\s*(\d+)")
LONGEST = 64
"""Largest number of tokens of a legible matrix."""


class AskedMask(BaseModel):
    """Request for a mask composed of parts."""

    length: Annotated[int, Field(ge=1, le=LONGEST)] = 10
    padding: Annotated[int, Field(ge=0, le=LONGEST)] = 0
    """Number of last tokens that are padding."""
    causal: bool = False
    window: Annotated[int, Field(ge=0, le=LONGEST)] | None = None
    """Tokens to each side that a query may attend to."""
    edges: Annotated[str, Field(max_length=2000)] = ""
    """Pairs (query, key) that may attend, counted from 1, as "1-2, 4-3". A token always attends to itself."""


def composed(asked: AskedMask) -> dict[str, Any]:
    """Return the mask of each part, the joint mask, the weights of equal scores under it, and the code that builds it.

    Raises DataError for edges that cannot be read.
    """
    parts: dict[str, tuple[str, View]] = {}
    if asked.padding:
        real = torch.arange(asked.length) < asked.length - asked.padding
        parts["padding"] = (
            f"padding(torch.arange({asked.length})[None] < {asked.length - asked.padding})",
            masks.padding(real[None]),
        )
    if asked.causal:
        parts["causal"] = ("causal()", masks.causal())
    if asked.window is not None:
        parts["window"] = (f"window({asked.length}, {asked.window})", masks.window(asked.length, asked.window))
    if asked.edges.strip():
        parts["edges"] = ("adjacency(edges)", masks.adjacency(_edges(asked)))
    joined = masks.combine(*(view for _, view in parts.values()))
    allowed = _matrix(joined, asked.length)
    seen = allowed.sum(-1, keepdim=True)
    codes = ", ".join(code for code, _ in parts.values())
    return {
        "length": asked.length,
        "parts": {name: _matrix(view, asked.length).tolist() for name, (_, view) in parts.items()},
        "allowed": allowed.tolist(),
        "weights": (allowed / seen.clamp_min(1)).tolist(),
        "fully_masked": (seen.squeeze(-1) == 0).nonzero().flatten().tolist(),
        "code": f"combine({codes})" if len(parts) > 1 else codes or "View()",
    }


def _edges(asked: AskedMask) -> torch.Tensor:
    edges = torch.zeros(asked.length, asked.length, dtype=torch.bool)
    for given in filter(None, (one.strip() for one in asked.edges.split(","))):
        match = EDGE.fullmatch(given)
        if match is None:
            raise DataError(f"{given!r} is not a pair of tokens: write pairs as 1-2, 4-3")
        query, key = int(match[1]), int(match[2])
        if max(query, key) > asked.length or min(query, key) < 1:
            raise DataError(f"{given!r} is out of range for {asked.length} tokens: use 1 to {asked.length}")
        edges[query - 1, key - 1] = True
    return edges


def _matrix(view: View, length: int) -> torch.Tensor:
    tokens = torch.zeros(1, 1, length, 1)
    allowed = view.mask(tokens, tokens)
    everything = torch.ones(length, length, dtype=torch.bool)
    return everything if allowed is None else allowed.expand(1, 1, length, length)[0, 0]
