"""What a model's answers hang on, asked in three ways: is attention an explanation?

    attention            what the row that writes a target token gives each source token
    gradient x input     |x_s . dlog p(y_t) / dx_s|, x_s being the embedded source token
    leave one out        the total variation distance between the distributions of the next token with the source as it
                         is and without the token s

Jain and Wallace 2019, "Attention is not explanation", https://arxiv.org/abs/1902.10186, algorithm 1; two ways agree as
far as they put the source tokens in one order, by Kendall's tau, target token by target token.

Shape legend: S source tokens, T target tokens, M size of an embedding, V vocabulary.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from regardant.inspection.ranks import kendall
from regardant.models.base import SequenceToSequenceModel


@dataclass(frozen=True)
class Explanation:
    """What each source token counts for in each target token, [T, S], by two ways that do not ask attention."""

    gradient: Tensor
    ablation: Tensor


def explain(model: SequenceToSequenceModel, embedding: nn.Module, source: Tensor, target: Tensor) -> Explanation:
    """Of one pair without padding: source [S], target [T + 1] from SOS on. The model is to be in evaluation mode.

    embedding: the module that says the source tokens' vectors.

    Raises ValueError for a source of one token, from which none can be left out.
    """
    if len(source) < 2:
        raise ValueError("a source of one token: give two or more, so that one can be left out")
    return Explanation(gradient_times_input(model, embedding, source, target), leave_one_out(model, source, target))


def gradient_times_input(
    model: SequenceToSequenceModel, embedding: nn.Module, source: Tensor, target: Tensor
) -> Tensor:
    """[T, S], not below zero."""
    read: list[Tensor] = []

    def listen(module: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> Tensor:
        read.append(output if output.requires_grad else output.requires_grad_())
        return read[-1]

    written = target[1:]
    each = torch.arange(len(written), device=target.device)
    handle = embedding.register_forward_hook(listen)
    try:
        # cuDNN's cells have no gradient in evaluation mode.
        with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
            # A copy of the pair for each target token, so that all gradients come of one backward pass.
            logits = model.scores(source.expand(len(written), -1), target[:-1].expand(len(written), -1))
            said = logits[each, each].float().log_softmax(-1)[each, written]
            (gradient,) = torch.autograd.grad(said.sum(), read[0])
    finally:
        handle.remove()
    return (read[0] * gradient).sum(-1).abs().detach().cpu()


def leave_one_out(model: SequenceToSequenceModel, source: Tensor, target: Tensor) -> Tensor:
    """[T, S], from 0 (it makes no difference) to 1."""
    size = len(source)
    others = ~torch.eye(size, dtype=torch.bool, device=source.device)
    shortened = source.expand(size, -1)[others].view(size, size - 1)
    with torch.no_grad():
        whole = model.scores(source[None], target[None, :-1]).float().softmax(-1)
        without = model.scores(shortened, target[:-1].expand(size, -1)).float().softmax(-1)  # [S, T, V]
    return ((without - whole).abs().sum(-1) / 2).T.cpu()


def agreement(one: Tensor, other: Tensor) -> list[float]:
    """Kendall's tau of every two rows of [T, S], but of those that order nothing."""
    found = [kendall(*rows) for rows in zip(one, other, strict=True)]
    return [tau for tau in found if tau is not None]
