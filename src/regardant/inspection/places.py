"""Where one may look into a model, by name: a module, and what passes it.

`decoder.layers.0.cross_attention.weights` is of the module `decoder.layers.0.cross_attention`. Modules that tell are
found by what they are, so that a model of a user's own, made of the package's parts, tells as much:

| module | quantities | shape |
|---|---|---|
| a mechanism of attention | query, mixed; key, value | [B, H, Q, D]; [B, G, K, D] |
| | scores (where it scores pairs), weights | [B, H, Q, K] |
| a write to the residual stream, an embedding | written | [B, T, M] |
| a normalisation | before, after | [B, T, M] |
| a recurrent cell | state, and the gates of its kind | [N, directions, T, R] |
| a head with a module `logits` | logits, probabilities | [B, T, V], or [B, C] |

A recurrent decoder asks step by step, and any decoder does so while it writes: each step is a call of its own.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from regardant.attention import Attention
from regardant.config.did_you_mean import did_you_mean
from regardant.inspection.calls import GATES, AttentionCall, Call, RecurrentCall
from regardant.layers.norms import NORMS
from regardant.layers.residual import Residual
from regardant.models.base import Model
from regardant.models.heads import Head
from regardant.models.representations import Representation

INPUTS = {"query": 0, "key": 1, "value": 2, "before": 0}
"""Quantities that a module is given, and as which argument."""

OUTPUTS = frozenset({"mixed", "written", "after", "logits"})
"""Quantities that a module gives."""

VIEW = 3
"""The argument of a mechanism that says what may be seen."""

COMPUTED = {"weights": ("query", "key"), "scores": ("query", "key"), "probabilities": ("logits",)}
"""Quantities that nothing passes as, and what they are computed from."""

Keep = Callable[[Tensor], Tensor]
"""What is kept of a tensor that passes."""


@dataclass(frozen=True)
class Site:
    """A module that one may listen to."""

    name: str
    module: nn.Module
    quantities: tuple[str, ...]

    def kept(self, quantities: Iterable[str], *, gradients: bool) -> frozenset[str]:
        """What has to be kept of a call, so that these can be read."""
        kept = {part for quantity in quantities for part in COMPUTED.get(quantity, (quantity,))}
        if gradients and not COMPUTED.keys().isdisjoint(quantities) and isinstance(self.module, Attention):
            kept |= {"value", "mixed"}
        return frozenset(kept)

    def call(self, inputs: tuple[Any, ...], output: Any, kept: frozenset[str], keep: Keep) -> Call:
        """What is kept of one."""
        tensors = {name: keep(inputs[INPUTS[name]] if name in INPUTS else output) for name in sorted(kept)}
        if not isinstance(self.module, Attention):
            return Call(tensors)
        edited = getattr(self.module, "edited", None)  # by `intervene`
        if edited is not None:
            tensors["weights"] = keep(edited)
        return AttentionCall(tensors, self.module, inputs[VIEW])


@dataclass(frozen=True)
class RecurrentSite(Site):
    """A cell, whose tensors may be packed."""

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
        """The state before the first token, [directions, N, R]: zeros where none is given."""
        given = inputs[1] if len(inputs) > 1 else None
        if given is None:
            last = output[1]
            return torch.zeros_like(last[0] if isinstance(last, tuple) else last)
        first: Tensor = given[0] if isinstance(given, tuple) else given
        return first


def sites(model: nn.Module) -> list[Site]:
    """The modules of a model that tell something."""
    found = (_site(name, module) for name, module in model.named_modules())
    return [site for site in found if site is not None]


def place_names(model: nn.Module) -> list[str]:
    """The names of all places of a model."""
    return [f"{site.name}.{quantity}" for site in sites(model) for quantity in site.quantities]


def kind_of(attention: str) -> str:
    """The name of an attention without its layer: `decoder.layers.1.cross_attention` is a `decoder.cross_attention`."""
    return re.sub(r"(\.layers)?\.\d+", "", attention)


def attention_places(model: Model) -> dict[str, list[str]]:
    """Return the places of attention by kind, as `Model.attention_kinds` names them, in the order of layers.

    A kind that has another mixer in its place, such as a convolution, is left out.
    """
    places: dict[str, list[str]] = {kind: [] for kind in model.attention_kinds}
    for site in sites(model):
        if "weights" in site.quantities and (kind := kind_of(site.name)) in places:
            places[kind].append(site.name)
    return {kind: names for kind, names in places.items() if names}


def choose(model: nn.Module, patterns: str | Sequence[str]) -> list[tuple[Site, tuple[str, ...]]]:
    """The sites and their quantities whose names match one of the patterns: * is anything.

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
