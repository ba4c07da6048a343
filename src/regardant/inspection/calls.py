"""What passed through a module, once: a few tensors, from which all else is computed when somebody reads it.

So attention costs its queries and keys while the model runs, and n x n weights only for as long as they are looked at;
and the gates of a recurrent cell, which PyTorch's cells do not show, are had from what the cell read and said.

Shape legend: B sentences, H query heads, Q queries, K keys, N rows, T tokens, I size of an input, R size of a state,
W directions.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

from regardant.attention import Attention, View
from regardant.attention.interface import expand_heads

MOST_PAIRS = 1 << 22
"""Pairs of a query and a key that are weighed at a time, unless one sentence has more."""

GATES = {
    "RNN_TANH": (),
    "LSTM": ("input_gate", "forget_gate", "candidate", "output_gate"),
    "GRU": ("reset_gate", "update_gate", "candidate"),
}
"""By PyTorch's name of the cell, in the order of its matrices."""


@dataclass(frozen=True)
class Call:
    """One call of a module."""

    tensors: Mapping[str, Tensor]
    """What passed, by quantity."""

    def read(self, quantity: str) -> Tensor:
        """A quantity, computed if need be; a tensor of the reader's own."""
        return self.tensors["logits"].softmax(-1) if quantity == "probabilities" else self.tensors[quantity].clone()

    def gradient(self, quantity: str, gradients: Mapping[str, Tensor]) -> Tensor | None:
        """With respect to a quantity, from those with respect to `tensors`. None where there is none."""
        return gradients.get(quantity)


@dataclass(frozen=True)
class AttentionCall(Call):
    """Queries met keys. `weights` are among the tensors only where somebody has edited them."""

    mechanism: Attention
    view: View

    def read(self, quantity: str) -> Tensor:
        if quantity in self.tensors:
            return super().read(quantity)
        q, k = self.tensors["query"], self.tensors["key"]
        ask = self.mechanism.weights if quantity == "weights" else self.mechanism.scores
        at_once = max(1, MOST_PAIRS // (q.shape[1] * q.shape[2] * k.shape[2]))
        if at_once >= len(q):
            return ask(q, k, self.view)
        slices = (slice(start, start + at_once) for start in range(0, len(q), at_once))
        return torch.cat([ask(q[some], k[some], _of_sentences(self.view, some)) for some in slices])

    def gradient(self, quantity: str, gradients: Mapping[str, Tensor]) -> Tensor | None:
        if quantity not in ("weights", "scores"):
            return gradients.get(quantity)
        of_mixed = gradients["mixed"]
        of_weights = of_mixed @ expand_heads(self.tensors["value"].detach(), of_mixed.shape[1]).mT
        return of_weights if quantity == "weights" else self._of_scores(of_weights)

    def _of_scores(self, of_weights: Tensor) -> Tensor | None:
        """What is added to a score has the score's gradient: zeros are added."""
        if "bias" not in self.mechanism.honours:
            return None
        zeros, bias = torch.zeros_like(of_weights, requires_grad=True), self.view.bias
        view = replace(self.view, bias=lambda at_q, at_k: zeros if bias is None else bias(at_q, at_k) + zeros)
        with torch.enable_grad():
            weights = self.mechanism.weights(self.tensors["query"].detach(), self.tensors["key"].detach(), view)
        (found,) = torch.autograd.grad(weights, zeros, of_weights.to(weights.dtype))
        return found


@dataclass(frozen=True)
class RecurrentCall(Call):
    """A cell read tokens one after the other. All that is read from it is [N, W, T, R], padding zeros or meaningless.

    LSTM: gates = sigmoid, candidate = tanh of W x + U h + b. GRU: the same, but that the reset gate multiplies U h + b
    in the candidate (Cho et al. 2014, https://arxiv.org/abs/1406.1078, eq. 5 to 8, in the form that PyTorch computes).
    """

    cell: nn.RNNBase
    packing: PackedSequence | None
    """How the tensors are packed, where the rows are of unequal length."""

    def read(self, quantity: str) -> Tensor:
        states = self._by_direction(self._unpacked(self.tensors["state"]))
        if quantity == "state":
            return states.clone()
        x, first = self._unpacked(self.tensors["input"]), self.tensors["first"]
        gates = [self._gates(x, states[:, way], first[way], backward=bool(way)) for way in range(states.shape[1])]
        return torch.stack([of_way[quantity] for of_way in gates], 1)

    def gradient(self, quantity: str, gradients: Mapping[str, Tensor]) -> Tensor | None:
        return self._by_direction(self._unpacked(gradients["state"])) if quantity == "state" else None

    def _unpacked(self, data: Tensor) -> Tensor:
        if self.packing is None:
            return data
        packed = PackedSequence(data, *self.packing[1:])
        return pad_packed_sequence(packed, batch_first=True)[0]

    def _by_direction(self, states: Tensor) -> Tensor:
        return states.unflatten(-1, (-1, self.cell.hidden_size)).transpose(1, 2)

    def _gates(self, x: Tensor, states: Tensor, first: Tensor, *, backward: bool) -> dict[str, Tensor]:
        """From tokens [N, T, I], states [N, T, R] and the one before them all [N, R]."""
        # A row that is read backwards begins at its last real token, past which the states are zeros as the first is.
        steps = [states[:, 1:], first[:, None]] if backward else [first[:, None], states[:, :-1]]
        before, ending = torch.cat(steps, 1), "_l0_reverse" if backward else "_l0"
        of_x, of_state = (
            nn.functional.linear(given, getattr(self.cell, f"weight_{part}{ending}"), self._bias(part + ending))
            for part, given in (("ih", x), ("hh", before))
        )
        names = GATES[self.cell.mode]
        parts = zip(names, of_x.chunk(len(names), -1), of_state.chunk(len(names), -1), strict=True)
        gates: dict[str, Tensor] = {}
        for name, mine, carried in parts:
            if name != "candidate":
                gates[name] = torch.sigmoid(mine + carried)
            else:
                gates[name] = torch.tanh(mine + gates.get("reset_gate", 1) * carried)
        return gates

    def _bias(self, name: str) -> Tensor | None:
        return getattr(self.cell, f"bias_{name}") if self.cell.bias else None


def _of_sentences(view: View, some: slice) -> View:
    """The view of a part of a batch."""

    def part(x: Tensor) -> Tensor:
        return x if len(x) == 1 else x[some]

    bias = view.bias

    def part_of_bias(at_q: Tensor, at_k: Tensor) -> Tensor:
        assert bias is not None
        whole = bias(at_q, at_k)
        return part(whole) if whole.dim() == 4 else whole

    return replace(
        view,
        keys=None if view.keys is None else part(view.keys),
        pairs=None if view.pairs is None else part(view.pairs),
        bias=None if bias is None else part_of_bias,
    )
