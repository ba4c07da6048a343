"""Error of every efficient attention against exact attention, on random queries and keys and on trained ones."""

import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import regardant
from regardant.attention import Attention, ScaledDotProductConfig, View
from regardant.data.batching import pad
from regardant.data.parallel import Splits
from regardant.data.vocabulary import EOS
from regardant.tasks.translation.evaluate.evaluation import test_sets

from .cost import MECHANISMS, NO_ESTIMATE, draw

LENGTH = 2048
"""Tokens that the errors are measured on."""


def errors_on_random() -> dict[str, float]:
    """Return the errors by mechanism on random q, k and v of unit variance."""
    return errors(*(x.detach() for x in draw(LENGTH)[:3]))


def errors_on_trained(folder: Path) -> dict[str, float]:
    """Return mean errors over the layers of a run's encoder, on its concatenated test sentences and random values."""
    found = [errors(q, k, torch.randn(q.shape)) for q, k in _queries_and_keys(folder)]
    return {name: sum(one[name] for one in found) / len(found) for name in found[0]}


def errors(q: Tensor, k: Tensor, v: Tensor) -> dict[str, float]:
    """Return |mixed - exact| / |exact| of every mechanism that approximates exact attention, without a mask."""
    found = {}
    with torch.no_grad():
        for name, config in MECHANISMS.items():
            if name in NO_ESTIMATE:
                continue
            torch.manual_seed(0)
            attention = config.build(num_heads=q.shape[1], head_size=q.shape[3])
            asked, view = q, View()
            if attention.shares_query_and_key:  # exact attention then masks each token's own key, as the mechanism does
                asked, view = k, View(pairs=~torch.eye(k.shape[2], dtype=torch.bool)[None, None])
            wanted = ScaledDotProductConfig().build(num_heads=q.shape[1], head_size=q.shape[3])(asked, k, v, view)
            found[name] = float((attention(asked, k, v) - wanted).norm() / wanted.norm())
    return found


def _queries_and_keys(folder: Path) -> list[tuple[Tensor, Tensor]]:
    """Return the queries and keys [1, H, n, D] of each layer of a run's encoder."""
    run = regardant.load(folder)
    seen: list[tuple[Tensor, Tensor]] = []

    def look(mechanism: Any, given: tuple[Any, ...], mixed: Tensor) -> None:
        q, k, _, view = given
        if k.shape[1] == q.shape[1]:
            q, k = (x.transpose(1, 2)[view.keys].transpose(0, 1)[None, :, :LENGTH] for x in (q, k))
            seen.append((q, k))

    model = run.translator.model
    hooks = [m.register_forward_hook(look) for m in model.modules() if isinstance(m, Attention)]
    with torch.no_grad():
        model.encode(pad(_sentences(run)))
    for hook in hooks:
        hook.remove()
    if not seen:
        sys.exit(f"{folder} has no self-attention in its encoder with as many key heads as heads: leave out --run")
    return seen


def _sentences(run: regardant.Run) -> list[list[int]]:
    """Return sources of the run's own test set, with LENGTH tokens or more in total if it has as many."""
    text, translator = run.folder / "data" / "text", run.translator
    chosen: list[list[int]] = []
    for ids in translator.tokenizers.source.encode_batch(test_sets(text, Splits.load(text))[0].sources):
        if sum(map(len, chosen)) < LENGTH and len(ids) < translator.max_length:
            chosen.append([*ids, EOS])
    return chosen
