"""What was seen at the places of a model: plain numbers, by name."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from regardant.inspection.calls import Call


class Records(Mapping[str, list[Tensor]]):
    """By the name of a place a tensor for each time it was passed, float32 on the CPU.

    What is not passed but computed (weights, scores, gates, probabilities) is computed when it is read, by the model as
    it is then: read before you train on.
    """

    def __init__(self) -> None:
        self._calls: dict[str, list[Call]] = {}

    def add(self, site: str, quantities: Sequence[str], call: Call) -> None:
        """One call of a site, from which these will be read."""
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
        """All calls as one: their tokens, in every quantity the dimension before the last, one after the other."""
        return torch.cat(self[place], -2)

    def gradients(self, of: Tensor) -> dict[str, list[Tensor]]:
        """The gradient of a number with respect to every place, by name, shaped as what was seen there.

        For example of the log-probability of a chosen token. Gates and probabilities have none, and neither have the
        scores of a mechanism that takes no bias. A tensor that passes several places has its whole gradient at each.

        Raises ValueError where nothing was captured with gradients.
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
        """For JSON: nested lists."""
        return {place: [one.tolist() for one in self[place]] for place in self}


def _quantity(place: str) -> str:
    return place.rpartition(".")[2]


def _plain(x: Tensor) -> Tensor:
    return x.detach().float().cpu()
