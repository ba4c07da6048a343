"""A plain training loop, as users write one, for the models of other libraries, on the batches that all share.

Float32 weights, bfloat16 by autocast, fused AdamW as in Regardant's trainer, clipped gradients. The driver names the
attention of each pass: `sdpa`, torch's fused kernel, or `matmul`, products of matrices.
"""

import itertools
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from devices import DEVICE
from passes import Passes
from serve import Driver
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

PAD = 0

Attend = Callable[[nn.Module, str], AbstractContextManager[Any]]
"""Function of a model and an attention. Returns the context in which the model's steps attend so."""


def by_torch(model: nn.Module, attention: str) -> AbstractContextManager[Any]:
    """Attend by a kernel of torch, for a library that has no code of its own."""
    return nullcontext() if attention == "sdpa" else sdpa_kernel(SDPBackend.MATH)


def train(
    library: str,
    build: Callable[[dict[str, Any]], nn.Module],
    loss: Callable[[nn.Module, Tensor, Tensor], Tensor],
    attend: Attend = by_torch,
) -> None:
    """Train the model that `build` returns for a shape, as the driver asks.

    `loss(model, source, target)` takes ids padded with PAD, source [B, S] with EOS, target [B, T] from SOS to EOS.
    """
    shape, pairs = read(Path(sys.argv[1]))
    torch.manual_seed(1)
    batches = [(pair, int((pair[1][:, 1:] != PAD).sum())) for pair in pairs]
    train_on(library, build(shape), batches, loss, attend)


def train_on(
    library: str,
    model: nn.Module,
    batches: Sequence[tuple[tuple[Tensor, Tensor], int]],
    loss: Callable[[nn.Module, Tensor, Tensor], Tensor],
    attend: Attend = by_torch,
) -> None:
    """Train a model on batches, each with its number of targets, as the driver asks."""
    driver = Driver()
    model = model.to(DEVICE).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)
    driver.answer(
        versions={library: version(library), "torch": str(torch.__version__)},
        threads=torch.get_num_threads(),
        parameters=sum(parameter.numel() for parameter in model.parameters()),
    )
    passes = Passes(driver)
    passes.begin()
    there = [(count, source.to(DEVICE), target.to(DEVICE)) for (source, target), count in batches]
    for count, source, target in itertools.cycle(there):
        passes.trained_on(count)
        optimizer.zero_grad()
        attention = attend(model, passes.request.get("attention", "sdpa"))
        autocast = torch.autocast(DEVICE.type, torch.bfloat16, enabled=passes.request["precision"] == "bfloat16")
        with attention, autocast:
            value = loss(model, source, target)
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def read(path: Path) -> tuple[dict[str, Any], list[tuple[Tensor, Tensor]]]:
    """Return the shape of the model, and the batches as pairs of source and target."""
    content = json.loads(path.read_text(encoding="utf-8"))
    return content["shape"], [tuple(map(torch.tensor, batch)) for batch in content["batches"]]


def smoothed(logits: Tensor, target: Tensor) -> Tensor:
    """Return the cross-entropy per real target with label smoothing 0.1, of logits [B, T - 1, V] for target[:, 1:]."""
    return F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD, label_smoothing=0.1)
