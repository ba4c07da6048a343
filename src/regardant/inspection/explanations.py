"""Three measures of the importance of source tokens for a target token: is attention an explanation?

    attention            weight that the query of a target token gives to each source token
    gradient x input     |x_s . dlog p(y_t) / dx_s|, where x_s is the vector of source token s that the first layer
                         reads
    leave one out        total variation distance between the distributions of the next token with the whole source and
                         without the token s

Jain and Wallace 2019, "Attention is not explanation", https://arxiv.org/abs/1902.10186, algorithm 1, with three
differences. Their gradient holds the attention weights constant; here it passes through them as well. Their x_s is the
word embedding alone; here it is scaled, and holds the position if positions are added. Their code leaves out the
positions 1 to n - 2 of n tokens; here all are left out in turn.

The agreement of two measures is Kendall's tau between their orders of the source tokens, for each target token.

Shape legend: S source tokens, T target tokens, M size of an embedding.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from regardant.inspection.ablation import leave_one_out
from regardant.inspection.patching import rows_at_once
from regardant.inspection.ranks import kendall
from regardant.models.base import SequenceToSequenceModel


@dataclass(frozen=True)
class Explanation:
    """Importance of each source token for each target token, [T, S], by the two measures that do not use attention."""

    gradient: Tensor
    """Gradient x input."""
    ablation: Tensor
    """Leave one out."""


def explain(model: SequenceToSequenceModel, embedding: nn.Module, source: Tensor, target: Tensor) -> Explanation:
    """Explain the target tokens of one pair without padding: `source` [S], `target` [T + 1], which starts with SOS.

    The model must be in evaluation mode. `embedding` is the module that returns the vectors of the source tokens.

    Raises ValueError for a source of one token, from which none can be left out.
    """
    if len(source) < 2:
        raise ValueError("a source of one token: give two or more, so that one can be left out")
    return Explanation(gradient_times_input(model, embedding, source, target), leave_one_out(model, source, target))


def gradient_times_input(
    model: SequenceToSequenceModel, embedding: nn.Module, source: Tensor, target: Tensor
) -> Tensor:
    """Return the absolute values of gradient x input of one pair, [T, S]."""
    read: list[Tensor] = []

    def listen(module: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> Tensor:
        read.append(output if output.requires_grad else output.requires_grad_())
        return read[-1]

    found = []
    written = target[1:]
    every = torch.arange(len(written), device=target.device)
    handle = embedding.register_forward_hook(listen)
    try:
        # cuDNN's cells have no gradient in evaluation mode.
        with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
            # A copy of the pair for each target token, so that one backward pass gives the gradients of a slice.
            for steps in every.split(rows_at_once(max(len(source), len(target)))):
                read.clear()
                logits = model.scores(source.expand(len(steps), -1), target[:-1].expand(len(steps), -1))
                own = logits[every[: len(steps)], steps].float().log_softmax(-1).gather(1, written[steps, None])
                (gradient,) = torch.autograd.grad(own.sum(), read[0])
                found.append((read[0] * gradient).sum(-1).abs().detach().cpu())
    finally:
        handle.remove()
    return torch.cat(found)


def agreement(one: Tensor, other: Tensor) -> list[float]:
    """Return Kendall's tau of each pair of rows of two measures [T, S]. Rows without distinct values are left out."""
    found = [kendall(*rows) for rows in zip(one, other, strict=True)]
    return [tau for tau in found if tau is not None]
