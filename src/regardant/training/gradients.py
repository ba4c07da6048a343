"""The gradients of an update, of batches that may be read in parts, and the study of those that are not finite."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regardant.layers.dropout import DropoutKey
from regardant.training.checkpoints import save_whole
from regardant.training.job import Batch, Loss
from regardant.training.processes import ALONE, Group

MOST_PARTS = 64
"""Parts into which a batch that does not fit into memory is divided, at most."""

MOST_SKIPPED = 5
"""Updates in a row that are left out, since their gradients are not finite, before training stops."""


def add_gradients(
    batches: Sequence[Batch],
    loss_of: Callable[[Any], Loss],
    backward: Callable[[Tensor], object],
    *,
    key: DropoutKey,
    device: torch.device,
    group: Group = ALONE,
    parts: int = 1,
) -> Tensor:
    """Add the gradients of the mean loss over all targets of some batches, of which this process reads its rows.

    Each batch is read in `parts` parts, one after the other, which take less memory and give the same gradients.
    Returns the loss without regularisation, summed over the targets that are read here.
    """
    targets = sum(batch.count for batch in batches)
    plain = torch.zeros((), device=device)
    for number, batch in enumerate(batches):
        for part in range(parts):
            rows = batch.part(group.rank + group.size * part, group.size * parts)
            if not rows.count:
                continue
            key.micro_batch = parts * number + part
            loss = loss_of(rows)
            backward(loss.total / targets)
            plain += loss.plain.detach()
    return plain


def save_for_study(path: Path, batches: Sequence[Batch], weights: Mapping[str, Tensor], **place: int) -> None:
    """Write the batches of an update and the weights before it to a file that `torch.load` reads with `weights_only`,
    with the place of the update in the training."""
    save_whole(path, {**place, "batches": [_plain(batch) for batch in batches], "model": dict(weights)})


def _plain(value: Any) -> Any:
    """Return tensors, numbers and texts in plain containers."""
    if isinstance(value, Tensor):
        return value.detach().cpu()
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value if value is None or isinstance(value, str | int | float) else torch.as_tensor(value)
