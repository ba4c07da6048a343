"""Look at attention while a model runs, without changing what runs.

Weights are computed beside the fast path, from the queries and keys that a named place saw. A place may fire many
times: its records append. Self-attention fires in whole passes, not in decoding steps, since a mechanism may then
keep no keys; look at a translation by one teacher-forced pass over it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from regardant.layers.places import AttentionPlace


@contextmanager
def capture_attention(model: nn.Module, kind: str = "") -> Iterator[dict[str, list[Tensor]]]:
    """Record the weights [B, H, Q, K], float32 on the CPU, of every attention layer whose name holds `kind`.

    The names are the layers' own, as `decoder.layers.0.cross_attention`.
    """
    records: dict[str, list[Tensor]] = {}

    def listen(name: str, place: AttentionPlace) -> Any:
        def record(module: nn.Module, seen: tuple[Any, ...], answer: None) -> None:
            q, k, view = seen
            with torch.no_grad():
                records.setdefault(name, []).append(place.mechanism.weights(q, k, view).float().cpu())

        return place.register_forward_hook(record)

    places = {name.removesuffix(".place"): m for name, m in model.named_modules() if isinstance(m, AttentionPlace)}
    hooks = [listen(name, place) for name, place in places.items() if kind in name]
    try:
        yield records
    finally:
        for hook in hooks:
            hook.remove()
