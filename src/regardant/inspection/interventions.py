"""Change the tensors that pass named places of a model.

Inside `intervene`, a mechanism decodes with all its keys, whatever state it would use otherwise, so that the hooks see
every decoding step as they see a full pass: start decoding inside the context. `capture` records the changed tensors,
in whichever order the two contexts are opened.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from regardant.attention import Attention, View
from regardant.attention.interface import expand_heads
from regardant.inspection.places import BEFORE_CHANGE, INPUTS, OUTPUTS, VIEW, Site, choose
from regardant.layers.observed import observing

Change = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Patch:
    """Replacement of the tensor at a place: by another tensor of its shape, or by a function of it."""

    place: str
    """Name of the place, as in `capture`: any but scores, probabilities, position weights and those of recurrent
    cells."""

    value: Tensor | Change

    def change(self) -> Change:
        """Return a new function to apply at one site."""
        value = self.value
        return (lambda x: value.to(x)) if isinstance(value, Tensor) else value


@dataclass(frozen=True)
class ScaleHead:
    """Scaling of the output of an attention head. A factor of 0 switches the head off."""

    attention: str
    """Name of an attention, such as `decoder.layers.0.cross_attention`; * matches anything, here and below."""

    head: int

    factor: float = 0.0

    @property
    def place(self) -> str:
        """Name of the place that is changed."""
        return f"{self.attention}.mixed"

    def change(self) -> Change:
        """Return a new function that scales the head."""

        def scale(mixed: Tensor) -> Tensor:
            _require("head", self.head, mixed.shape[1])
            factors = torch.ones(mixed.shape[1], 1, 1, dtype=mixed.dtype, device=mixed.device)
            factors[self.head] = self.factor
            return mixed * factors

        return scale


@dataclass(frozen=True)
class EditRow:
    """Replacement of the weights of one query of a head."""

    attention: str

    head: int

    row: int
    """Number of the query, counted from 0 since the context was opened: a decoder that attends step by step has row 0,
    then row 1. A second pass continues the count, so open a context for each. In beam search, where the queries of a
    step are beams, `Patch` the weights with a function."""

    weights: Sequence[float]
    """New weights, one for each key."""

    @property
    def place(self) -> str:
        """Name of the place that is changed."""
        return f"{self.attention}.weights"

    def change(self) -> Change:
        """Return a new function that edits the row, and counts the queries it has seen."""
        asked = 0

        def edit(weights: Tensor) -> Tensor:
            nonlocal asked
            row, asked = self.row - asked, asked + weights.shape[2]
            _require("head", self.head, weights.shape[1])
            if not 0 <= row < weights.shape[2]:
                return weights
            if len(self.weights) != weights.shape[3]:
                raise ValueError(f"{len(self.weights)} weights for {weights.shape[3]} keys: give one for each key")
            edited = weights.clone()
            edited[:, self.head, row] = torch.as_tensor(self.weights, dtype=weights.dtype, device=weights.device)
            return edited

        return edit


@dataclass(frozen=True)
class MaskKey:
    """Masking of a key for all queries.

    A mechanism cannot tell the masked key from padding, and two mechanisms read more than keys from padding. In
    `local_predictive` a masked first or last key shortens the source, so that predicted positions move. In `lsh` the
    masked token is in the bucket of padding: its own query attends to nothing, and queries of the bucket that it left
    may reach one key further.
    """

    attention: str

    key: int
    """Position of the key in its sequence."""

    @property
    def place(self) -> str:
        """Name of the place that is changed."""
        return f"{self.attention}.weights"


Intervention = Patch | ScaleHead | EditRow | MaskKey


@contextmanager
def intervene(model: nn.Module, *interventions: Intervention) -> Iterator[None]:
    """Apply the interventions to every pass inside the context.

    Raises ValueError for a place that the model does not have or that cannot be changed, and for an attention that an
    outer context changes already. A pass raises ValueError for a head that does not exist or a changed shape.
    """
    changes: dict[str, dict[str, list[Change]]] = defaultdict(lambda: defaultdict(list))
    masked: dict[str, list[int]] = defaultdict(list)
    touched: dict[str, Site] = {}
    for intervention in interventions:
        for site, quantities in choose(model, intervention.place):
            touched[site.name] = site
            if isinstance(intervention, MaskKey):
                masked[site.name].append(intervention.key)
                continue
            for quantity in quantities:
                _require_changeable(site, quantity)
                changes[site.name][quantity].append(intervention.change())
    with ExitStack() as changing:
        for name, site in touched.items():
            if isinstance(site.module, Attention) and site.module.decodes_with_all_keys:
                raise ValueError(f"an outer `intervene` changes {name} already: give all interventions to one")
            changing.enter_context(_changed(site, changes[name], masked[name]))
        yield


@contextmanager
def _changed(site: Site, changes: dict[str, list[Change]], masked: list[int]) -> Iterator[None]:
    def before(module: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        changed = list(inputs)
        for quantity in INPUTS.keys() & changes.keys():
            changed[INPUTS[quantity]] = _apply(site, quantity, changes, changed[INPUTS[quantity]])
        if masked:
            changed[VIEW] = _hide(masked, inputs[VIEW], changed[INPUTS["key"]])
        return tuple(changed)

    def after(module: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> Tensor:
        if "weights" in changes:
            output = _mixed_anew(site, changes, inputs)
        if "mixed" in changes:
            module.mixed_before = output  # read by `capture`
        for quantity in OUTPUTS & changes.keys():
            output = _apply(site, quantity, changes, output)
        return output

    with ExitStack() as stack:
        stack.enter_context(observing(site.module))
        stack.callback(site.module.register_forward_pre_hook(before).remove)
        # Before all other hooks, so that they see the changed output.
        stack.callback(site.module.register_forward_hook(after, prepend=True).remove)
        if isinstance(site.module, Attention):
            stack.enter_context(_decoding_with_all_keys(site.module))
        yield


def _mixed_anew(site: Site, changes: dict[str, list[Change]], inputs: tuple[Any, ...]) -> Tensor:
    mechanism = site.module
    assert isinstance(mechanism, Attention)
    q, k, v, view = inputs
    before = mechanism.weights(q, k, view)
    weights = _apply(site, "weights", changes, before)
    mechanism.weights_before, mechanism.edited = before, weights  # read by `capture`
    return weights.to(v.dtype) @ expand_heads(v, q.shape[1])


@contextmanager
def _decoding_with_all_keys(mechanism: Attention) -> Iterator[None]:
    mechanism.decodes_with_all_keys = True
    try:
        yield
    finally:
        mechanism.decodes_with_all_keys = False
        for name in ("edited", *BEFORE_CHANGE):
            mechanism.__dict__.pop(name, None)


def _apply(site: Site, quantity: str, changes: dict[str, list[Change]], x: Tensor) -> Tensor:
    for change in changes[quantity]:
        changed = change(x)
        if changed.shape != x.shape:
            raise ValueError(f"{site.name}.{quantity} is {list(x.shape)}; given {list(changed.shape)}: keep the shape")
        x = changed
    return x


def _hide(masked: Sequence[int], view: View, k: Tensor) -> View:
    at = view.positions(k, k)[1]
    hidden = torch.isin(at, torch.tensor(masked, device=k.device))
    keys = torch.ones(len(k), len(at), dtype=torch.bool, device=k.device) if view.keys is None else view.keys
    return replace(view, keys=keys & ~hidden)


def _require(what: str, number: int, count: int) -> None:
    if not 0 <= number < count:
        raise ValueError(f"there is no {what} {number}: choose 0 to {count - 1}")


def _require_changeable(site: Site, quantity: str) -> None:
    if quantity not in (*INPUTS, *OUTPUTS, "weights"):
        allowed = [one for one in site.quantities if one in (*INPUTS, *OUTPUTS, "weights")]
        instead = f"change {site.name}.{' or .'.join(allowed)}" if allowed else "it can only be captured"
        raise ValueError(f"{site.name}.{quantity} is computed outside of the forward pass: {instead}")
