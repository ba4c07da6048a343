"""How a recurrent decoder knows the source while it writes: four ways, one interface.

Each takes embedded tokens to vectors that the output reads. `run` teaches all steps of a target; `step` takes one,
for every beam. A way that has to know its own last answer runs `step` over the target.

Shape legend: B sentences, W beams, T target length, S source length, M size of an embedding, R size of a state.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regardant.layers.linear import Linear
from regardant.layers.memory_attention import AskedMemory, MemoryAttention
from regardant.layers.recurrent import RecurrentStack, State, mapped
from regardant.models.recurrent.config import BahdanauConfig, ChoConfig, LuongConfig, RecurrentConfig, SutskeverConfig


@dataclass(frozen=True)
class ReadSource:
    """What the encoder hands over."""

    states: Float[Tensor, "B S R"]
    real: Tensor
    """[B, S] bool."""
    last: State
    """Of every layer."""


@dataclass(frozen=True)
class DecoderMemory:
    """Everything a decoder remembers between two steps, a row a beam; what is asked, a row a sentence."""

    state: State = field(metadata={"rows": 1})
    """[L, B x W, R] each."""
    said: Float[Tensor, "N R"] | None = None
    """What attention last said, where it is fed in again."""
    asked: AskedMemory | None = None
    context: Float[Tensor, "N R"] | None = None
    """The one context of all steps."""
    length: int = 0

    def take(self, rows: Int[Tensor, " N2"]) -> "DecoderMemory":
        """Row i of the result continues what was row `rows[i]`."""
        return replace(
            self,
            state=mapped(self.state, lambda part: part[:, rows]),
            said=None if self.said is None else self.said[rows],
            context=None if self.context is None else self.context[rows],
        )


class RecurrentDecoder(nn.Module):
    """Write `step`; override `run` where the steps need not wait for each other."""

    def __init__(self, config: RecurrentConfig, extra: int) -> None:
        super().__init__()
        self.config = config
        size = config.hidden_size
        self.bridge = Linear(size, size)
        self.stack = RecurrentStack(config.cell, config.embedding_size + extra, size, config.num_layers, config.dropout)

    def start(self, read: ReadSource) -> DecoderMemory:
        """Before the first token of one target a sentence."""
        return DecoderMemory(mapped(read.last, lambda part: torch.tanh(self.bridge(part))))

    def step(self, x: Float[Tensor, "N M"], memory: DecoderMemory) -> tuple[Float[Tensor, "N R"], DecoderMemory]:
        """One token more of every row."""
        raise NotImplementedError

    def run(self, x: Float[Tensor, "B T M"], read: ReadSource) -> Float[Tensor, "B T R"]:
        """All tokens of a target, one after the other."""
        memory, said = self.start(read), []
        for index, token in enumerate(x.unbind(1)):
            if self.config.bptt and index % self.config.bptt == 0 and index:
                memory = _cut(memory)
            vector, memory = self.step(token, memory)
            said.append(vector)
        return torch.stack(said, 1)

    def _advance(self, x: Tensor, memory: DecoderMemory) -> tuple[Tensor, DecoderMemory]:
        vectors, state = self.stack(x[:, None], memory.state, call=memory.length)
        return vectors[:, 0], replace(memory, state=state, length=memory.length + 1)


class SutskeverDecoder(RecurrentDecoder):
    """Sutskever et al. 2014, https://arxiv.org/abs/1409.3215: the first state is all it knows of the source."""

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__(config, extra=0)

    def step(self, x: Tensor, memory: DecoderMemory) -> tuple[Tensor, DecoderMemory]:
        return self._advance(x, memory)

    def run(self, x: Tensor, read: ReadSource) -> Tensor:
        vectors: Tensor = self.stack(x, self.start(read).state, self.config.bptt)[0]
        return vectors


class ChoDecoder(RecurrentDecoder):
    """Cho et al. 2014, https://arxiv.org/abs/1406.1078: the same context at every step, for state and output."""

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__(config, extra=config.hidden_size)
        self.output = Linear(2 * config.hidden_size, config.hidden_size)

    def start(self, read: ReadSource) -> DecoderMemory:
        return replace(super().start(read), context=read.last[0][-1])

    def step(self, x: Tensor, memory: DecoderMemory) -> tuple[Tensor, DecoderMemory]:
        assert memory.context is not None
        vectors, after = self._advance(torch.cat([x, memory.context], -1), memory)
        return self._said(vectors, memory.context), after

    def run(self, x: Tensor, read: ReadSource) -> Tensor:
        memory = self.start(read)
        assert memory.context is not None
        context = memory.context[:, None].expand(-1, x.shape[1], -1)
        vectors, _ = self.stack(torch.cat([x, context], -1), memory.state, self.config.bptt)
        return self._said(vectors, context)

    def _said(self, vectors: Tensor, context: Tensor) -> Tensor:
        return torch.tanh(self.output(torch.cat([vectors, context], -1)))


class BahdanauDecoder(RecurrentDecoder):
    """Bahdanau et al. 2015, https://arxiv.org/abs/1409.0473: s_t = f(s_(t-1), y_(t-1), c_t), c_t asked by s_(t-1)."""

    def __init__(self, config: RecurrentConfig) -> None:
        assert isinstance(config.decoder, BahdanauConfig)
        size = config.hidden_size
        super().__init__(config, extra=size)
        self.cross_attention = MemoryAttention(size, size, config.decoder.attention, size=size)
        self.output = Linear(2 * size, size)

    def start(self, read: ReadSource) -> DecoderMemory:
        return replace(super().start(read), asked=self.cross_attention.read(read.states, read.real))

    def step(self, x: Tensor, memory: DecoderMemory) -> tuple[Tensor, DecoderMemory]:
        context = _ask(self.cross_attention, memory.state[0][-1], memory)
        vectors, after = self._advance(torch.cat([x, context], -1), memory)
        return torch.tanh(self.output(torch.cat([vectors, context], -1))), after


class LuongDecoder(RecurrentDecoder):
    """Luong et al. 2015, https://arxiv.org/abs/1508.04025: c_t asked by s_t, tanh(W [c_t; s_t]) fed in again."""

    def __init__(self, config: RecurrentConfig) -> None:
        assert isinstance(config.decoder, LuongConfig)
        size = config.hidden_size
        super().__init__(config, extra=size if config.decoder.input_feeding else 0)
        self.feeds = config.decoder.input_feeding
        self.cross_attention = MemoryAttention(size, size, config.decoder.attention, size=None)
        self.output = Linear(2 * size, size, bias=False)

    def start(self, read: ReadSource) -> DecoderMemory:
        memory = replace(super().start(read), asked=self.cross_attention.read(read.states, read.real))
        return replace(memory, said=torch.zeros_like(memory.state[0][-1])) if self.feeds else memory

    def step(self, x: Tensor, memory: DecoderMemory) -> tuple[Tensor, DecoderMemory]:
        vectors, after = self._advance(x if memory.said is None else torch.cat([x, memory.said], -1), memory)
        context = _ask(self.cross_attention, vectors, memory)
        said = torch.tanh(self.output(torch.cat([context, vectors], -1)))
        return said, replace(after, said=said if self.feeds else None)

    def run(self, x: Tensor, read: ReadSource) -> Tensor:
        return super().run(x, read) if self.feeds else self._run_at_once(x, read)

    def _run_at_once(self, x: Tensor, read: ReadSource) -> Tensor:
        memory = self.start(read)
        assert memory.asked is not None
        vectors, _ = self.stack(x, memory.state, self.config.bptt)
        context = self.cross_attention(vectors, memory.asked, torch.arange(x.shape[1], device=x.device))
        return torch.tanh(self.output(torch.cat([context, vectors], -1)))


DECODERS: dict[type, Callable[[RecurrentConfig], RecurrentDecoder]] = {
    SutskeverConfig: SutskeverDecoder,
    ChoConfig: ChoDecoder,
    BahdanauConfig: BahdanauDecoder,
    LuongConfig: LuongDecoder,
}


def _ask(attention: MemoryAttention, states: Tensor, memory: DecoderMemory) -> Tensor:
    """The context of each row: the beams of a sentence are queries on one memory, and all stand at one position."""
    assert memory.asked is not None
    beams = states.view(len(memory.asked.keys), -1, states.shape[-1])
    at = torch.full((beams.shape[1],), memory.length, device=states.device)
    return attention(beams, memory.asked, at).reshape_as(states)


def _cut(memory: DecoderMemory) -> DecoderMemory:
    """The same, known without a gradient."""
    said = None if memory.said is None else memory.said.detach()
    return replace(memory, state=mapped(memory.state, Tensor.detach), said=said)
