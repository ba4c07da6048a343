"""The recurrent language model: continues a text from a state, which can be carried from window to window.

Mikolov et al. 2010, "Recurrent neural network based language model"; LSTM cells: Sundermeyer et al. 2012. One matrix
for input and output: Press and Wolf 2017, https://arxiv.org/abs/1608.05859. Truncated back-propagation through time:
Williams and Peng 1990.

Shape legend: B texts, W beams, N = B x W rows, T tokens, L layers, M size of an embedding, R size of a state,
O size of the head's vectors.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Literal

from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from regardant.layers.dropout import Dropout, share_key
from regardant.layers.linear import Linear
from regardant.layers.recurrent import Cell, RecurrentStack, State
from regardant.models.base import AttentionKind, CausalConfig
from regardant.models.decoder_only import DecoderOnly
from regardant.models.heads import HeadBuilder
from regardant.models.recurrent.decoders import DecoderMemory, RecurrentState
from regardant.models.representations import InputShape, RepresentationBuilder
from regardant.models.sequence import SequenceDecoder
from regardant.models.vectors import Vectors
from regardant.positions.none import NoPositions


class StateDecoder(SequenceDecoder):
    """Recurrent stack over vectors. It starts from the state of its input, or from zeros, and returns the last."""

    def __init__(
        self, cell: Cell, input_size: int, hidden_size: int, num_layers: int, dropout: float, output_size: int
    ) -> None:
        super().__init__()
        self.stack = RecurrentStack(cell, input_size, hidden_size, num_layers, dropout)
        self.output_dropout = Dropout(dropout)
        self.output = nn.Identity() if output_size == hidden_size else Linear(hidden_size, output_size)

    def forward(self, x: Vectors, memory: Vectors | None = None) -> Vectors:
        """Return the vectors of all tokens, and the state after the last."""
        states, last = self.stack(x.values, x.state or self.stack.start(x.values))
        return replace(x, values=self._answers(states), state=last)

    def start(self, memory: Vectors | None, beam_size: int, max_length: int) -> RecurrentState:
        """Return the state before the first token, empty until the first step, which determines the number of rows."""
        return RecurrentState(DecoderMemory(()))

    def step(self, x: Float[Tensor, "N T M"], state: RecurrentState) -> Float[Tensor, "N T O"]:
        """Return the vectors of the newest tokens of every beam; `state` is changed in place."""
        before = state.memory
        states, last = self.stack(x, before.state or self.stack.start(x))
        state.memory = replace(before, state=last, length=before.length + x.shape[1])
        return self._answers(states)

    def _answers(self, states: Tensor) -> Tensor:
        answers: Tensor = self.output(self.output_dropout(states))
        return answers


class RecurrentLanguageModel(DecoderOnly):
    """Recurrent model that reads a text token by token and scores the next token."""

    decoder: StateDecoder

    @property
    def attention_kinds(self) -> Mapping[str, AttentionKind]:
        return {}

    def first_state(self, rows: int) -> State:
        return self.decoder.stack.start(next(self.parameters()).new_empty(rows))

    def vectors(self, text: Int[Tensor, "B T"], state: State | None = None) -> Vectors:
        """Return the vectors of all tokens, and the state after the last."""
        decoded: Vectors = self.decoder(replace(self.text(text), state=state))
        return decoded


class RecurrentLanguageModelConfig(CausalConfig):
    """A recurrent language model: an LSTM by default."""

    kind: Literal["recurrent"] = "recurrent"

    carries_state: ClassVar[bool] = True

    max_length: int = Field(256, gt=1)
    """Tokens of a training window, through which gradients go back. The state can be carried further: see
    training.carry_state."""

    cell: Cell = "lstm"
    """The kind of recurrence."""

    embedding_size: int = Field(128, gt=0)
    """Size of a token's vector."""

    hidden_size: int = Field(256, gt=0)
    """Size of a state."""

    num_layers: int = Field(1, gt=0, le=1000)
    """Number of layers."""

    dropout: float = Field(0.0, ge=0, lt=1)
    """Probability that a value is zeroed: of embeddings, between layers, before the output."""

    tie_embeddings: Literal["all", "none"] = "all"
    """Weight tying. all: input and output share one matrix, and states of another size than embeddings are projected.
    none: they have two."""

    def build(self, text: RepresentationBuilder, head: HeadBuilder) -> RecurrentLanguageModel:
        tied = self.tie_embeddings == "all"
        output_size = self.embedding_size if tied else self.hidden_size
        decoder = StateDecoder(
            self.cell, self.embedding_size, self.hidden_size, self.num_layers, self.dropout, output_size
        )
        inputs = InputShape(self.embedding_size, NoPositions(), dropout=self.dropout)
        model = RecurrentLanguageModel(self, text(inputs), decoder, head(output_size))
        if tied:
            model.tie("text", instead="none")
        model.dropout_key = share_key(model)
        return model
