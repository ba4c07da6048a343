"""What a model promises to the trainer, the decoder and the inspector.

Shape legend: B sentences, W beams of a sentence, S source length, T target length, V vocabulary, M d_model.
"""

from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor


@dataclass(frozen=True)
class Vectors:
    """What travels between representation, sequence model and head."""

    values: Tensor
    """[B, S, M]"""
    real: Tensor
    """[B, S] bool: True where there is an item, False where there is padding."""


class DecodingState(Protocol):
    """Everything a model remembers between two decoding steps, for B sentences of W beams."""

    def reorder(self, beams: Tensor) -> None:
        """From now on beam w of sentence b continues what was beam `beams[b, w]`. [B, W] int64."""

    def keep(self, sentences: Tensor) -> None:
        """Go on with these sentences alone, in this order. [B'] int64 indices into the present B."""


class SequenceToSequence(Protocol):
    """A model that reads a source and writes a target, one token at a time."""

    def encode(self, source: Tensor) -> Any:
        """Token ids [B, S], padded with PAD, to the memory that `start` takes."""

    def start(self, memory: Any, beam_size: int, max_length: int) -> DecodingState:
        """The state before the first target token, for at most `max_length` steps."""

    def step(self, tokens: Tensor, state: Any) -> Tensor:
        """Feed the newest token of every beam, [B, W] int64 (SOS first) to a state of `start`; get scores [B, W, V].

        Scores of the next token, unnormalised (logits). The state is changed in place.
        """

    def scores(self, source: Tensor, target: Tensor) -> Tensor:
        """Teacher forcing: source [B, S], target [B, T] from SOS on; next-token logits [B, T, V]."""
