"""Recurrent stacks: a state that is carried from token to token.

Vanilla: h_t = tanh(W x_t + U h_(t-1) + b) (Elman 1990). LSTM: Hochreiter and Schmidhuber 1997, with the forget gate of
Gers et al. 2000. GRU: Cho et al. 2014, https://arxiv.org/abs/1406.1078, but with the candidate state
tanh(W x_t + r * (U h_(t-1) + b)), where theirs is tanh(W x_t + U (r * h_(t-1))). The cells are PyTorch's own.

Shape legend: B sentences, N rows, T tokens, L layers, I size of the input, R size of the state.
"""

from collections.abc import Callable
from typing import Literal, TypeVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from regardant.layers.dropout import Dropout

Cell = Literal["rnn", "lstm", "gru"]
Combine = Literal["concatenate", "add"]

CELLS: dict[str, type[nn.RNN | nn.LSTM | nn.GRU]] = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}

State = tuple[Tensor, ...]
"""[L, N, R] each: one tensor, or two for an LSTM (hidden state, cell state)."""

Read = TypeVar("Read", Tensor, PackedSequence)
"""Elements that a cell reads: a block, or packed without padding."""


def map_state(state: State, change: Callable[[Tensor], Tensor]) -> State:
    """Return the state with `change` applied to each tensor."""
    return tuple(change(part) for part in state)


def _run_cell(cell: nn.Module, x: Read, state: State | None) -> tuple[Read, State]:
    """Return the outputs of a cell and its state after them, from a state or from zeros.

    On a CPU the precision is that of the cell's weights, without autocast: a product in bfloat16 is compiled for its
    number of rows, which differs from step to step, and compiling takes longer than bfloat16 saves. See
    docs/decisions/0014.
    """
    weight = next(cell.parameters())
    if weight.device.type == "cpu":
        x = x.to(weight.dtype)
        state = state and map_state(state, lambda part: part.to(weight.dtype))
    with torch.autocast("cpu", enabled=False):
        outputs, after = cell(x, state if state is None or len(state) == 2 else state[0])
    return outputs, after if isinstance(after, tuple) else (after,)


class RecurrentStack(nn.Module):
    """Layers of one kind of cell, with dropout between them."""

    def __init__(self, cell: Cell, input_size: int, size: int, num_layers: int, dropout: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            CELLS[cell](input_size if layer == 0 else size, size, batch_first=True) for layer in range(num_layers)
        )
        self.dropouts = nn.ModuleList(Dropout(dropout) for _ in range(num_layers - 1))
        self.parts = 2 if cell == "lstm" else 1
        self.size = size

    def start(self, like: Float[Tensor, "N ..."]) -> State:
        """Return a state of zeros for each row of `like`."""
        zeros = like.new_zeros(len(self.layers), len(like), self.size)
        return (zeros,) * self.parts

    def forward(
        self, x: Float[Tensor, "N T I"], state: State, bptt: int | None = None, *, call: int = 0
    ) -> tuple[Float[Tensor, "N T R"], State]:
        """Return the states of the top layer at all tokens, and those of all layers after the last token.

        bptt: number of tokens after which the state is detached, so that gradients go back no further (truncated
        back-propagation through time, Williams and Peng 1990). None: never.
        call: number of this call on the same sequence, so that each call draws other dropout masks.
        """
        if bptt is None or x.shape[1] <= bptt:
            return self._run(x, state, call)
        outputs = []
        for index, piece in enumerate(x.split(bptt, 1)):
            if index:  # the first state keeps its gradient: the encoder learns by it
                state = map_state(state, Tensor.detach)
            output, state = self._run(piece, state, call + index)
            outputs.append(output)
        return torch.cat(outputs, 1), state

    def _run(self, x: Tensor, state: State, call: int) -> tuple[Tensor, State]:
        states = []
        for index, layer in enumerate(self.layers):
            if index:
                x = self.dropouts[index - 1](x, call)
            x, after = _run_cell(layer, x, tuple(part[index : index + 1].contiguous() for part in state))
            states.append(after)
        return x, tuple(torch.cat(parts) for parts in zip(*states, strict=True))


class RecurrentEncoder(nn.Module):
    """Recurrent layers over a source, in one direction or two.

    The states have `size` features: each direction has half of them if the two are concatenated, all if they are added.
    """

    def __init__(
        self,
        cell: Cell,
        input_size: int,
        size: int,
        num_layers: int,
        dropout: float,
        *,
        bidirectional: bool,
        combine: Combine,
    ) -> None:
        super().__init__()
        each = size // 2 if bidirectional and combine == "concatenate" else size
        self.combine = combine
        self.bidirectional = bidirectional
        self.bptt: int | None = None
        self.layers = nn.ModuleList(
            CELLS[cell](input_size if layer == 0 else size, each, batch_first=True, bidirectional=bidirectional)
            for layer in range(num_layers)
        )
        self.dropouts = nn.ModuleList(Dropout(dropout) for _ in range(num_layers - 1))
        self.parts = 2 if cell == "lstm" else 1

    def truncate(self, bptt: int | None) -> None:
        """Let gradients go back `bptt` tokens at most (truncated back-propagation through time). None: all tokens.

        Raises:
            ValueError: the encoder is bidirectional.
        """
        if bptt is not None and self.bidirectional:
            raise ValueError("a bidirectional encoder cannot be truncated: set bidirectional=false")
        self.bptt = bptt

    def read(self, x: Float[Tensor, "B T I"], real: Bool[Tensor, "B T"] | None) -> tuple[Float[Tensor, "B T R"], State]:
        """Return the states of all elements, and the last states of every layer. Padding is not read."""
        lengths = torch.full((len(x),), x.shape[1]) if real is None else real.sum(1).cpu()
        last = []
        for index, layer in enumerate(self.layers):
            if index:
                x = self.dropouts[index - 1](x)
            if self.bptt is not None and x.shape[1] > self.bptt:
                assert isinstance(layer, nn.RNNBase)
                x, after = self._in_pieces(layer, x, lengths, self.bptt)
                last.append([part[0] for part in after])
                continue
            packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            read, after = _run_cell(layer, packed, None)
            x = self._joined(pad_packed_sequence(read, batch_first=True, total_length=x.shape[1])[0])
            last.append([self._last(part) for part in after])
        return x, tuple(torch.stack(parts) for parts in zip(*last, strict=True))

    def _in_pieces(self, layer: nn.RNNBase, x: Tensor, lengths: Tensor, bptt: int) -> tuple[Tensor, State]:
        """Read `bptt` tokens at a time, each piece from the detached state of the one before."""
        zeros = x.new_zeros(1, len(x), layer.hidden_size)
        state: State = (zeros,) * self.parts
        outputs: list[Tensor] = []
        for start in range(0, x.shape[1], bptt):
            piece = x[:, start : start + bptt]
            alive = (lengths > start).nonzero().flatten().to(x.device)
            if not len(alive):  # padding alone, as in a part of a batch without its longest row
                outputs.append(outputs[-1].new_zeros(*piece.shape[:2], layer.hidden_size))
                continue
            left = (lengths[alive.cpu()] - start).clamp(max=piece.shape[1])
            packed = pack_padded_sequence(piece[alive], left, batch_first=True, enforce_sorted=False)
            before = map_state(state, lambda part, rows=alive: part.detach()[:, rows].contiguous())  # type: ignore[misc]
            read, after = _run_cell(layer, packed, before)
            padded = pad_packed_sequence(read, batch_first=True, total_length=piece.shape[1])[0]
            outputs.append(padded.new_zeros(len(x), *padded.shape[1:]).index_copy(0, alive, padded))
            state = tuple(old.to(new.dtype).index_copy(1, alive, new) for old, new in zip(state, after, strict=True))
        return torch.cat(outputs, 1), state

    def _joined(self, x: Tensor) -> Tensor:
        if not self.bidirectional or self.combine == "concatenate":
            return x
        forward, backward = x.chunk(2, -1)
        return forward + backward

    def _last(self, state: Tensor) -> Tensor:
        """Join the directions of one layer: [directions, B, R] to [B, R]."""
        return self._joined(torch.cat(list(state), -1))
