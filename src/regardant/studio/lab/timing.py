"""Seconds of each kind of layer on this machine, by length: points beside the predicted curves of the lab."""

import time
from collections.abc import Callable
from threading import Lock
from typing import Any

import torch
from torch import Tensor, nn

from regardant.attention import AttentionConfig, ScaledDotProductConfig
from regardant.attention.linear import LinearAttentionConfig
from regardant.attention.linformer import LinformerConfig
from regardant.attention.window import WindowConfig

NUM_HEADS, HEAD_SIZE = 8, 64
D_MODEL = NUM_HEADS * HEAD_SIZE
LENGTHS = (128, 256, 512, 1024, 2048, 4096)
WINDOW, RANK, KERNEL = 64, 64, 5
"""Settings of the mechanisms; the predicted curves of the page assume the same."""

PATIENCE = 0.25
"""Seconds of one call after which longer inputs are left out."""
REPEATS = 3

MECHANISMS: dict[str, AttentionConfig] = {
    "full": ScaledDotProductConfig(),
    "window": WindowConfig(window=WINDOW),
    "linear": LinearAttentionConfig(),
    "lowrank": LinformerConfig(rank=RANK, max_length=LENGTHS[-1]),
}
"""Mechanisms by the page's names of kinds of layers."""

ONE_AT_A_TIME = Lock()
"""Lock of a measurement: two at once would slow each other down."""


def points() -> list[dict[str, Any]]:
    """Return kind, tokens and seconds of a forward pass: batch 1, d_model 512, the mixing alone, best of three."""
    with ONE_AT_A_TIME, torch.inference_mode():
        return [{"kind": kind, "n": n, "seconds": seconds} for kind in KINDS for n, seconds in _by_length(KINDS[kind])]


def _by_length(build: Callable[[], Callable[[int], object]]) -> list[tuple[int, float]]:
    run = build()
    found: list[tuple[int, float]] = []
    run(LENGTHS[0])  # to warm up
    for n in LENGTHS:
        seconds = min(_seconds(run, n) for _ in range(REPEATS))
        found.append((n, seconds))
        if seconds > PATIENCE:
            break
    return found


def _seconds(run: Callable[[int], object], n: int) -> float:
    start = time.perf_counter()
    run(n)
    return time.perf_counter() - start


def _attention(config: AttentionConfig) -> Callable[[], Callable[[int], object]]:
    def build() -> Callable[[int], Tensor]:
        mechanism = config.build(num_heads=NUM_HEADS, head_size=HEAD_SIZE)
        q = torch.randn(1, NUM_HEADS, LENGTHS[-1], HEAD_SIZE)
        return lambda n: mechanism(q[:, :, :n], q[:, :, :n], q[:, :, :n])

    return build


def _layer(layer: Callable[[], nn.Module], *, last: bool) -> Callable[[], Callable[[int], object]]:
    """Return a builder of calls of a layer. `last`: tokens are the last dimension."""

    def build() -> Callable[[int], object]:
        built = layer()
        x = torch.randn(1, D_MODEL, LENGTHS[-1]) if last else torch.randn(1, LENGTHS[-1], D_MODEL)
        return lambda n: built(x[..., :n] if last else x[:, :n])

    return build


KINDS: dict[str, Callable[[], Callable[[int], object]]] = {
    **{name: _attention(config) for name, config in MECHANISMS.items()},
    "recurrent": _layer(lambda: nn.RNN(D_MODEL, D_MODEL, batch_first=True), last=False),
    "convolution": _layer(lambda: nn.Conv1d(D_MODEL, D_MODEL, KERNEL, padding=KERNEL // 2), last=True),
}
"""Builders by kind of layer; each returns a call that takes a length."""
