"""Importance of each head for the loss of a model.

    by ablation    the mean loss without the head, minus the mean loss with it
    by gradient    the mean over targets of |dL/dxi_h|, where xi_h = 1 multiplies the output of the head; the absolute
                   value is taken of the sum over each sequence, so that sequences do not cancel out
                                                                                   Michel et al. 2019, eq. 2

https://arxiv.org/abs/1905.10650. Both are of the loss without label smoothing and z-loss, per target and in its unit
(nats, or errors of forecasts), so that they can be compared.

Shape legend: B batch, L layers, H heads.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from regardant.inspection.ablation import Pass, ablate_heads
from regardant.inspection.capture import capture
from regardant.inspection.ranks import spearman
from regardant.models.heads import Head

ADDED_TO_LOSS = ("label_smoothing", "z_loss")
"""Attributes of heads that are in `Loss.total` and not in `Loss.plain`."""


@dataclass(frozen=True)
class HeadImportance:
    """Importance of all heads of one kind of attention."""

    ablation: Tensor
    """[L, H] in the unit of the loss (nats, or errors of forecasts) per target: below zero if the model does better
    without the head."""
    gradient: Tensor
    """[L, H] in the unit of the loss per target."""

    @property
    def rank_correlation(self) -> float | None:
        """Spearman's rho between the two measures. None if either has fewer than two distinct values."""
        return spearman(self.ablation, self.gradient)

    def as_dict(self) -> dict[str, Any]:
        """Return the content for JSON."""
        return {
            "ablation": self.ablation.tolist(),
            "gradient": self.gradient.tolist(),
            "rank_correlation": self.rank_correlation,
        }


def head_importance(model: nn.Module, passes: Sequence[Pass], attentions: Sequence[str]) -> HeadImportance:
    """Measure all heads of these attentions, one per layer.

    Costs one run of all passes per head, one more, and one with a backward pass.

    The model must be in evaluation mode. Raises ValueError for a name that is no attention of the model.
    """
    gradient = by_gradient(model, passes, attentions)
    return HeadImportance(ablate_heads(model, passes, attentions, gradient.shape[1]), gradient)


def by_gradient(model: nn.Module, passes: Sequence[Pass], attentions: Sequence[str]) -> Tensor:
    """Return the importance of heads by gradient, [L, H] in the unit of the loss per target."""
    places = [f"{attention}.mixed" for attention in attentions]
    total, tokens = torch.zeros(()), 0
    for run in passes:
        # cuDNN's cells have no gradient in evaluation mode.
        with (
            torch.enable_grad(),
            torch.backends.cudnn.flags(enabled=False),
            _with_plain_loss(model),
            capture(model, places, gradients=True) as r,
        ):
            loss = run()
            gradients = r.gradients(loss.total)
        # The gradient of the factor is the inner product of the head's output with its gradient.
        of_sentences = torch.stack(
            [
                sum(((x * g).sum((2, 3)) for x, g in zip(r[p], gradients[p], strict=True)), torch.zeros(()))
                for p in places
            ]
        )  # [L, B, H]
        total, tokens = total + of_sentences.abs().sum(1), tokens + int(loss.count)
    return total / tokens


@contextmanager
def _with_plain_loss(model: nn.Module) -> Iterator[None]:
    """Set label smoothing and z-loss of the heads to 0, so that `Loss.total` is `Loss.plain` with a gradient."""
    heads = [module for module in model.modules() if isinstance(module, Head)]
    kept = [(head, name, getattr(head, name)) for head in heads for name in ADDED_TO_LOSS if hasattr(head, name)]
    try:
        for head, name, _ in kept:
            setattr(head, name, 0.0)
        yield
    finally:
        for head, name, value in kept:
            setattr(head, name, value)
