"""AdamW with weight decay on the matrices alone.

Loshchilov and Hutter 2019, "Decoupled Weight Decay Regularization", https://arxiv.org/abs/1711.05101, alg. 2.
"""

from typing import Annotated

import torch
from pydantic import Field
from torch import nn

from regardant.config import Config

_Share = Annotated[float, Field(ge=0, lt=1)]


class OptimizerConfig(Config):
    """Adam with decoupled weight decay. The defaults are those of Vaswani et al. 2017, section 5.3."""

    betas: tuple[_Share, _Share] = (0.9, 0.98)
    """How much of the running mean of gradients, and of their squares, an update keeps."""

    eps: float = Field(1e-9, gt=0)
    """Added to the root of the mean square, against division by zero. Small enough for the gradients of a
    loss per token, and safe in float32, in which the optimizer works under mixed precision too."""

    weight_decay: float = Field(0.0, ge=0)
    """Shrinks matrices by this times the learning rate at each update; embeddings, biases and norms never
    shrink. 0 is plain Adam, as in the paper; 0.01 to 0.1 is usual for large models."""


def build_optimizer(model: nn.Module, config: OptimizerConfig) -> torch.optim.AdamW:
    """The optimizer of what `model` learns: group 0 decays, group 1 does not.

    Parameters keep the order of `model.parameters()`, a tied one coming once, so that a state saved from one
    build loads into another. The learning rate starts at 0: it is the schedule's to set, before each update.
    """
    embeddings = {module.weight for module in model.modules() if isinstance(module, nn.Embedding)}
    decayed: list[nn.Parameter] = []
    kept: list[nn.Parameter] = []
    for parameter in model.parameters():
        if parameter.requires_grad:
            shrinks = parameter.ndim >= 2 and parameter not in embeddings
            (decayed if shrinks else kept).append(parameter)
    return torch.optim.AdamW(
        [{"params": decayed, "weight_decay": config.weight_decay}, {"params": kept, "weight_decay": 0.0}],
        lr=0.0,
        betas=config.betas,
        eps=config.eps,
        fused=True,
    )
