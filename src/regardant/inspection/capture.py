"""Record tensors at named places of a model while it runs, without changing its computation.

Hooks copy the tensors that pass the named places. Other quantities (weights, scores, gates, probabilities) are computed
from the copies, outside the fast path, when they are read: see `places`.

Shape legend: B batch, T vectors of an input.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from regardant.inspection.places import AttentionCall, Call, Keep, Site, choose
from regardant.layers.observed import observing
from regardant.models.base import Model

CLASS_TOKEN = "<class>"
"""Label of a class token."""


class Records(Mapping[str, list[Tensor]]):
    """Recorded tensors by place name, one per call, as float32 on the CPU.

    Weights, scores, gates and probabilities are computed when they are read, with the model's parameters at that time:
    read them before you continue training.
    """

    def __init__(self) -> None:
        self._calls: dict[str, list[Call]] = {}

    def add(self, site: str, quantities: Sequence[str], call: Call) -> None:
        """Add a call of a module, from which these quantities can be read."""
        for quantity in quantities:
            self._calls.setdefault(f"{site}.{quantity}", []).append(call)

    def __getitem__(self, place: str) -> list[Tensor]:
        with torch.no_grad():
            return [_plain(call.read(_quantity(place))) for call in self._calls[place]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._calls)

    def __len__(self) -> int:
        return len(self._calls)

    def whole(self, place: str) -> Tensor:
        """Return all calls as one tensor, concatenated along the elements (dimension -2)."""
        return torch.cat(self[place], -2)

    def mask(self, attention: str) -> Tensor:
        """Return the pairs that may attend [B, H, Q, K], of all calls of an attention whose weights are recorded.

        True = may attend, by the view and by the mechanism's own mask.
        """
        calls = self._calls[f"{attention}.weights"]
        with torch.no_grad():
            return torch.cat([call.mask().cpu() for call in calls if isinstance(call, AttentionCall)], -2)

    def gradients(self, of: Tensor) -> dict[str, list[Tensor]]:
        """Return the gradients of the scalar `of` with respect to every place, by name, with the shapes of the records.

        The scalar may be the log-probability of a token. Gates, probabilities and the scores of a mechanism that takes
        no bias have no gradient and are left out. A tensor that passes several places has its full gradient at each.
        The gradient of a recurrent cell's state is the direct effect of the cell's output at that step, without the
        effect through later states and the final one.

        Raises ValueError if nothing was captured with gradients.
        """
        calls = list({id(call): call for calls in self._calls.values() for call in calls}.values())
        live = {id(x): x for call in calls for x in call.tensors.values() if x.requires_grad}
        if not live:
            raise ValueError("nothing here has a gradient: capture with gradients=True, outside of no_grad")
        found = torch.autograd.grad(of, list(live.values()), retain_graph=True, allow_unused=True)
        by_tensor = dict(zip(live, found, strict=True))

        def gradient(call: Call, place: str) -> Tensor | None:
            known = {name: by_tensor.get(id(x)) for name, x in call.tensors.items()}
            zeros = {name: torch.zeros_like(x) for name, x in call.tensors.items() if known[name] is None}
            return call.gradient(_quantity(place), {**known, **zeros})  # type: ignore[dict-item]

        by_place = {place: [gradient(call, place) for call in calls] for place, calls in self._calls.items()}
        return {
            place: [_plain(one) for one in several if one is not None]
            for place, several in by_place.items()
            if several[0] is not None
        }

    def as_dict(self) -> dict[str, Any]:
        """Return nested lists for JSON."""
        return {place: [one.tolist() for one in self[place]] for place in self}


@contextmanager
def capture(model: nn.Module, places: str | Sequence[str] = "*", *, gradients: bool = False) -> Iterator[Records]:
    """Record the places whose names match a pattern, such as `"*.weights"` or `["encoder.layers.0.*", "head.*"]`.

    gradients: keep the tensors themselves instead of copies, with autograd's graph, for `Records.gradients`.

    Raises ValueError for a pattern that no place matches.
    """
    records, keep = Records(), _itself if gradients else _copy
    with ExitStack() as listening:
        for site, quantities in choose(model, places):
            kept = site.kept(quantities, gradients=gradients)
            hook = _listener(records, site, quantities, kept, keep)
            listening.callback(site.module.register_forward_hook(hook).remove)
            listening.enter_context(observing(site.module))
        yield records


def real_elements(model: Model, name: str, value: Any) -> Tensor:
    """Return a mask of the real vectors of an input [B, T], on the CPU: False at padding."""
    with torch.inference_mode():
        vectors = model.representation(name)(value)
    if vectors.real is None:
        return torch.ones(vectors.values.shape[:2], dtype=torch.bool)
    return vectors.real.cpu()


def class_tokens(model: Model, name: str) -> list[str]:
    """Return the labels of the vectors that stand before the elements of an input: one class token, or none."""
    return [CLASS_TOKEN] if hasattr(model.representation(name), "class_token") else []


def _listener(
    records: Records, site: Site, quantities: tuple[str, ...], kept: frozenset[str], keep: Keep
) -> Callable[[nn.Module, tuple[Any, ...], Any], None]:
    def listen(module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        records.add(site.name, quantities, site.call(inputs, output, kept, keep))

    return listen


def _copy(x: Tensor) -> Tensor:
    # Decoding overwrites its buffers, and a view would keep the whole tensor alive.
    return x.detach().clone()


def _itself(x: Tensor) -> Tensor:
    return x


def _quantity(place: str) -> str:
    return place.rpartition(".")[2]


def _plain(x: Tensor) -> Tensor:
    return x.detach().float().cpu()
