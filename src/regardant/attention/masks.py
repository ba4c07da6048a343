"""Masks: which keys each query may attend to. True = may attend.

`View` describes masks and makes them on demand: padding, causal, any pairs, and a bias added to the scores. `PassView`
is the view that the layers of a stack share during one forward pass: it makes each mask once. The functions at the
end return common views. They mask any mechanism: exact attention under the view `window` still computes every pair, the
mechanism `window` computes only pairs inside the window.

Shape legend: B batch, H query heads, Q queries, K keys, N tokens, D size of a query or key.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, reduce

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

BlockBias = Callable[[Int[Tensor, " Q"], Int[Tensor, " K"]], Float[Tensor, "#B H Q K"] | Float[Tensor, "H Q K"]]
"""Bias on the scores of a block, from the positions of its queries and keys. No n x n tensor is built."""

FIELDS = ("causal", "keys", "pairs", "bias", "query_positions", "key_positions")
"""Fields of a View that restrict or place queries and keys."""


SPARSE = 16
"""Inverse of the largest density of a sparse mask: at most 1 in `SPARSE` pairs may attend."""


def softmax_dtype(x: Tensor) -> torch.dtype:
    """Return the precision of scores, and of masks added to them: float32, or the input's own if it is wider."""
    return torch.promote_types(x.dtype, torch.float32)


def product_dtype(x: Tensor) -> torch.dtype:
    """Return the precision in which a product reads x: that of autocast where it is enabled, else the input's own."""
    device = x.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype


@dataclass(frozen=True, eq=False)
class View:
    """Description of which keys each query may attend to, and of the positions of both. Masks that combine
    its fields are made when they are asked for."""

    causal: bool = False
    """True if keys at later positions than the query are masked."""

    keys: Bool[Tensor, "B K"] | None = None
    """Mask of real keys; the others are padding."""

    pairs: Bool[Tensor, "#B #H Q K"] | None = None
    """Mask of any pattern, pair by pair."""

    bias: BlockBias | None = None
    """Bias added to the scores: relative positions, T5 buckets, ALiBi."""

    query_positions: Int[Tensor, " Q"] | None = None
    """Positions of the queries. Default: those of the last keys."""

    key_positions: Int[Tensor, " K"] | None = None
    """Positions of the keys. Default: 0, 1, 2 ..."""

    @cached_property
    def asked(self) -> frozenset[str]:
        """Names of the fields that a mechanism has to honour."""
        asked = []
        for name in FIELDS:
            value = getattr(self, name)
            if value is not None and value is not False:
                asked.append(name)
        return frozenset(asked)

    def positions(self, q: Tensor, k: Tensor) -> tuple[Int[Tensor, " Q"], Int[Tensor, " K"]]:
        """Return the positions of queries [.., Q, D] and keys [.., K, D]."""
        num_queries, num_keys = q.shape[-2], k.shape[-2]
        at_queries, at_keys = self.query_positions, self.key_positions
        if at_queries is None:
            at_queries = torch.arange(num_keys - num_queries, num_keys, device=q.device)
            if at_keys is not None:
                if num_queries > num_keys:  # a negative index would count from the end
                    raise ValueError(
                        f"{num_queries} queries have no default positions among {num_keys} keys: give query_positions"
                    )
                at_queries = at_keys[at_queries]
        if at_keys is None:
            at_keys = torch.arange(num_keys, device=k.device)
        return at_queries, at_keys

    def bias_between(self, queries: Tensor, keys: Tensor, dtype: torch.dtype) -> Float[Tensor, "#B H Q K"] | None:
        """Return the bias between these positions. None if the view has no bias."""
        if self.bias is None:
            return None
        bias = self.bias(queries, keys).to(dtype)
        return bias if bias.dim() == 4 else bias[None]

    def mask(self, q: Tensor, k: Tensor) -> Bool[Tensor, "#B #H #Q K"] | None:
        """Return padding, causal and pairs as one mask that broadcasts to [B, H, Q, K]. None: nothing is masked."""
        mask: Tensor | None = None
        if self.keys is not None:
            mask = self.keys[:, None, None, :]
        # A single query without a position is at the last one, and attends to every key.
        is_last = q.shape[-2] == 1 and self.query_positions is None and self.key_positions is None
        if self.causal and not is_last:
            at_queries, at_keys = self.positions(q, k)
            past = (at_keys[None, :] <= at_queries[:, None])[None, None]
            mask = past if mask is None else mask & past
        if self.pairs is not None:
            mask = self.pairs if mask is None else mask & self.pairs
        return mask

    def additive_mask(self, q: Tensor, k: Tensor) -> Float[Tensor, "#B #H #Q K"] | None:
        """Return bias and mask (minus infinity) to add to the scores, in their precision. None: nothing to add."""
        mask = self.mask(q, k)
        dtype = softmax_dtype(q)
        bias = None if self.bias is None else self.bias_between(*self.positions(q, k), dtype)
        if mask is None:
            return bias
        added = torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, float("-inf"))
        return added if bias is None else added + bias

    def rounded(self, added: Float[Tensor, "#B #H #Q K"], dtype: torch.dtype) -> Float[Tensor, "#B #H #Q K"]:
        """Return the result of `additive_mask` in the type of the queries."""
        return added.to(dtype)

    def fully_masked(self, q: Tensor, k: Tensor) -> Bool[Tensor, "#B #H #Q 1"] | None:
        """Return a mask of the queries that may attend to no key, whose output is zero. None: there are none.

        On devices other than a CPU the mask is returned even if it is empty: checking would wait for the device.
        """
        mask = self.mask(q, k)
        if mask is None:
            return None
        fully_masked = ~mask.any(-1, keepdim=True)
        return fully_masked if fully_masked.device.type != "cpu" or bool(fully_masked.any()) else None

    def listed_pairs(self, q: Tensor, k: Tensor) -> Int[Tensor, "2 P"] | None:
        """Return the queries and keys of all pairs that may attend, if `pairs` are one sparse mask for all heads.

        None: the mask is not sparse, there is a bias, or the device is no CPU: counting pairs would wait for another
        device, which computes all pairs in less time.
        """
        if self.pairs is None or self.bias is not None or q.device.type != "cpu":
            return None
        mask = self.mask(q, k)
        if mask is None or mask.shape[:2] != (1, 1) or int(mask.count_nonzero()) * SPARSE > mask.numel():
            return None
        return mask[0, 0].nonzero().T.contiguous()


EVERYTHING = View()
"""Every query may attend to every key."""


@dataclass(frozen=True, eq=False)
class PassView(View):
    """View that all layers of a stack share during one forward pass, or one decoding: makes each mask once.

    A stack creates a view at the beginning of a pass and drops it with its masks at the end. A mask is made when a
    mechanism first asks for it, so mechanisms that need none never build n x n. Masks are cached by length, dtype,
    device and autograd mode: a mask made under `inference_mode` cannot be saved for a backward pass.
    `dataclasses.replace` returns a new view without masks.
    """

    recomputed: bool = False
    """True if the backward pass recomputes layers. A learned bias is then made anew for each layer: the backward pass
    of one layer frees the autograd graph that the next layer's would need."""

    _made: dict[tuple[object, ...], Tensor | None] = field(default_factory=dict, init=False, repr=False)

    def mask(self, q: Tensor, k: Tensor) -> Tensor | None:
        key = _key("mask", q, k)
        if key not in self._made:
            self._made[key] = super().mask(q, k)
        return self._made[key]

    def additive_mask(self, q: Tensor, k: Tensor) -> Tensor | None:
        key = _key("additive_mask", q, k)
        if key in self._made:
            return self._made[key]
        added = super().additive_mask(q, k)
        if not (self.recomputed and added is not None and added.requires_grad):
            self._made[key] = added
        return added

    def rounded(self, added: Tensor, dtype: torch.dtype) -> Tensor:
        if added.dtype == dtype or added.requires_grad:  # gradients of a learned bias add up in its own type
            return added.to(dtype)
        key = "rounded", id(added), dtype  # the mask stays in memory beside it
        if (found := self._made.get(key)) is None:
            found = self._made[key] = added.to(dtype)
        return found

    def fully_masked(self, q: Tensor, k: Tensor) -> Tensor | None:
        key = _key("fully_masked", q, k)
        if key not in self._made:
            self._made[key] = super().fully_masked(q, k)
        return self._made[key]

    def listed_pairs(self, q: Tensor, k: Tensor) -> Tensor | None:
        if self.pairs is None:
            return None
        key = _key("listed_pairs", q, k)
        if key not in self._made:
            self._made[key] = super().listed_pairs(q, k)
        return self._made[key]


def _key(name: str, q: Tensor, k: Tensor) -> tuple[object, ...]:
    recorded = torch.is_inference_mode_enabled(), torch.is_grad_enabled()
    return name, q.shape[-2], k.shape[-2], q.dtype, q.device, recorded


def padding(real: Bool[Tensor, "B K"]) -> View:
    """Return a view that masks padding: `real` is True at tokens."""
    return View(keys=real)


def causal() -> View:
    """Return a view that masks every key after the query."""
    return View(causal=True)


def adjacency(edges: Bool[Tensor, "N N"] | Bool[Tensor, "B N N"], *, self_loops: bool = True) -> View:
    """Return a view along edges: node i attends to node j where edges[i, j] is True.

    self_loops: let every node attend to itself. Without them an isolated node attends to nothing.
    """
    if self_loops:
        edges = edges | torch.eye(edges.shape[-1], dtype=torch.bool, device=edges.device)
    return View(pairs=edges[None, None] if edges.dim() == 2 else edges[:, None])


def window(length: int, reach: int, device: torch.device | str | None = None) -> View:
    """Return a view of at most `reach` tokens to each side, for queries on `device`."""
    at = torch.arange(length, device=device)
    return View(pairs=((at[:, None] - at[None, :]).abs() <= reach)[None, None])


def pairs(mask: Bool[Tensor, "#B #H Q K"]) -> View:
    """Return a view of any pattern, pair by pair."""
    return View(pairs=mask)


def combine(*views: View) -> View:
    """Return a view that masks every pair that any of the views masks.

    Raises:
        ValueError: a view holds a bias or positions, which cannot be joined.
    """
    if any(view.asked - {"causal", "keys", "pairs"} for view in views):
        raise ValueError("masks can be joined, a bias or positions cannot: put them into the joined view")
    keys = [view.keys for view in views if view.keys is not None]
    patterns = [view.pairs for view in views if view.pairs is not None]
    return View(
        causal=any(view.causal for view in views),
        keys=reduce(torch.logical_and, keys) if keys else None,
        pairs=reduce(torch.logical_and, patterns) if patterns else None,
    )
