"""How much a model leans on each head: what the loss loses without it, and what its gradient says of that.

    by ablation    the mean loss with the head switched off, less the one with it
    by gradient    the mean over tokens of |dL/dxi_h|, where xi_h = 1 multiplies what the head mixes; |.| of each
                   sentence's sum, so that sentences do not cancel                 Michel et al. 2019, eq. 2

https://arxiv.org/abs/1905.10650. Both are in nats a token, so that one can be set against the other.

Shape legend: B sentences, L layers, H heads, Q queries, E size of a value.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from regardant.inspection.capture import capture
from regardant.inspection.interventions import ScaleHead, intervene
from regardant.inspection.ranks import spearman
from regardant.models.heads import Loss

Pass = Callable[[], Loss]
"""Runs the model over a batch, as `partial(model, **batch.inputs, targets=batch.targets)` does."""


@dataclass(frozen=True)
class HeadImportance:
    """Of the heads of one kind of attention."""

    ablation: Tensor
    """[L, H] nats a token: below zero where the model is better off without the head."""
    gradient: Tensor
    """[L, H] nats a token."""

    @property
    def rank_correlation(self) -> float | None:
        """Spearman's rho of the two; None where there are too few heads to have an order."""
        return spearman(self.ablation, self.gradient)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "ablation": self.ablation.tolist(),
            "gradient": self.gradient.tolist(),
            "rank_correlation": self.rank_correlation,
        }


def head_importance(model: nn.Module, passes: Sequence[Pass], attentions: Sequence[str]) -> HeadImportance:
    """Of all heads of these attentions, layer by layer. Costs a pass for each head, and a backward one.

    The model is to be in evaluation mode. Raises ValueError for a name that is no attention of the model.
    """
    gradient = by_gradient(model, passes, attentions)
    with torch.no_grad():
        plain = mean_loss(passes)
        ablation = torch.empty_like(gradient)
        for layer, attention in enumerate(attentions):
            for head in range(gradient.shape[1]):
                with intervene(model, ScaleHead(attention, head)):
                    ablation[layer, head] = mean_loss(passes) - plain
    return HeadImportance(ablation, gradient)


def mean_loss(passes: Sequence[Pass]) -> float:
    """Nats a token."""
    losses = [run() for run in passes]
    return sum(float(loss.plain) for loss in losses) / sum(int(loss.count) for loss in losses)


def by_gradient(model: nn.Module, passes: Sequence[Pass], attentions: Sequence[str]) -> Tensor:
    """[L, H] nats a token."""
    places = [f"{attention}.mixed" for attention in attentions]
    total, tokens = torch.zeros(()), 0
    for run in passes:
        # cuDNN's cells have no gradient in evaluation mode.
        with (
            torch.enable_grad(),
            torch.backends.cudnn.flags(enabled=False),
            capture(model, places, gradients=True) as r,
        ):
            loss = run()
            gradients = r.gradients(loss.total)
        # The factor's gradient is the inner product of what is mixed with its own gradient.
        of_sentences = torch.stack(
            [
                sum(((x * g).sum((2, 3)) for x, g in zip(r[p], gradients[p], strict=True)), torch.zeros(()))
                for p in places
            ]
        )  # [L, B, H]
        total, tokens = total + of_sentences.abs().sum(1), tokens + int(loss.count)
    return total / tokens
