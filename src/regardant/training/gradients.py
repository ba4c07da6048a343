"""Gradients of an update, from batches that may be split into parts, and a file to study those that are not finite."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regardant.layers.dropout import DropoutKey
from regardant.training.checkpoints import save_whole
from regardant.training.job import Batch, Loss
from regardant.training.processes import ALONE, Group

MOST_PARTS = 64
"""Maximum number of parts that a batch is split into if it does not fit into memory."""

MOST_SKIPPED = 5
"""Number of updates skipped in a row at the end of a report, since their gradients are not finite, at which training
stops."""


def add_gradients(
    batches: Sequence[Batch],
    loss_of: Callable[[Any], Loss],
    backward: Callable[[Tensor], object],
    *,
    key: DropoutKey,
    device: torch.device,
    group: Group = ALONE,
    parts: int = 1,
    unsent: Callable[[], AbstractContextManager[object]] | None = None,
) -> Tensor:
    """Accumulate the gradients of the mean loss over all targets of `batches`, from the rows of this process.

    Each batch is read in `parts` parts, one after the other, which take less memory and give the same gradients.
    Returns the loss without regularisation, summed over the targets of these rows.

    `unsent` is given if a backward pass also averages gradients over the processes: the context of all passes but the
    last, which sends. Then every process makes every pass, even without a row of its own.
    """
    targets = sum(batch.count for batch in batches)
    plain = torch.zeros((), device=device)
    passes = [(number, part) for number in range(len(batches)) for part in range(parts)]
    for number, part in passes:
        rows = batches[number].part(group.rank + group.size * part, group.size * parts)
        counts = bool(rows.count)
        if not counts and unsent is None:
            continue
        key.micro_batch = parts * number + part
        with nullcontext() if unsent is None or (number, part) == passes[-1] else unsent():
            loss = loss_of(rows if counts else batches[number].part(0, group.size * parts))
            # With `unsent`, gradients are averaged over processes, so the loss is multiplied by their number.
            backward(loss.total / targets if unsent is None else loss.total * (counts * group.size / targets))
        if counts:
            plain += loss.plain.detach()
    return plain


def save_for_study(path: Path, batches: Sequence[Batch], weights: Mapping[str, Tensor], **place: int) -> None:
    """Write the batches of an update and the weights before it to a file that `torch.load` reads with `weights_only`,
    with the place of the update in the training."""
    save_whole(path, {**place, "batches": [_plain(batch) for batch in batches], "model": dict(weights)})


def _plain(value: Any) -> Any:
    """Return tensors, numbers and texts in plain containers. Other objects become their attributes, or a text."""
    if isinstance(value, Tensor):
        return value.detach().cpu()
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, np.ndarray | np.generic):
        return torch.as_tensor(value)
    return _plain(vars(value)) if hasattr(value, "__dict__") else repr(value)
