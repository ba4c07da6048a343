"""Recurrent decoders: four ways to condition on the source, with one interface.

Each turns embedded tokens into vectors that the head reads. `run` computes all steps of a target (teacher forcing),
`advance` one step of every beam. A decoder that reads its last attentional vector runs `advance` over the target.

Shape legend: B sentences, W beams, N = B x W rows, T target length, S source length, M size of an embedding, R size of
a state.
"""

from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regardant.attention import AttentionConfig, ScaledDotProductConfig
from regardant.attention.additive import AdditiveConfig
from regardant.config import Variants
from regardant.layers.dropout import Dropout
from regardant.layers.linear import Linear
from regardant.layers.memory_attention import MemoryAttention, ProjectedStates
from regardant.layers.recurrent import Cell, RecurrentStack, State, map_state
from regardant.models.sequence import SequenceDecoder
from regardant.models.vectors import Vectors


@dataclass(frozen=True)
class RecurrentShape:
    """Sizes that encoder and decoder share."""

    cell: Cell
    embedding_size: int
    hidden_size: int
    num_layers: int
    dropout: float
    bptt: int | None
    """Target tokens that gradients go back (truncated back-propagation through time). None: all."""
    encoder_size: int | None = None
    """Size of an encoder's state. None: hidden_size."""

    @property
    def source_size(self) -> int:
        """Size of the vectors of the source."""
        return self.encoder_size or self.hidden_size


class RecurrentDecoderConfig(Variants):
    """Configuration of a recurrent decoder. A subclass with a `kind` adds one."""

    def build(self, shape: RecurrentShape) -> "RecurrentDecoder":
        """Return the decoder with fresh weights."""
        raise NotImplementedError


@dataclass(frozen=True)
class DecoderMemory:
    """Memory of a decoder between two steps: one row for each beam; one for each sentence in `source`."""

    state: State
    """[L, B x W, R] each. Empty before the first token of a text that has no source."""
    attentional: Float[Tensor, "N R"] | None = None
    """Last attentional vector, if the decoder reads it (input feeding)."""
    source: ProjectedStates | None = None
    """Keys and values of the source, for a decoder with attention."""
    context: Float[Tensor, "N R"] | None = None
    """Context that is the same at all steps."""
    length: int = 0
    """Tokens read so far."""

    def take(self, rows: Int[Tensor, " N2"]) -> "DecoderMemory":
        """Return the memory whose row i continues row `rows[i]`."""
        return replace(
            self,
            state=map_state(self.state, lambda part: part.index_select(1, rows)),
            attentional=None if self.attentional is None else self.attentional.index_select(0, rows),
            context=None if self.context is None else self.context.index_select(0, rows),
        )


@dataclass
class RecurrentState:
    """Decoding state (`models.base.DecodingState`) of a recurrent decoder."""

    memory: DecoderMemory
    beam_size: int = 1
    """Current number of beams of a sentence."""

    @property
    def length(self) -> int:
        """Tokens read so far."""
        return self.memory.length

    def reorder(self, beams: Int[Tensor, "B W"]) -> None:
        if self.beam_size > 1 or beams.shape[1] > 1:
            first = torch.arange(len(beams), device=beams.device)[:, None] * self.beam_size
            self.memory = self.memory.take((first + beams).flatten())
            self.beam_size = beams.shape[1]

    def keep(self, sentences: Int[Tensor, " B2"]) -> None:
        beams = torch.arange(self.beam_size, device=sentences.device)
        memory = self.memory.take((sentences[:, None] * self.beam_size + beams).flatten())
        self.memory = replace(memory, source=None if memory.source is None else memory.source.keep(sentences))


class RecurrentDecoder(SequenceDecoder):
    """Base of recurrent decoders. Implement `advance`; override `run` if no step depends on the output of another."""

    def __init__(self, shape: RecurrentShape, extra: int) -> None:
        super().__init__()
        self.bptt = shape.bptt
        size = shape.hidden_size
        self.bridge = Linear(shape.source_size, size)
        self.stack = RecurrentStack(shape.cell, shape.embedding_size + extra, size, shape.num_layers, shape.dropout)
        self.output_dropout = Dropout(shape.dropout)
        self.narrow = Linear(size, shape.embedding_size)

    def forward(self, x: Vectors, memory: Vectors | None = None) -> Vectors:
        """Return the vectors of a whole target [B, T, M] by teacher forcing."""
        assert memory is not None
        return replace(x, values=self._narrowed(self.run(x.values, memory)))

    def start(self, memory: Vectors | None, beam_size: int, max_length: int) -> RecurrentState:
        """Return the state before the first target token."""
        assert memory is not None
        return RecurrentState(self.begin(memory))

    def step(self, x: Float[Tensor, "N 1 M"], state: RecurrentState) -> Float[Tensor, "N 1 M"]:
        """Return the vector of the newest token of every beam; `state` is changed in place."""
        vectors, state.memory = self.advance(x[:, 0], state.memory)
        return self._narrowed(vectors)[:, None]

    def begin(self, read: Vectors) -> DecoderMemory:
        """Return the memory before the first token, one row for each sentence."""
        assert read.state is not None
        return DecoderMemory(map_state(read.state, lambda part: torch.tanh(self.bridge(part))))

    def advance(self, x: Float[Tensor, "N M"], memory: DecoderMemory) -> tuple[Float[Tensor, "N R"], DecoderMemory]:
        """Read one token of every row; return its vector and the memory after it."""
        raise NotImplementedError

    def run(self, x: Float[Tensor, "B T M"], read: Vectors) -> Float[Tensor, "B T R"]:
        """Read all tokens of a target, one after the other; return their vectors."""
        memory, outputs = self.begin(read), []
        for index, token in enumerate(x.unbind(1)):
            if self.bptt and index % self.bptt == 0 and index:
                memory = _cut(memory)
            vector, memory = self.advance(token, memory)
            outputs.append(vector)
        return torch.stack(outputs, 1)

    def _narrowed(self, vectors: Tensor) -> Tensor:
        narrowed: Tensor = self.narrow(self.output_dropout(vectors))
        return narrowed

    def _advance(self, x: Tensor, memory: DecoderMemory) -> tuple[Tensor, DecoderMemory]:
        vectors, state = self.stack(x[:, None], memory.state, call=memory.length)
        return vectors[:, 0], replace(memory, state=state, length=memory.length + 1)


class SutskeverConfig(RecurrentDecoderConfig):
    """Decoder whose first state is tanh(W s + b) of the encoder's last state s. Sutskever et al. 2014 take s itself."""

    kind: Literal["sutskever"] = "sutskever"

    def build(self, shape: RecurrentShape) -> "SutskeverDecoder":
        return SutskeverDecoder(shape)


class SutskeverDecoder(RecurrentDecoder):
    """Sutskever et al. 2014, https://arxiv.org/abs/1409.3215: the source enters only through the first state.

    As in the other decoders here, the first state is tanh(W s + b) of the encoder's last state s. In the paper it is s.
    """

    def __init__(self, shape: RecurrentShape) -> None:
        super().__init__(shape, extra=0)

    def advance(self, x: Tensor, memory: DecoderMemory) -> tuple[Tensor, DecoderMemory]:
        return self._advance(x, memory)

    def run(self, x: Tensor, read: Vectors) -> Tensor:
        vectors: Tensor = self.stack(x, self.begin(read).state, self.bptt)[0]
        return vectors


class ChoConfig(RecurrentDecoderConfig):
    """Decoder that reads the encoder's last state at every step as the context (Cho et al. 2014)."""

    kind: Literal["cho"] = "cho"

    def build(self, shape: RecurrentShape) -> "ChoDecoder":
        return ChoDecoder(shape)


class ChoDecoder(RecurrentDecoder):
    """Cho et al. 2014, https://arxiv.org/abs/1406.1078: the same context at every step, for state and output."""

    def __init__(self, shape: RecurrentShape) -> None:
        super().__init__(shape, extra=shape.source_size)
        self.output = Linear(shape.hidden_size + shape.source_size, shape.hidden_size)

    def begin(self, read: Vectors) -> DecoderMemory:
        return replace(super().begin(read), context=_state(read)[0][-1])

    def advance(self, x: Tensor, memory: DecoderMemory) -> tuple[Tensor, DecoderMemory]:
        assert memory.context is not None
        vectors, after = self._advance(torch.cat([x, memory.context], -1), memory)
        return self._combine(vectors, memory.context), after

    def run(self, x: Tensor, read: Vectors) -> Tensor:
        memory = self.begin(read)
        assert memory.context is not None
        context = memory.context[:, None].expand(-1, x.shape[1], -1)
        vectors, _ = self.stack(torch.cat([x, context], -1), memory.state, self.bptt)
        return self._combine(vectors, context)

    def _combine(self, vectors: Tensor, context: Tensor) -> Tensor:
        return torch.tanh(self.output(torch.cat([vectors, context], -1)))


class BahdanauConfig(RecurrentDecoderConfig):
    """Decoder that attends with the state before a step, which then reads the context (Bahdanau et al. 2015)."""

    kind: Literal["bahdanau"] = "bahdanau"

    attention: AttentionConfig = AdditiveConfig()
    """Attention from a state to the source. Both are projected."""

    def build(self, shape: RecurrentShape) -> "BahdanauDecoder":
        return BahdanauDecoder(shape, self)


class BahdanauDecoder(RecurrentDecoder):
    """Bahdanau et al. 2015, https://arxiv.org/abs/1409.0473: s_t = f(s_(t-1), y_(t-1), c_t), c_t from s_(t-1)."""

    def __init__(self, shape: RecurrentShape, config: BahdanauConfig) -> None:
        size = shape.hidden_size
        super().__init__(shape, extra=shape.source_size)
        self.cross_attention = MemoryAttention(size, shape.source_size, config.attention, size=size)
        self.output = Linear(size + shape.source_size, size)

    def begin(self, read: Vectors) -> DecoderMemory:
        return replace(super().begin(read), source=self.cross_attention.project(read.values, read.real))

    def advance(self, x: Tensor, memory: DecoderMemory) -> tuple[Tensor, DecoderMemory]:
        context = _attend(self.cross_attention, memory.state[0][-1], memory)
        vectors, after = self._advance(torch.cat([x, context], -1), memory)
        return torch.tanh(self.output(torch.cat([vectors, context], -1))), after


class LuongConfig(RecurrentDecoderConfig):
    """Decoder that attends with the state after a step; state and context give the next token (Luong et al. 2015)."""

    kind: Literal["luong"] = "luong"

    attention: AttentionConfig = ScaledDotProductConfig(scaled=False)
    """Attention from a state to the source. Not projected: dot (the default), `general`, `location`, `window`
    (local-m with scaled dot products), `local_predictive` (local-p). Projected: `additive` (concat)."""

    input_feeding: bool = True
    """Read the last attentional vector together with the next token."""

    def build(self, shape: RecurrentShape) -> "LuongDecoder":
        return LuongDecoder(shape, self)


class LuongDecoder(RecurrentDecoder):
    """Luong et al. 2015, https://arxiv.org/abs/1508.04025: c_t from s_t; tanh(W [c_t; s_t]) is fed to the next step."""

    def __init__(self, shape: RecurrentShape, config: LuongConfig) -> None:
        size = shape.hidden_size
        super().__init__(shape, extra=size if config.input_feeding else 0)
        self.feeds = config.input_feeding
        self.cross_attention = MemoryAttention(size, shape.source_size, config.attention, size=None)
        self.output = Linear(size + shape.source_size, size, bias=False)

    def begin(self, read: Vectors) -> DecoderMemory:
        memory = replace(super().begin(read), source=self.cross_attention.project(read.values, read.real))
        return replace(memory, attentional=torch.zeros_like(memory.state[0][-1])) if self.feeds else memory

    def advance(self, x: Tensor, memory: DecoderMemory) -> tuple[Tensor, DecoderMemory]:
        read = x if memory.attentional is None else torch.cat([x, memory.attentional], -1)
        vectors, after = self._advance(read, memory)
        context = _attend(self.cross_attention, vectors, memory)
        attentional = torch.tanh(self.output(torch.cat([context, vectors], -1)))
        return attentional, replace(after, attentional=attentional if self.feeds else None)

    def run(self, x: Tensor, read: Vectors) -> Tensor:
        return super().run(x, read) if self.feeds else self._run_at_once(x, read)

    def _run_at_once(self, x: Tensor, read: Vectors) -> Tensor:
        memory = self.begin(read)
        assert memory.source is not None
        vectors, _ = self.stack(x, memory.state, self.bptt)
        context = self.cross_attention(vectors, memory.source, torch.arange(x.shape[1], device=x.device))
        return torch.tanh(self.output(torch.cat([context, vectors], -1)))


def _attend(attention: MemoryAttention, states: Tensor, memory: DecoderMemory) -> Tensor:
    """Return the context of each row. Beams of a sentence are queries on one memory, all at the same position."""
    assert memory.source is not None
    beams = states.view(len(memory.source.keys), -1, states.shape[-1])
    at = torch.full((beams.shape[1],), memory.length, device=states.device)
    return attention(beams, memory.source, at).reshape(len(states), -1)


def _state(read: Vectors) -> State:
    assert read.state is not None
    return read.state


def _cut(memory: DecoderMemory) -> DecoderMemory:
    """Return the memory, detached from the graph of gradients."""
    attentional = None if memory.attentional is None else memory.attentional.detach()
    return replace(memory, state=map_state(memory.state, Tensor.detach), attentional=attentional)
