"""Shards of a model that is divided among processes (`training.strategy: fsdp`), and whole tensors gathered from them.

A sharded tensor is a DTensor. Its module takes a second to import, so tensors are told apart by their methods here.
"""

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn


def local(tensor: Tensor) -> Tensor:
    """Return this process's shard of a sharded tensor, in the same memory. Any other tensor is returned as it is."""
    shard: Tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return shard


def whole(tensor: Tensor) -> Tensor:
    """Return a sharded tensor as a whole: all processes have to call this. Any other tensor is returned as it is."""
    gathered: Tensor = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return gathered


def whole_weights(model: nn.Module, averages: Sequence[Tensor] | None, *, keep: bool) -> dict[str, Tensor]:
    """Return the weights of a sharded model by name. All processes have to call it.

    `averages` replace parameters, in their order. Without `keep`, the process only takes part in gathering: the result
    is empty, and no more than one tensor is whole at a time.
    """
    parameters = list(model.parameters())
    newest = dict(zip(map(id, parameters), averages or parameters, strict=True))
    gathered: dict[int, Tensor] = {}
    found: dict[str, Tensor] = {}
    for name, own in model.state_dict(keep_vars=True).items():
        if id(own) not in gathered:  # tied names share one tensor
            tensor = whole(newest.get(id(own), own).detach())
            gathered[id(own)] = tensor if keep else torch.empty(0)
        if keep:
            found[name] = gathered[id(own)]
    return found


def without_weights(model: nn.Module) -> nn.Module:
    """Return a copy of a model whose parameters are on the meta device, where they take no memory."""
    known: dict[int, Any] = {
        id(parameter): nn.Parameter(torch.empty_like(parameter, device="meta"), requires_grad=False)
        for parameter in model.parameters()
    }
    return copy.deepcopy(model, known)


def with_weights(model: nn.Module, weights: dict[str, Tensor]) -> nn.Module:
    """Return a copy of a model from `without_weights` with these tensors as its weights, in evaluation mode."""
    filled = copy.deepcopy(model)
    filled.load_state_dict(weights, assign=True)
    return filled.requires_grad_(False).eval()
