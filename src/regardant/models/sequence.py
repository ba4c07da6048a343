"""The promises of a sequence model: an encoder mixes vectors, a decoder also writes step by step.

Shape legend: B batch, N rows (beams of all sentences), T tokens, M d_model.
"""

from typing import Any

from torch import Tensor, nn

from regardant.models.vectors import Vectors


class SequenceEncoder(nn.Module):
    """Vectors to vectors, all elements at once."""

    @property
    def longest(self) -> int | None:
        """Most vectors of an item, a class token counted. None: any number."""
        return None

    def forward(self, x: Vectors) -> Vectors:
        """Return the mixed vectors."""
        raise NotImplementedError


class SequenceDecoder(nn.Module):
    """Vectors to vectors, each element from those up to it, with a memory to attend to or without."""

    def forward(self, x: Vectors, memory: Vectors | None = None) -> Vectors:
        """Return the vectors of a whole text or target [B, T, M], by teacher forcing."""
        raise NotImplementedError

    def start(self, memory: Vectors | None, beam_size: int, max_length: int) -> Any:
        """Return the state before the first of at most `max_length` tokens: a `BeamState` with a `length`."""
        raise NotImplementedError

    def step(self, x: Tensor, state: Any) -> Tensor:
        """Return the vectors [N, T, M] of the newest tokens of every beam. The state is changed in place."""
        raise NotImplementedError
