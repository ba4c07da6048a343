"""Ablation: the effect of leaving out an attention head or a source token.

Shape legend: S source tokens, T target tokens, L layers, H heads, V vocabulary.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from regardant.inspection.interventions import ScaleHead, intervene
from regardant.inspection.patching import rows_at_once
from regardant.models.base import SequenceToSequenceModel
from regardant.models.heads import Loss

Pass = Callable[[], Loss]
"""Callable that runs the model over a batch, such as `partial(model, **batch.inputs, targets=batch.targets)`."""


def ablate_heads(model: nn.Module, passes: Sequence[Pass], attentions: Sequence[str], num_heads: int) -> Tensor:
    """Return the increase of the mean loss when each head is switched off: [L, H] in the unit of the loss.

    Costs one run of all passes per head, and one more. Raises ValueError for a name of no attention in the model.
    """
    with torch.no_grad():
        plain = mean_loss(passes)
        changes = torch.empty(len(attentions), num_heads)
        for layer, attention in enumerate(attentions):
            for head in range(num_heads):
                with intervene(model, ScaleHead(attention, head)):
                    changes[layer, head] = mean_loss(passes) - plain
    return changes


def mean_loss(passes: Sequence[Pass]) -> float:
    """Return the loss per target over all batches, in the unit of the loss (nats, or errors of forecasts)."""
    losses = [run() for run in passes]
    return sum(float(loss.plain) for loss in losses) / sum(int(loss.count) for loss in losses)


def leave_one_out(model: SequenceToSequenceModel, source: Tensor, target: Tensor) -> Tensor:
    """Return the change of the distribution of each target token when each source token is left out: [T, S].

    The change is the total variation distance, from 0 (no change) to 1. `source` [S] and `target` [T + 1], which
    starts with SOS, are one pair without padding. The shortened sources are read in slices: the distributions of all
    together [S, T, V] may not fit into memory.
    """
    size = len(source)
    others = ~torch.eye(size, dtype=torch.bool, device=source.device)
    shortened = source.expand(size, -1)[others].view(size, size - 1)
    with torch.no_grad():
        whole = model.scores(source[None], target[None, :-1]).float().softmax(-1)
        changes = []
        for some in shortened.split(rows_at_once(max(size, len(target)))):
            without = model.scores(some, target[:-1].expand(len(some), -1)).float().softmax(-1)
            changes.append((without - whole).abs().sum(-1) / 2)
    return torch.cat(changes).T.cpu()
