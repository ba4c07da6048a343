"""Every mechanism that keeps the contracts, and every view one may be asked to honour.

The list of mechanisms is the package's own, so a new one is tested before its author writes a test; a plugin shows
that the same holds for what users add.

Shape legend: as in `regardant.attention.interface`.
"""

import functools
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from regardant.attention import KERNELS, Attention, AttentionConfig, ScaledDotProduct, View

from . import plugins  # noqa: F401  which adds a mechanism

BATCH, NUM_HEADS, HEAD_SIZE, LENGTH = 3, 4, 8, 6


NARROW: dict[str, dict[str, Any]] = {
    "entmax": {"alpha": 2.0},
    "linformer": {"rank": 3},
    "lsh": {"num_buckets": 4, "num_rounds": 3, "reach": 1},
    "performer": {"num_features": 20},
    "scaled_dot_product": {"scaled": False, "temperature": 2.0},
    "segment": {"segment": 2},
    "sparse": {"window": 1, "stride": 2, "num_strides": 2, "num_global": 1},
    "strided": {"stride": 2, "num_strides": 1},
    "top_k": {"k": 2},
    "window": {"window": 1},
}
"""Settings under which a mechanism leaves something out even of so few tokens."""


def mechanisms() -> dict[str, Callable[[], Attention]]:
    """What makes each mechanism, by its kind; exact attention once for each of its kernels."""
    made: dict[str, Callable[[], Attention]] = {}
    for kind, config in AttentionConfig.kinds().items():
        for name, settings in {kind: {}, f"{kind}/narrow": NARROW.get(kind)}.items():
            if settings is None:
                continue
            if isinstance(_build(config, settings), ScaledDotProduct):
                made |= {f"{name}/{kernel}": functools.partial(_build, config, settings, kernel) for kernel in KERNELS}
            else:
                made[name] = functools.partial(_build, config, settings)
    return made


def _build(config: Any, settings: dict[str, Any], kernel: str | None = None) -> Attention:
    torch.default_generator.manual_seed(0)  # torch.manual_seed takes 1 ms: it keeps the stack for other devices
    attention: Any = config(**settings).build(num_heads=NUM_HEADS, head_size=HEAD_SIZE)
    if kernel:
        attention.kernel = KERNELS[kernel]
    return attention


MECHANISMS = mechanisms()

REAL = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0], [1, 1, 0, 0, 0, 0]]).bool()
SLOPES = torch.tensor([0.5, 0.25, -0.25, 1.0])


def distance_bias(queries: Tensor, keys: Tensor) -> Tensor:
    return -SLOPES[:, None, None] * (queries[:, None] - keys[None, :]).abs()


def _any_pairs() -> Tensor:
    pairs = torch.rand(BATCH, NUM_HEADS, LENGTH, LENGTH, generator=torch.Generator().manual_seed(1)) < 0.5
    return pairs | torch.eye(LENGTH).bool()


def _band() -> Tensor:
    return torch.ones(1, 1, LENGTH, LENGTH).bool().tril(1).triu(-1)


def _fully_masked_query() -> Tensor:
    pairs = _any_pairs()
    pairs[1, 2, 3] = False
    return pairs


@dataclass(frozen=True)
class Scene:
    """Some queries, some keys and what may be seen."""

    fields: dict[str, Any]
    """Of the view."""
    num_queries: int = LENGTH
    num_keys: int = LENGTH

    def view(self) -> View:
        """Return a new view."""
        return View(**self.fields)

    @functools.cached_property
    def visible(self) -> Tensor:
        """[B, H, Q, K] bool, pair by pair from what the fields say. Do not write to it: all share it."""
        sees = torch.zeros(BATCH, NUM_HEADS, self.num_queries, self.num_keys).bool()
        for b, h, i, j in torch.cartesian_prod(*(torch.arange(n) for n in sees.shape)).tolist():
            sees[b, h, i, j] = self._sees(b, h, i, j)
        return sees

    def _sees(self, b: int, h: int, i: int, j: int) -> bool:
        view = self.view()
        if view.keys is not None and not view.keys[b, j]:
            return False
        if view.pairs is not None and not view.pairs.expand(BATCH, NUM_HEADS, -1, -1)[b, h, i, j]:
            return False
        if not view.causal:
            return True
        at_keys = range(self.num_keys) if view.key_positions is None else view.key_positions.tolist()
        at_queries = at_keys[-self.num_queries :] if view.query_positions is None else view.query_positions.tolist()
        return at_keys[j] <= at_queries[i]

    def met(self, attention: Attention) -> Tensor:
        """[B, H, Q, K] bool: what may be seen and this mechanism lets meet."""
        q, k, _ = self.tensors()
        return self.visible & attention.mask(q, k, self.view())

    def tensors(self, dtype: torch.dtype = torch.float32, requires_grad: bool = False) -> list[Tensor]:
        """q, k and v of unit variance."""
        return draw(self.num_queries, self.num_keys, dtype=dtype, requires_grad=requires_grad)


def draw(
    num_queries: int,
    num_keys: int,
    *,
    key_heads: int = NUM_HEADS,
    value_size: int = HEAD_SIZE,
    dtype: torch.dtype = torch.float32,
    requires_grad: bool = False,
) -> list[Tensor]:
    """q, k and v of unit variance, the same every time."""
    generator = torch.Generator().manual_seed(num_queries + 100 * num_keys)
    shapes = [(NUM_HEADS, num_queries, HEAD_SIZE), (key_heads, num_keys, HEAD_SIZE), (key_heads, num_keys, value_size)]
    drawn = [torch.randn(BATCH, *shape, generator=generator, dtype=torch.float64) for shape in shapes]
    return [x.to(dtype).requires_grad_(requires_grad) for x in drawn]


SCENES = {
    "everything": Scene({}),
    "more-queries": Scene({}, num_queries=8),
    "causal": Scene({"causal": True}),
    "the-last-queries": Scene({"causal": True}, num_queries=2),
    "padded": Scene({"keys": REAL}),
    "padded-in-front": Scene({"keys": REAL.flip(1)}),
    "nothing-but-padding": Scene({"keys": REAL & torch.tensor([True, False, True])[:, None]}),
    "causal-and-padded": Scene({"causal": True, "keys": REAL}),
    "causal-and-padded-in-front": Scene({"causal": True, "keys": REAL.flip(1)}),
    "one-query": Scene({"causal": True, "keys": REAL}, num_queries=1),
    "pairs": Scene({"pairs": _any_pairs()}),
    "the-same-pairs-for-all": Scene({"pairs": _band()}),
    "a-fully-masked-query": Scene({"pairs": _fully_masked_query()}),
    "biased": Scene({"bias": distance_bias}),
    "causal-padded-and-biased": Scene({"causal": True, "keys": REAL, "bias": distance_bias}),
    "everything-at-once": Scene({"causal": True, "keys": REAL, "pairs": _any_pairs(), "bias": distance_bias}),
    "any-positions": Scene(
        {
            "causal": True,
            "bias": distance_bias,
            "query_positions": torch.tensor([4, 0, 2]),
            "key_positions": torch.tensor([5, 0, 3, 1, 4, 2]),
        },
        num_queries=3,
    ),
    "one-query-in-the-middle": Scene({"causal": True, "query_positions": torch.tensor([2])}, num_queries=1),
    "late-keys": Scene(
        {"causal": True, "bias": distance_bias, "key_positions": torch.arange(10, 10 + LENGTH)}, num_queries=2
    ),
}


FULL_SCENES = (
    "more-queries",
    "nothing-but-padding",
    "causal-and-padded-in-front",
    "everything-at-once",
    "any-positions",
)
"""Scenes that together ask for everything: of each mechanism enough for checks that cost much."""

Check = Callable[[Callable[[], Attention], Scene], None]


def in_scenes(names: Collection[str] = SCENES.keys(), *, asking: str = "") -> Callable[[Check], Callable[..., None]]:
    """Return the decorator that makes a check of (make, scene) a test of every mechanism.

    One test runs the scenes that the mechanism honours, or those that also ask for a field of the view: thousands of
    cases would take longer to collect and report than to run. A failure names its scene.
    """

    def decorate(check: Check) -> Callable[..., None]:
        def test(make: Callable[[], Attention]) -> None:
            honours = make().honours
            for name in names:
                asked = SCENES[name].view().asks()
                if not asked <= honours or (asking and asking not in asked):
                    continue
                try:
                    check(make, SCENES[name])
                except BaseException as error:
                    error.add_note(f"scene: {name}")
                    raise

        test.__name__, test.__doc__ = check.__name__, check.__doc__
        parametrised: Callable[..., None] = pytest.mark.parametrize("make", honouring(*filter(None, [asking])))(test)
        return parametrised

    return decorate


def honouring(*needs: str) -> list[Any]:
    """Parameters (make) for every mechanism that honours all of these."""
    return [pytest.param(make, id=name) for name, make in MECHANISMS.items() if set(needs) <= make().honours]
