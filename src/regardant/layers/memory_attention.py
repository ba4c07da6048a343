"""Attention from the states of a recurrent decoder to the states of its encoder, which are the values.

On a CPU products are computed in float32 under mixed precision too: in bfloat16 each product of a step would be
compiled for its batch, see docs/decisions/0014.

Shape legend: B sentences, T queries, S source length, D size of projected queries and keys, Q size of a decoder's
state, R size of an encoder's.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regardant.attention import AttentionConfig, View
from regardant.attention.masks import softmax_dtype
from regardant.layers.linear import Linear


@dataclass(frozen=True)
class ProjectedStates:
    """Keys and values of the source, computed once for each sentence."""

    keys: Float[Tensor, "B 1 S D"]
    values: Float[Tensor, "B 1 S R"]
    real: Bool[Tensor, "B S"] | None
    """Mask of real source tokens. None: no padding."""

    def keep(self, sentences: Int[Tensor, " B2"]) -> "ProjectedStates":
        """Return the keys and values of these sentences alone."""
        real = None if self.real is None else self.real.index_select(0, sentences)
        return ProjectedStates(self.keys.index_select(0, sentences), self.values.index_select(0, sentences), real)


class MemoryAttention(nn.Module):
    """Attention of one head. Queries and keys are projected to `size` (Bahdanau). None: they are projected only where
    the mechanism or unequal sizes need it.

    Raises:
        ValueError: the mechanism cannot compare these sizes, or compares a sequence with itself.
    """

    def __init__(self, query_size: int, key_size: int, config: AttentionConfig, *, size: int | None) -> None:
        super().__init__()
        if size is None and config.build(num_heads=1, head_size=key_size).needs_projection:
            size = key_size
        projects_keys = size is None and query_size != key_size
        if projects_keys:
            config = _of_projected_keys(config, query_size, key_size)
        self.mechanism = config.build(num_heads=1, head_size=size or query_size)
        if self.mechanism.shares_query_and_key:
            raise ValueError(f"{config.kind} compares a sequence with itself: it cannot be a cross_attention")
        self.query = nn.Identity() if size is None else Linear(query_size, size, bias=False)
        self.key = nn.Identity() if size is None else Linear(key_size, size)
        if projects_keys:
            self.key = Linear(key_size, query_size, bias=False)

    def project(self, memory: Float[Tensor, "B S R"], real: Bool[Tensor, "B S"] | None) -> ProjectedStates:
        """Return the keys and values of the encoder's states."""
        return ProjectedStates(_wide(self.key(memory))[:, None], _wide(memory)[:, None], real)

    def forward(
        self, states: Float[Tensor, "B T Q"], memory: ProjectedStates, at: Int[Tensor, " T"]
    ) -> Float[Tensor, "B T R"]:
        """Return the context vectors of states at the target positions `at`, which the beams of a sentence share."""
        # A window is centred at the target position (Luong's local-m).
        view = View(keys=memory.real, query_positions=at if self.mechanism.reads_positions else None)
        query = _wide(self.query(states))[:, None]
        with torch.autocast("cpu", enabled=False):
            mixed: Tensor = self.mechanism(query, memory.keys, memory.values, view)
        return mixed[:, 0]


def _of_projected_keys(config: AttentionConfig, query_size: int, key_size: int) -> AttentionConfig:
    if (found := config.of_projected_keys()) is None:
        raise ValueError(
            f"queries of {query_size} numbers cannot be compared with keys of {key_size} by {config.kind}: choose "
            "`general` or `additive`, or equal sizes"
        )
    return found


def _wide(x: Tensor) -> Tensor:
    return x.to(softmax_dtype(x)) if x.device.type == "cpu" else x
