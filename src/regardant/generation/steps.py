"""What each step of a search does, with one beam or several.

Shape legend: B sentences being written.
"""

import torch
from torch import Tensor


def normalised(logits: Tensor) -> Tensor:
    """Log-probabilities in float32, written over logits that are in float32: nothing as large is allocated."""
    logits = logits.float().contiguous()  # beams may be one vector, told several times
    return torch.log_softmax(logits, dim=-1, out=logits)


def without(done: Tensor) -> Tensor:
    """The sentences of [B] that go on: the last ones stand where those that are done have stood, so that few move."""
    count = len(done) - int(done.sum())
    going = torch.arange(count, device=done.device)
    going[done[:count]] = (~done[count:]).nonzero().squeeze(1) + count
    return going
