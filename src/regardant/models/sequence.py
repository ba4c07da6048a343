"""Interfaces of sequence models: an encoder mixes vectors, a decoder also runs step by step.

Shape legend: B batch, N rows (beams of all sentences), T tokens, M d_model.
"""

from typing import Any

from torch import Tensor, nn

from regardant.models.vectors import Vectors


class SequenceEncoder(nn.Module):
    """Base of encoders: vectors to vectors, all elements at once."""

    @property
    def longest(self) -> int | None:
        """Maximum number of vectors of an item, including a class token. None: any number."""
        return None

    def forward(self, x: Vectors) -> Vectors:
        """Return the mixed vectors."""
        raise NotImplementedError


class SequenceDecoder(nn.Module):
    """Base of decoders: vectors to vectors, each from the elements up to it, with or without a memory to attend to."""

    def forward(self, x: Vectors, memory: Vectors | None = None) -> Vectors:
        """Return the vectors of a whole text or target [B, T, M], by teacher forcing."""
        raise NotImplementedError

    def start(self, memory: Vectors | None, beam_size: int, max_length: int) -> Any:
        """Return the state before the first of at most `max_length` tokens: a `BeamState` with a `length`."""
        raise NotImplementedError

    def step(self, x: Tensor, state: Any) -> Tensor:
        """Return the vectors [N, T, M] of the newest tokens of every beam. The state is changed in place."""
        raise NotImplementedError
