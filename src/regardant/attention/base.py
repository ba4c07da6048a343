"""How a query weighs keys: the one interface of every mechanism.

A mechanism says twice how much each query takes from each key: `weights` builds the matrix, to be looked at;
`mix` gives the weighted values the fast way, to train and decode. A contract test holds them equal.
Projections, heads, positions and the keeping of state live in the layer that holds the mechanism.

Shape legend: B batch, H query heads, G key heads (H is a multiple of G), Q queries, K keys, D size of a query
and a key, E size of a value, N rows of a decoding state (sentences or beams).
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regardant.config import Variants

Queries = Float[Tensor, "B H Q D"]
Keys = Float[Tensor, "B G K D"]
Values = Float[Tensor, "B G K E"]
Mixed = Float[Tensor, "B H Q E"]
Weights = Float[Tensor, "B H Q K"]

BlockBias = Callable[[Int[Tensor, " Q"], Int[Tensor, " K"]], Float[Tensor, "#B H Q K"] | Float[Tensor, "H Q K"]]
"""What to add to the scores of a block, from the positions of its queries and keys: nobody builds n x n for it."""


@dataclass(frozen=True, eq=False)
class View:
    """What each query may see, and from where it looks. True = may be seen."""

    causal: bool = False
    """A query sees no key that stands after it."""

    keys: Bool[Tensor, "B K"] | None = None
    """Which keys are real; the others are padding."""

    pairs: Bool[Tensor, "#B #H Q K"] | None = None
    """Any pattern at all, spelled out."""

    bias: BlockBias | None = None
    """Added to the scores: relative positions, T5 buckets, ALiBi."""

    query_positions: Int[Tensor, " Q"] | None = None
    """Where the queries stand; by default where the last of the keys do."""

    key_positions: Int[Tensor, " K"] | None = None
    """Where the keys stand; by default 0, 1, 2 ..."""

    recomputed: bool = False
    """The backward pass works out again what is seen: a bias that learns is made anew for each layer, since what one
    layer's backward pass has gone through is of no use to the next one's."""

    _made: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)

    def asks(self) -> frozenset[str]:
        """The names of what this view demands of a mechanism."""
        return self._once("asks", self._asks)

    def positions(self, q: Tensor, k: Tensor) -> tuple[Int[Tensor, " Q"], Int[Tensor, " K"]]:
        """Where queries [.., Q, D] and keys [.., K, D] stand."""
        num_queries, num_keys = q.shape[-2], k.shape[-2]
        at_queries, at_keys = self.query_positions, self.key_positions
        if at_queries is None:
            at_queries = torch.arange(num_keys - num_queries, num_keys, device=q.device)
            if at_keys is not None:
                if num_queries > num_keys:  # a negative index would count from the end
                    raise ValueError(f"{num_queries} queries stand nowhere among {num_keys} keys: give query_positions")
                at_queries = at_keys[at_queries]
        if at_keys is None:
            at_keys = torch.arange(num_keys, device=k.device)
        return at_queries, at_keys

    def bias_between(self, queries: Tensor, keys: Tensor, dtype: torch.dtype) -> Float[Tensor, "#B H Q K"] | None:
        """The bias of tokens that stand there."""
        if self.bias is None:
            return None
        bias = self.bias(queries, keys).to(dtype)
        return bias if bias.dim() == 4 else bias[None]

    def allowed(self, q: Tensor, k: Tensor) -> Bool[Tensor, "#B #H #Q K"] | None:
        """Which pairs may meet, as one mask that broadcasts to [B, H, Q, K]. None: all of them."""
        return self._once(("allowed", q.shape[-2], k.shape[-2]), lambda: self._allowed(q, k))

    def additive(self, q: Tensor, k: Tensor) -> Float[Tensor, "#B #H #Q K"] | None:
        """The mask and the bias to be added to the scores, in the precision of a softmax. None: nothing to add."""
        # What an observer made without gradients must not reach the pass that trains the bias.
        name = ("additive", q.shape[-2], k.shape[-2], softmax_dtype(q), torch.is_grad_enabled())
        return self._once(name, lambda: self._additive(q, k))

    def blind(self, q: Tensor, k: Tensor) -> Bool[Tensor, "#B #H #Q 1"] | None:
        """The queries that may see nothing at all and mix to zeros. None: there are none, which only a CPU is asked."""
        return self._once(("blind", q.shape[-2], k.shape[-2]), lambda: self._blind(q, k))

    def _once(self, name: Hashable, make: Callable[[], Any]) -> Any:
        # All layers of a stack share a view: its masks are made once a forward pass.
        if name in self._made:
            return self._made[name]
        made = make()
        if not (self.recomputed and isinstance(made, Tensor) and made.requires_grad):
            self._made[name] = made
        return made

    def _asks(self) -> frozenset[str]:
        names = ("causal", "keys", "pairs", "bias", "query_positions", "key_positions")
        values = (getattr(self, name) for name in names)
        return frozenset(n for n, v in zip(names, values, strict=True) if v is not None and v is not False)

    def _allowed(self, q: Tensor, k: Tensor) -> Tensor | None:
        allowed: Tensor | None = None
        if self.keys is not None:
            allowed = self.keys[:, None, None, :]
        sees_all = q.shape[-2] == 1 and self.query_positions is None and self.key_positions is None  # it stands last
        if self.causal and not sees_all:
            at_queries, at_keys = self.positions(q, k)
            past = (at_keys[None, :] <= at_queries[:, None])[None, None]
            allowed = past if allowed is None else allowed & past
        if self.pairs is not None:
            allowed = self.pairs if allowed is None else allowed & self.pairs
        return allowed

    def _additive(self, q: Tensor, k: Tensor) -> Tensor | None:
        allowed = self.allowed(q, k)
        dtype = softmax_dtype(q)
        added = self.bias_between(*self.positions(q, k), dtype)
        if allowed is None:
            return added
        hidden = torch.zeros(allowed.shape, dtype=dtype, device=allowed.device).masked_fill_(~allowed, float("-inf"))
        return hidden if added is None else hidden + added

    def _blind(self, q: Tensor, k: Tensor) -> Tensor | None:
        allowed = self.allowed(q, k)
        if allowed is None:
            return None
        blind = ~allowed.any(-1, keepdim=True)
        if blind.device.type != "cpu":  # whose answer would have to be waited for
            return blind
        return blind if bool(blind.any()) else None


EVERYTHING = View()
"""Every query sees every key."""


def softmax_dtype(x: Tensor) -> torch.dtype:
    """What scores are normalised in: float32, or more where the input has more."""
    return torch.promote_types(x.dtype, torch.float32)


def exact(x: Tensor) -> torch.autocast:
    """A context in which sums are not narrowed by mixed precision: exponents and running sums do not bear it."""
    return torch.autocast(x.device.type, enabled=False)


def masked_softmax(scores: Weights, q: Queries, k: Keys, view: View) -> Weights:
    """Scores in `softmax_dtype`, biased and masked as the view says, to weights; zeros where nothing may be seen."""
    added, blind = view.additive(q, k), view.blind(q, k)
    if added is not None:
        scores = scores + added
    if blind is None:
        return torch.softmax(scores, -1)
    # Filled before as well, since the gradient of a softmax over nothing is NaN and would spread.
    return torch.softmax(scores.masked_fill(blind, 0), -1).masked_fill(blind, 0)


def expand_heads(k: Float[Tensor, "B G K D"], num_heads: int) -> Float[Tensor, "B H K D"]:
    """Each key head repeated for the group of query heads that share it."""
    return k if k.shape[1] == num_heads else k.repeat_interleave(num_heads // k.shape[1], 1)


def nonzero(total: Tensor) -> Tensor:
    """What weights may be divided by: 1 in place of 0, where nothing may be seen."""
    return total.masked_fill(total == 0, 1)


FIRST_ROOM = 16
"""Keys that a buffer has room for at first."""


def with_room(
    buffer: Float[Tensor, "N G R E"] | None, new: Float[Tensor, "N G T E"], filled: int, needed: int, capacity: int
) -> Float[Tensor, "N G R2 E"]:
    """The buffer, or one with room for `needed` entries that begins as what is filled of it: twice as large, and never
    more than `capacity`. Most texts end long before their limit, and memory that is touched once must be got.
    """
    if buffer is not None and needed <= buffer.shape[2]:
        return buffer
    larger = new.new_empty(*new.shape[:2], min(max(FIRST_ROOM, 2 * filled, needed), capacity), new.shape[3])
    if buffer is not None:
        larger[:, :, :filled] = buffer[:, :, :filled]
    return larger


def move_rows(rows: Int[Tensor, " N2"], *kept: Float[Tensor, "N *S"]) -> None:
    """Row i of each becomes what was row `rows[i]`, of at most as many. On a CPU those that stay are not touched."""
    if rows.device.type != "cpu":  # which would have to be waited for to learn how many move
        for tensor in kept:
            tensor[: len(rows)] = tensor.index_select(0, rows)
        return
    moved = (rows != torch.arange(len(rows), device=rows.device)).nonzero().squeeze(1)
    if len(moved):
        origins = rows[moved]
        for tensor in kept:
            tensor[moved] = tensor.index_select(0, origins)  # faster than an index


@dataclass(frozen=True)
class AppendedKeys:
    """The state most mechanisms decode with: all keys and values so far, in buffers with room for more."""

    capacity: int
    length: int = 0
    keys: Float[Tensor, "N G C D"] | None = None
    values: Float[Tensor, "N G C E"] | None = None

    def append(self, k: Tensor, v: Tensor) -> "AppendedKeys":
        """With [N, G, T, .] more keys and values."""
        end = self.length + k.shape[2]
        keys = with_room(self.keys, k, self.length, end, self.capacity)
        values = with_room(self.values, v, self.length, end, self.capacity)
        keys[:, :, self.length : end] = k
        values[:, :, self.length : end] = v
        return AppendedKeys(self.capacity, end, keys, values)

    def reorder(self, rows: Int[Tensor, " N2"]) -> "AppendedKeys":
        """Row i of the result is what was row `rows[i]`."""
        if self.keys is None or self.values is None:
            return self
        keys, values = self.keys, self.values
        if len(rows) > len(keys):
            return AppendedKeys(self.capacity, self.length, keys[rows], values[rows])
        # In place: only what is filled moves, nothing is allocated for the rest.
        move_rows(rows, keys[:, :, : self.length], values[:, :, : self.length])
        return AppendedKeys(self.capacity, self.length, keys[: len(rows)], values[: len(rows)])


STEP_HONOURS = frozenset({"causal", "bias"})
"""The fields of a View that a decoding step may be asked for: others would mean another thing to each kind of state."""


class Attention(nn.Module):
    """A mechanism. Write `weigh`; override `mix` where the mixed values can be had without building the weights."""

    honours: ClassVar[frozenset[str]] = frozenset(
        {"causal", "keys", "pairs", "bias", "query_positions", "key_positions"}
    )
    """The fields of a View this mechanism obeys. Any other is refused, never ignored."""

    why_not: ClassVar[dict[str, str]] = {}
    """By field, the reason why a mechanism cannot obey one, where there is more to it than that nobody wrote it."""

    sums_to_one: ClassVar[bool] = True
    """Whether a query's weights sum to one, or to zero where it may see nothing."""

    reads_positions: ClassVar[bool] = False
    """Whether weights depend on where tokens stand, so that a query of another sequence must say where it does."""

    shares_query_and_key: ClassVar[bool] = False
    """Whether the layer gives queries and keys one projection."""

    beams_share: ClassVar[bool] = False
    """Whether all beams of a sentence may ask at once, on the keys of all of them, those of others hidden by a bias of
    minus infinity: it decodes with appended keys, and scores of pairs that nobody sees cost it little."""

    needs_projection: ClassVar[bool] = False
    """Whether the projections of queries and keys are a part of the formula, and not to be left out."""

    longest: int | None = None
    """The most keys there may be. None: any number."""

    scale: float = 1.0
    """What products of queries and keys are multiplied by, where scores are such products."""

    def weigh(self, q: Queries, k: Keys, view: View) -> Weights:
        """How much each query takes from each key; k comes with as many heads as q, and the view can be honoured."""
        raise NotImplementedError

    def compare(self, q: Queries, k: Keys, view: View) -> Weights:
        """What each pair scores, in `softmax_dtype`, before anything is hidden; k comes with as many heads as q.

        To be written where weights come of a score of each pair: `scores` is then there to be looked at.
        """
        raise NotImplementedError

    def meets(self, q: Queries, k: Keys, view: View) -> Bool[Tensor, "#B #H Q K"]:
        """Which pairs this mechanism itself lets meet; the view may hide more of them."""
        return torch.ones(1, 1, q.shape[2], k.shape[2], dtype=torch.bool, device=k.device)

    def mix(self, q: Queries, k: Keys, v: Values, view: View) -> Mixed:
        """The weighted values; k and v come with as many heads as q."""
        return self.weigh(q, k, view).to(v.dtype) @ v

    def weights(self, q: Queries, k: Keys, view: View = EVERYTHING) -> Weights:
        """How much each query takes from each key. Rows sum to one, or to zero where nothing may be seen.

        Raises:
            ValueError: the view asks for what this mechanism cannot honour.
        """
        self.check(view)
        return self.weigh(q, expand_heads(k, q.shape[1]), view)

    @property
    def scores_pairs(self) -> bool:
        """Whether there are `scores`."""
        return type(self).compare is not Attention.compare

    def scores(self, q: Queries, k: Keys, view: View = EVERYTHING) -> Weights:
        """What is normalised into `weights`: the bias added, -inf where a pair may not meet.

        Raises:
            ValueError: the view asks for what this mechanism cannot honour, or its weights come of no scores.
        """
        self.check(view)
        if not self.scores_pairs:
            raise ValueError(f"{type(self).__name__} does not score pairs: look at its weights")
        k = expand_heads(k, q.shape[1])
        scores, added = self.compare(q, k, view), view.additive(q, k)
        if added is not None:
            scores = scores + added
        return scores.masked_fill(~self.meets(q, k, view), float("-inf"))

    def forward(self, q: Queries, k: Keys, v: Values, view: View = EVERYTHING) -> Mixed:
        """Weighted values [B, H, Q, E].

        Raises:
            ValueError: the view asks for what this mechanism cannot honour.
        """
        self.check(view)
        num_heads = q.shape[1]
        return self.mix(q, expand_heads(k, num_heads), expand_heads(v, num_heads), view)

    def check(self, view: View) -> None:
        """Refuse a view that cannot be honoured."""
        if unmet := sorted(view.asks() - self.honours):
            reasons = "; ".join(dict.fromkeys(self.why_not[name] for name in unmet if name in self.why_not))
            raise ValueError(
                f"{type(self).__name__} cannot honour view.{', view.'.join(unmet)}; it honours "
                f"{', '.join(sorted(self.honours))}: choose another mechanism{reasons and f' ({reasons})'}"
            )

    def check_step(self, view: View) -> None:
        """Refuse a view that cannot be honoured in a decoding step, whose keys are real and stand in their order."""
        self.check(view)
        if unmet := sorted(view.asks() - STEP_HONOURS):
            raise ValueError(
                f"{type(self).__name__} decodes without view.{', view.'.join(unmet)}; a step honours "
                f"{', '.join(sorted(STEP_HONOURS))}: leave out the others"
            )

    def redraw(self) -> None:
        """Draw anew what is random in the mechanism (features, hashes). Nothing here."""

    def start(self, capacity: int) -> Any:
        """The state before the first of at most `capacity` keys."""
        return AppendedKeys(capacity)

    def step(self, q: Queries, k: Keys, v: Values, state: Any, view: View) -> tuple[Mixed, Any]:
        """Take in the newest keys and values [N, G, T, .] and answer their queries [N, H, T, D].

        Raises:
            ValueError: the view asks for what this mechanism, or any, cannot honour in a step.
        """
        self.check_step(view)
        state = state.append(k, v)
        seen = slice(None, state.length)
        return self(q, state.keys[:, :, seen], state.values[:, :, seen], view), state

    def reorder(self, state: Any, rows: Int[Tensor, " N2"]) -> Any:
        """The state in which row i continues what was row `rows[i]`."""
        return state.reorder(rows)


class MixerConfig(Variants):
    """What moves information between the tokens of a sequence: an attention, or what it is compared with."""


class AttentionConfig(MixerConfig):
    """What every mechanism's configuration is. A class derived from it, with a `kind`, adds a mechanism."""

    def build(self, *, num_heads: int, head_size: int) -> Attention:
        """The mechanism for queries and keys of `head_size` in `num_heads` heads."""
        raise NotImplementedError
