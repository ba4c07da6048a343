"""A score for every word of a vocabulary, at every element.

Shape legend: N tokens, M d_model, V vocabulary.
"""

import math
from functools import partial
from typing import Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from regardant.data.vocabulary import PAD
from regardant.layers.label_smoothed_cross_entropy import projected_cross_entropy
from regardant.layers.linear import linear
from regardant.models.heads.base import Head, HeadBuilder, HeadConfig, Loss
from regardant.models.vectors import Vectors


class NextTokenConfig(HeadConfig):
    """A word of the vocabulary at every element: the next one, or one that was masked."""

    kind: Literal["next_token"] = "next_token"

    label_smoothing: float = Field(0.0, ge=0, lt=1)
    """Share of the target distribution spread over the whole vocabulary."""

    z_loss: float = Field(0.0, ge=0, allow_inf_nan=False)
    """What log^2 Z of the softmax over the vocabulary costs a target, so that logits do not drift (PaLM: 0.0001)."""

    def build(self, d_model: int, num_outputs: int) -> "NextToken":
        return NextToken(d_model, num_outputs, self.label_smoothing, self.z_loss)


class NextToken(Head):
    """A score for every word of the vocabulary. Its matrix may be the embedding's, tied by reference."""

    ignored = PAD

    def __init__(self, d_model: int, vocab_size: int, label_smoothing: float = 0.0, z_loss: float = 0.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))
        nn.init.normal_(self.weight, std=d_model**-0.5)
        self.logits = nn.Identity()  # a module, so that it can be hooked
        self.label_smoothing, self.z_loss = label_smoothing, z_loss

    def scores(self, vectors: Vectors) -> Tensor:
        """Return logits [B, T, V]."""
        logits: Tensor = self.logits(linear(vectors.values, self.weight))
        return logits

    def loss(self, vectors: Vectors, targets: Tensor) -> Loss:
        """Return the cross-entropy of the targets [B, T] that are not PAD, without ever holding all logits."""
        values, device = vectors.values, vectors.values.device.type
        if torch.is_autocast_enabled(device):
            values = values.to(torch.get_autocast_dtype(device))
        values, targets = values.flatten(0, -2), targets.flatten()
        if device != "cpu":
            return self.loss_without_waiting(values, targets)
        places = (targets != PAD).nonzero().squeeze(1)  # picked by a mask, its gradient takes three times as long
        if len(places) < len(targets):
            values, targets = values.index_select(0, places), targets.index_select(0, places)
        total, plain = projected_cross_entropy(values, self.weight, targets, self.label_smoothing, self.z_loss)
        return Loss(total, plain, torch.tensor(len(places)))

    def loss_without_waiting(self, values: Float[Tensor, "N M"], targets: Int[Tensor, " N"]) -> Loss:
        """Return the same on an accelerator, which would have to be waited for to learn how many targets are real.

        Padding becomes a vector of zeros, for which all words are equally likely whatever the weights: what it adds
        is known beforehand, and subtracted.
        """
        real = targets != PAD
        blank, uncertainty = (~real).sum(), math.log(len(self.weight))
        values = values.masked_fill(~real[:, None], 0)
        total, plain = projected_cross_entropy(values, self.weight, targets, self.label_smoothing, self.z_loss)
        total = total - blank * (uncertainty + self.z_loss * uncertainty**2)
        return Loss(total, plain - blank * uncertainty, real.sum())

    def embedding(self) -> nn.Parameter:
        return self.weight


def next_token(vocab_size: int, label_smoothing: float = 0.0, z_loss: float = 0.0) -> HeadBuilder:
    """Return the builder of a head over a vocabulary of this size."""
    config = NextTokenConfig(label_smoothing=label_smoothing, z_loss=z_loss)
    return partial(config.build, num_outputs=vocab_size)
