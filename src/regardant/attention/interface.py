"""Interface of attention mechanisms.

A mechanism computes the same in two forms: `weights` returns the matrix, for inspection; `forward` returns the weighted
values, for training and decoding, without building it where possible. A contract test compares the two. Projections,
heads, positions and caches belong to the layer that holds the mechanism.

Shape legend: B batch, H query heads, G key heads (H is a multiple of G), Q queries, K keys, D size of a query
and a key, E size of a value, T new tokens, N rows of a decoding state (sentences or beams).
"""

from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regardant.attention.cache import AppendedKeys
from regardant.attention.masks import EVERYTHING, FIELDS, View
from regardant.config import Variants

Queries = Float[Tensor, "B H Q D"]
Keys = Float[Tensor, "B G K D"]
Values = Float[Tensor, "B G K E"]
Mixed = Float[Tensor, "B H Q E"]
Weights = Float[Tensor, "B H Q K"]

STEP_HONOURS = frozenset({"causal", "bias"})
"""Fields of a View that a decoding step may use. The others would mean different things for each kind of state."""


def expand_heads(k: Float[Tensor, "B G K D"], num_heads: int) -> Float[Tensor, "B H K D"]:
    """Repeat each key head for the group of query heads that share it."""
    return k if k.shape[1] == num_heads else k.repeat_interleave(num_heads // k.shape[1], 1)


def multiply_heads(x: Float[Tensor, "B H Q D"], matrices: Float[Tensor, "H D E"]) -> Float[Tensor, "B H Q E"]:
    """Return the vectors of each head times the head's own matrix.

    One product for each head, over all sentences. A broadcast product would store a gradient of the matrices for every
    sentence, and sum them.
    """
    return torch.einsum("bhqd,hde->bhqe", x, matrices)


class Attention(nn.Module):
    """Base of all mechanisms. Write `compute_weights`; override `mix` to compute the output without the weights."""

    honours: ClassVar[frozenset[str]] = frozenset(FIELDS)
    """Fields of a View that this mechanism honours. Any other is refused, never ignored."""

    why_not: ClassVar[dict[str, str]] = {}
    """Reasons why fields are not honoured, by field; only those beyond "not implemented"."""

    reads_positions: ClassVar[bool] = False
    """True if weights depend on positions, so that queries of another sequence need `query_positions` in the view."""

    reads_order: ClassVar[bool] = False
    """True if weights depend on the order of keys. Refused for elements without an order (graphs)."""

    shares_query_and_key: ClassVar[bool] = False
    """True if queries and keys share one projection in the layer."""

    shared_beam_cache: ClassVar[bool] = False
    """True if all beams of a sentence may use one `SharedBeamCache`, where a bias of minus infinity masks the keys of
    other beams: true of a mechanism that decodes with appended keys and computes masked pairs cheaply."""

    lists_pairs: ClassVar[bool] = False
    """True if `mix` computes only the listed pairs of a sparse mask, and drops their weights by `self.drop`. If false,
    training with dropout of weights builds them all. A subclass with another `mix` must keep this promise or withdraw
    it."""

    needs_projection: ClassVar[bool] = False
    """True if the projections of queries and keys are part of the formula and cannot be left out."""

    discontinuous: ClassVar[bool] = False
    """True if keys are chosen by comparing scores or hashes, so that a rounding error may choose other keys."""

    longest: int | None = None
    """Maximum number of keys. None: any number."""

    scale: float = 1.0
    """Factor on products of queries and keys, for mechanisms whose scores are such products."""

    decodes_with_all_keys: bool = False
    """True if decoding uses `AppendedKeys`, a row per beam, in place of the mechanism's own state. Inspection sets this
    flag, so that every decoding step calls `forward`, as a whole pass does."""

    def __init__(self) -> None:
        super().__init__()
        self.drop: nn.Module = nn.Identity()
        """Dropout of weights before they mix values. The layer that holds the mechanism sets it."""

    def compute_weights(self, q: Queries, k: Keys, view: View) -> Weights:
        """Compute `weights` of a view that has been checked; k has as many heads as q."""
        raise NotImplementedError

    def compute_scores(self, q: Queries, k: Keys, view: View) -> Weights:
        """Compute the scores of all pairs in `softmax_dtype`, before bias and mask; k has as many heads as q.

        Write this method if weights are normalised scores of pairs: it makes `scores` available.
        """
        raise NotImplementedError

    def mask(self, q: Queries, k: Keys, view: View) -> Bool[Tensor, "#B #H Q K"]:
        """Return the mask of the mechanism itself, True = may attend. The view may mask more pairs."""
        return torch.ones(1, 1, q.shape[2], k.shape[2], dtype=torch.bool, device=k.device)

    def mix(self, q: Queries, k: Keys, v: Values, view: View) -> Mixed:
        """Compute the weighted values; k and v have as many heads as q."""
        weights: Tensor = self.drop(self.compute_weights(q, k, view))
        return weights.to(v.dtype) @ v

    def mix_groups(self, q: Queries, k: Keys, v: Values, view: View) -> Mixed | None:
        """Return the weighted values for fewer key heads than query heads. None: `forward` repeats key heads first."""
        return None

    def weights(self, q: Queries, k: Keys, view: View = EVERYTHING) -> Weights:
        """Return the attention weights [B, H, Q, K].

        Rows sum to one, or to zero if fully masked. Rows of Linformer need not: its mixtures are unconstrained.

        Raises:
            ValueError: this mechanism cannot honour the view.
        """
        self.check(view)
        return self.compute_weights(q, expand_heads(k, q.shape[1]), view)

    @property
    def has_scores(self) -> bool:
        """True if `scores` is available."""
        return type(self).compute_scores is not Attention.compute_scores

    def scores(self, q: Queries, k: Keys, view: View = EVERYTHING) -> Weights:
        """Return the scores that are normalised into `weights`: with bias, and minus infinity at masked pairs.

        Raises:
            ValueError: this mechanism cannot honour the view, or does not score pairs.
        """
        self.check(view)
        if not self.has_scores:
            raise ValueError(f"{type(self).__name__} does not score pairs: look at its weights")
        k = expand_heads(k, q.shape[1])
        scores, added = self.compute_scores(q, k, view), view.additive_mask(q, k)
        if added is not None:
            scores = scores + added
        return scores.masked_fill(~self.mask(q, k, view), float("-inf"))

    def forward(self, q: Queries, k: Keys, v: Values, view: View = EVERYTHING) -> Mixed:
        """Return the weighted values [B, H, Q, E].

        Raises:
            ValueError: this mechanism cannot honour the view.
        """
        self.check(view)
        num_heads = q.shape[1]
        if k.shape[1] != num_heads:
            if (mixed := self.mix_groups(q, k, v, view)) is not None:
                return mixed
            k, v = expand_heads(k, num_heads), expand_heads(v, num_heads)
        if self.training and not isinstance(self.drop, nn.Identity) and not self._drops_listed_pairs(q, k, view):
            return Attention.mix(self, q, k, v, view)  # weights must be built to be dropped
        return self.mix(q, k, v, view)

    def _drops_listed_pairs(self, q: Queries, k: Keys, view: View) -> bool:
        return self.lists_pairs and view.listed_pairs(q, k) is not None

    def check(self, view: View) -> None:
        """Raise ValueError if the view asks for a field that this mechanism does not honour."""
        if unmet := sorted(view.asked - self.honours):
            reasons = "; ".join(dict.fromkeys(self.why_not[name] for name in unmet if name in self.why_not))
            raise ValueError(
                f"{type(self).__name__} cannot honour view.{', view.'.join(unmet)}; it honours "
                f"{', '.join(sorted(self.honours))}: choose another mechanism{reasons and f' ({reasons})'}"
            )

    def check_step(self, view: View) -> None:
        """Raise ValueError if a decoding step, whose keys are real and in order, cannot honour the view."""
        self.check(view)
        if unmet := sorted(view.asked - STEP_HONOURS):
            raise ValueError(
                f"{type(self).__name__} decodes without view.{', view.'.join(unmet)}; a step honours "
                f"{', '.join(sorted(STEP_HONOURS))}: leave out the others"
            )

    def redraw(self) -> None:
        """Draw random parts of the mechanism (features, hashes) again. Does nothing by default."""

    def start(self, capacity: int) -> Any:
        """Return an empty decoding state for at most `capacity` keys."""
        return AppendedKeys(capacity)

    def step(self, q: Queries, k: Keys, v: Values, state: Any, view: View) -> tuple[Mixed, Any]:
        """Append the newest keys and values [N, G, T, .] to the state; return the output of their queries [N, H, T, E].

        Raises:
            ValueError: this mechanism, or any decoding step, cannot honour the view.
        """
        self.check_step(view)
        state = state.append(k, v)
        return self(q, *state.filled(), view), state

    def reorder(self, state: Any, rows: Int[Tensor, " N2"]) -> Any:
        """Return the state whose row i continues row `rows[i]`."""
        return state.reorder(rows)


class MixerConfig(Variants):
    """Configuration of a layer that moves information between tokens of a sequence: an attention, or an alternative."""

    def at_layer(self, number: int) -> "MixerConfig":
        """Return the configuration of layer `number`, counted from 0. By default all layers have the same."""
        return self


class AttentionConfig(MixerConfig):
    """Configuration of a mechanism. A class derived from it, with a `kind`, adds a mechanism."""

    def build(self, *, num_heads: int, head_size: int) -> Attention:
        """Return the mechanism for queries and keys of `head_size` in `num_heads` heads."""
        raise NotImplementedError

    def of_projected_keys(self) -> "AttentionConfig | None":
        """Return the configuration for keys of another size, after a matrix has projected them to the size of queries.

        None: the mechanism compares only vectors of one size.
        """
        return None
