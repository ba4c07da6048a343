"""Named places of a model at which tensors are captured or changed: quantities of a module.

`decoder.layers.0.cross_attention.weights` is a quantity of the module `decoder.layers.0.cross_attention`. Modules are
recognised by their type, so that a custom model built from the package's parts has places too:

| module | quantities | shape |
|---|---|---|
| an attention mechanism | query, mixed; key, value | [B, H, Q, D]; [B, G, K, D] |
| | scores (if it scores pairs), weights | [B, H, Q, K] |
| a write to the residual stream, an embedding | written | [B, T, M] |
| a normalisation | before, after | [B, T, M] |
| a recurrent cell | state, and the gates of its kind | [N, W, T, R] |
| a convolution or a dense layer in the place of attention | position_weights | [1, T, T] |
| a head with a module `logits` | logits, probabilities | [B, T, V], or [B, C] |

A recurrent decoder attends step by step, and so does any decoder during search: each step is one call.

A call keeps few tensors, and computes the other quantities from them when they are read. So attention costs a copy of
its queries and keys while the model runs, and its n x n weights exist only while they are used; and the gates of a
recurrent cell, which PyTorch's cells do not return, are computed from the cell's inputs and states.

Shape legend: B batch, H query heads, G key heads, Q queries, K keys, T elements, M d_model, V vocabulary, C classes, N
batch elements of a cell, I size of a cell's input, R size of its state, W directions.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

from regardant.attention import Attention, View
from regardant.attention.interface import expand_heads
from regardant.config.did_you_mean import did_you_mean
from regardant.layers.convolution import ConvolutionMixer
from regardant.layers.dense import DenseMixer
from regardant.layers.norms import NORMS
from regardant.layers.residual import Residual
from regardant.models.base import Model
from regardant.models.heads import Head
from regardant.models.representations import Representation

MOST_PAIRS = 1 << 22
"""Largest number of query-key pairs whose weights are computed at once, unless one batch element has more."""

GATES = {
    "RNN_TANH": (),
    "LSTM": ("input_gate", "forget_gate", "candidate", "output_gate"),
    "GRU": ("reset_gate", "update_gate", "candidate"),
}
"""Gates of a recurrent cell by PyTorch's name of the cell, in the order of its matrices."""

INPUTS = {"query": 0, "key": 1, "value": 2, "before": 0}
"""Quantities that are arguments of a module, with the index of the argument."""

OUTPUTS = frozenset({"mixed", "written", "after", "logits"})
"""Quantities that a module returns."""

VIEW = 3
"""Index of the view among the arguments of a mechanism."""

COMPUTED = {"weights": ("query", "key"), "scores": ("query", "key"), "probabilities": ("logits",)}
"""Quantities that no module takes or returns, with those from which they are computed."""

BEFORE_CHANGE = ("weights_before", "mixed_before")
"""Attributes of an attention mechanism that hold its tensors before a change by `intervene`, for gradients."""

Keep = Callable[[Tensor], Tensor]
"""Function that returns what a record keeps of a tensor: a copy, or the tensor itself."""


@dataclass(frozen=True)
class Call:
    """One call of a module."""

    tensors: Mapping[str, Tensor]
    """Kept tensors by quantity."""

    def read(self, quantity: str) -> Tensor:
        """Return a quantity, computed if it was not kept, as a tensor that the caller may change."""
        return self.tensors["logits"].softmax(-1) if quantity == "probabilities" else self.tensors[quantity].clone()

    def gradient(self, quantity: str, gradients: Mapping[str, Tensor]) -> Tensor | None:
        """Return the gradient with respect to a quantity, given those with respect to `tensors`. None: no gradient."""
        return gradients.get(quantity)


@dataclass(frozen=True)
class AttentionCall(Call):
    """One call of an attention mechanism. `weights` are among the tensors only if an intervention has edited them, the
    tensors of BEFORE_CHANGE only if an intervention has changed the weights or the mixed values."""

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
        return torch.cat([ask(q[some], k[some], _slice_view(self.view, some)) for some in slices])

    def mask(self) -> Tensor:
        """Return the pairs that may attend [B, H, Q, K], by the view and by the mechanism's own mask: True = may."""
        q = self.tensors["query"]
        k = expand_heads(self.tensors["key"], q.shape[1])
        own, given = self.mechanism.mask(q, k, self.view), self.view.mask(q, k)
        return (own if given is None else own & given).expand(*q.shape[:3], k.shape[2])

    def gradient(self, quantity: str, gradients: Mapping[str, Tensor]) -> Tensor | None:
        if quantity not in ("weights", "scores"):
            return gradients.get(quantity)
        of_mixed = gradients.get("mixed_before", gradients["mixed"])
        of_weights = of_mixed @ expand_heads(self.tensors["value"].detach(), of_mixed.shape[1]).mT
        return of_weights if quantity == "weights" else self._of_scores(gradients.get("weights_before", of_weights))

    def _of_scores(self, of_weights: Tensor) -> Tensor | None:
        """Return the gradient with respect to scores, that of a zero bias added to them. None: no bias is taken."""
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
    """One call of a recurrent cell over a sequence. Its quantities are [N, W, T, R]; at padding they have no meaning.

    LSTM: gates = sigmoid, candidate = tanh of W x + U h + b. GRU: the same, except that in the candidate the reset gate
    multiplies U h + b (Cho et al. 2014, https://arxiv.org/abs/1406.1078, eq. 5 to 8, in PyTorch's form).
    """

    cell: nn.RNNBase
    packing: PackedSequence | None
    """Packing of the tensors, if the batch elements are of unequal length."""

    def read(self, quantity: str) -> Tensor:
        states = self._by_direction(self._unpacked(self.tensors["state"]))
        if quantity == "state":
            return states.clone()
        x, first = self._unpacked(self.tensors["input"]), self.tensors["first"]
        gates = [self._gates(x, states[:, way], first[way], backward=bool(way)) for way in range(states.shape[1])]
        return torch.stack([of_way[quantity] for of_way in gates], 1)

    def gradient(self, quantity: str, gradients: Mapping[str, Tensor]) -> Tensor | None:
        """Return the gradient with respect to `state`: the effect of each state as an output of the cell at its step.

        PyTorch's cells compute later states and the final one inside, from states that no hook sees, so that a state's
        effect through them is not in its gradient.
        """
        return self._by_direction(self._unpacked(gradients["state"])) if quantity == "state" else None

    def _unpacked(self, data: Tensor) -> Tensor:
        if self.packing is None:
            return data
        packed = PackedSequence(data, *self.packing[1:])
        return pad_packed_sequence(packed, batch_first=True)[0]

    def _by_direction(self, states: Tensor) -> Tensor:
        return states.unflatten(-1, (-1, self.cell.hidden_size)).transpose(1, 2)

    def _gates(self, x: Tensor, states: Tensor, first: Tensor, *, backward: bool) -> dict[str, Tensor]:
        """Return the gates of one direction, given inputs [N, T, I], states [N, T, R] and the initial state [N, R]."""
        # Backwards, a batch element begins at its last real token. The states after it are zeros, like the initial one.
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


@dataclass(frozen=True)
class Site:
    """A module with places."""

    name: str
    module: nn.Module
    quantities: tuple[str, ...]

    def kept(self, quantities: Iterable[str], *, gradients: bool) -> frozenset[str]:
        """Return the quantities that a call must keep so that the given ones can be read."""
        kept = {part for quantity in quantities for part in COMPUTED.get(quantity, (quantity,))}
        if gradients and not COMPUTED.keys().isdisjoint(quantities) and isinstance(self.module, Attention):
            kept |= {"value", "mixed"}
        return frozenset(kept)

    def call(self, inputs: tuple[Any, ...], output: Any, kept: frozenset[str], keep: Keep) -> Call:
        """Return the record of one call."""
        tensors = {name: keep(inputs[INPUTS[name]] if name in INPUTS else output) for name in sorted(kept)}
        if not isinstance(self.module, Attention):
            return Call(tensors)
        edited = getattr(self.module, "edited", None)  # by `intervene`
        if edited is not None:
            tensors["weights"] = keep(edited)
        for name in BEFORE_CHANGE:
            before = getattr(self.module, name, None)
            if before is not None and before.requires_grad:
                tensors[name] = keep(before)
        return AttentionCall(tensors, self.module, inputs[VIEW])


@dataclass(frozen=True)
class FixedSite(Site):
    """A mixer whose weights depend on positions or offsets, not on the elements."""

    def kept(self, quantities: Iterable[str], *, gradients: bool) -> frozenset[str]:
        return frozenset(quantities)

    def call(self, inputs: tuple[Any, ...], output: Any, kept: frozenset[str], keep: Keep) -> Call:
        assert isinstance(self.module, ConvolutionMixer | DenseMixer)
        return Call({"position_weights": keep(self.module.position_weights(inputs[0].shape[1])[None])})


@dataclass(frozen=True)
class RecurrentSite(Site):
    """A recurrent cell, whose tensors may be packed."""

    def kept(self, quantities: Iterable[str], *, gradients: bool) -> frozenset[str]:
        return frozenset({"state"} if set(quantities) == {"state"} else {"input", "state", "first"})

    def call(self, inputs: tuple[Any, ...], output: Any, kept: frozenset[str], keep: Keep) -> Call:
        x, states = inputs[0], output[0]
        packing = x if isinstance(x, PackedSequence) else None
        tensors = {"state": keep(states if packing is None else states.data)}
        if "input" in kept:
            tensors |= {"input": keep(x if packing is None else x.data), "first": keep(self._first(inputs, output))}
        assert isinstance(self.module, nn.RNNBase)
        return RecurrentCall(tensors, self.module, packing)

    def _first(self, inputs: tuple[Any, ...], output: Any) -> Tensor:
        """Return the state before the first element, [W, N, R]: zeros if none is given."""
        given = inputs[1] if len(inputs) > 1 else None
        if given is None:
            last = output[1]
            return torch.zeros_like(last[0] if isinstance(last, tuple) else last)
        first: Tensor = given[0] if isinstance(given, tuple) else given
        return first


def sites(model: nn.Module) -> list[Site]:
    """Return the modules of a model that have places."""
    found = (_site(name, module) for name, module in model.named_modules())
    return [site for site in found if site is not None]


def place_names(model: nn.Module) -> list[str]:
    """Return the names of all places of a model."""
    return [f"{site.name}.{quantity}" for site in sites(model) for quantity in site.quantities]


def kind_of(attention: str) -> str:
    """Return the kind of an attention, its name without the layer: `decoder.layers.1.cross_attention` is a
    `decoder.cross_attention`."""
    return re.sub(r"(\.layers)?\.\d+", "", attention)


def attention_places(model: Model) -> dict[str, list[str]]:
    """Return the names of attentions by kind, as in `Model.attention_kinds`, in the order of layers.

    A kind that another mixer replaces, such as a convolution, is left out.
    """
    return _places_with(model, "weights")


def mixer_places(model: Model) -> dict[str, list[str]]:
    """Return the names of convolutions and dense layers, by the kind of attention that they replace."""
    return _places_with(model, "position_weights")


def _places_with(model: Model, quantity: str) -> dict[str, list[str]]:
    places: dict[str, list[str]] = {kind: [] for kind in model.attention_kinds}
    for site in sites(model):
        if quantity in site.quantities and (kind := kind_of(site.name)) in places:
            places[kind].append(site.name)
    return {kind: names for kind, names in places.items() if names}


def choose(model: nn.Module, patterns: str | Sequence[str]) -> list[tuple[Site, tuple[str, ...]]]:
    """Return the sites and their quantities whose names match one of the patterns; * matches anything.

    Raises ValueError for a pattern that no place matches.
    """
    patterns = [patterns] if isinstance(patterns, str) else patterns
    names = place_names(model)
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            near = did_you_mean(pattern, names) or ": `inspection.place_names` lists them"
            raise ValueError(f"this model has no place {pattern!r}{near}")
    chosen = [
        (site, tuple(q for q in site.quantities if any(fnmatchcase(f"{site.name}.{q}", p) for p in patterns)))
        for site in sites(model)
    ]
    return [(site, quantities) for site, quantities in chosen if quantities]


def _site(name: str, module: nn.Module) -> Site | None:
    if isinstance(module, Attention):
        scores = ("scores",) if module.has_scores else ()
        quantities = ("query", "key", "value", *scores, "weights", "mixed")
        return Site(name.removesuffix(".mechanism"), module, quantities)
    if isinstance(module, ConvolutionMixer | DenseMixer):
        return FixedSite(name, module, ("position_weights",))
    if isinstance(module, Residual):
        return Site(name, module.written, ("written",))
    if isinstance(module, Representation):
        return Site(name, module.written, ("written",))
    if isinstance(module, NORMS):
        return Site(name, module, ("before", "after"))
    if isinstance(module, Head) and isinstance(logits := getattr(module, "logits", None), nn.Module):
        return Site(name, logits, ("logits", "probabilities"))
    if isinstance(module, nn.RNNBase) and module.num_layers == 1 and module.mode in GATES:
        return RecurrentSite(name, module, ("state", *GATES[module.mode]))
    return None


def _slice_view(view: View, some: slice) -> View:
    """Return the view of a slice of the batch elements."""

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
