"""A recurrent tagger used as a translator: one target token for each source token, in the order of the source.

A baseline that fails where lengths or word order of source and target differ. After the source the model reads EOS, so
that a target may be longer than its source.

Shape legend: B sentences, W beams, S source length, T target length, V target vocabulary.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch.nn.functional as F
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor

from regardant.data.vocabulary import EOS, PAD
from regardant.layers.dropout import Dropout, share_key
from regardant.layers.recurrent import Cell, RecurrentStack, State, map_state
from regardant.models.base import SequenceToSequenceConfig, SequenceToSequenceModel
from regardant.models.heads import Head, HeadBuilder
from regardant.models.representations import InputShape, Representation, RepresentationBuilder
from regardant.models.vectors import Vectors
from regardant.positions.none import NoPositions


class OneToOneConfig(SequenceToSequenceConfig):
    """A recurrent network that writes a target token for every source token."""

    kind: Literal["one_to_one"] = "one_to_one"

    cell: Cell = "gru"
    """The kind of recurrence."""

    embedding_size: int = Field(128, gt=0)
    """Size of a token's vector."""

    hidden_size: int = Field(256, gt=0)
    """Size of a state."""

    num_layers: int = Field(1, gt=0, le=1000)
    """Number of layers."""

    bptt: int | None = Field(None, gt=0)
    """Tokens that gradients go back (truncated back-propagation through time). Empty: all."""

    dropout: float = Field(0.3, ge=0, lt=1)
    """Probability that a value is zeroed: of embeddings, between layers, before the output."""

    def build(self, source: RepresentationBuilder, target: RepresentationBuilder, head: HeadBuilder) -> "OneToOne":
        read = source(InputShape(self.embedding_size, NoPositions(), dropout=self.dropout))
        if read.unit != "token":
            raise ValueError(
                f"kind one_to_one writes a token for each token that it reads, and a source of {read.unit}s has none: "
                "choose model.kind=encoder_decoder or recurrent"
            )
        return OneToOne(self, read, head(self.hidden_size))


@dataclass
class OneToOneState:
    """Decoding state (`models.base.DecodingState`). All beams are equal, since the target is not read."""

    source: Int[Tensor, "B S"]
    state: State
    length: int = 0

    def reorder(self, beams: Int[Tensor, "B W"]) -> None:
        """Change nothing: all beams of a sentence have the same state."""

    def keep(self, sentences: Int[Tensor, " B2"]) -> None:
        self.source = self.source.index_select(0, sentences)
        self.state = map_state(self.state, lambda part: part.index_select(1, sentences))


class OneToOne(SequenceToSequenceModel):
    """Model that writes from the source alone: a step does not read the target tokens before it."""

    former_names: ClassVar[Mapping[str, str]] = {"source.weight": "source.table.weight"}

    def __init__(self, config: OneToOneConfig, source: Representation, head: Head) -> None:
        super().__init__()
        self.config: OneToOneConfig = config
        self.source = source
        self.output_dropout = Dropout(config.dropout)
        self.stack = RecurrentStack(
            config.cell, config.embedding_size, config.hidden_size, config.num_layers, config.dropout
        )
        self.head = head
        self.dropout_key = share_key(self)

    def vectors(self, source: Int[Tensor, "B S"], target: Int[Tensor, "B T"]) -> Vectors:
        """Return a vector for each token of `target`, of which only the length is read."""
        length = target.shape[1]
        x = self.source(_with_ends(source, length)[:, :length]).values
        return Vectors(self.output_dropout(self.stack(x, self.stack.start(x), self.config.bptt)[0]))

    def encode(self, source: Int[Tensor, "B S"]) -> Int[Tensor, "B S"]:
        """Return the source itself, which `step` reads token by token."""
        return source

    def start(self, memory: Int[Tensor, "B S"], beam_size: int, max_length: int) -> OneToOneState:
        return OneToOneState(memory, self.stack.start(self.source(memory).values))

    def step(self, tokens: Int[Tensor, "B W"], state: OneToOneState) -> Float[Tensor, "B W V"]:
        source = _with_ends(state.source, state.length + 1)[:, state.length : state.length + 1]
        vectors, state.state = self.stack(self.source(source).values, state.state)
        state.length += 1
        return self.head.scores(Vectors(self.output_dropout(vectors))).expand(-1, tokens.shape[1], -1)


def _with_ends(source: Tensor, length: int) -> Tensor:
    """Return at least `length` tokens, with EOS for padding and past the end."""
    source = F.pad(source, (0, max(0, length - source.shape[1])), value=EOS)
    return source.masked_fill(source == PAD, EOS)
