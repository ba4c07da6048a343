"""Vectors to answers.

Shape legend: N tokens, M d_model, V vocabulary.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regardant.data.vocabulary import PAD
from regardant.layers.cross_entropy import projected_cross_entropy
from regardant.layers.linear import linear


class Loss(NamedTuple):
    """Sums over tokens, so that a mean over several batches, or ranks, can be taken right."""

    total: Float[Tensor, ""]
    """What is minimised, summed, in nats. Can be differentiated."""
    plain: Float[Tensor, ""]
    """The same without smoothing and z-loss: exp(plain / tokens) is the perplexity."""
    tokens: Int[Tensor, ""]
    """How many targets were summed."""


class NextToken(nn.Module):
    """A score for every word of the vocabulary. Its matrix may be the embedding's, tied by reference."""

    def __init__(self, d_model: int, vocab_size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))
        nn.init.normal_(self.weight, std=d_model**-0.5)
        self.logits = nn.Identity()  # a module, so that one may listen to it

    def scores(self, vectors: Float[Tensor, "*B M"]) -> Float[Tensor, "*B V"]:
        """Logits."""
        logits: Tensor = self.logits(linear(vectors, self.weight))
        return logits

    def loss(
        self, vectors: Float[Tensor, "*B M"], targets: Int[Tensor, "*B"], label_smoothing: float, z_loss: float = 0.0
    ) -> Loss:
        """Cross-entropy of the targets that are not PAD, without ever holding all logits."""
        device = vectors.device.type
        if torch.is_autocast_enabled(device):
            vectors = vectors.to(torch.get_autocast_dtype(device))
        vectors, targets = vectors.flatten(0, -2), targets.flatten()
        if device != "cpu":
            return self.loss_without_waiting(vectors, targets, label_smoothing, z_loss)
        places = (targets != PAD).nonzero().squeeze(1)  # picked by a mask, its gradient takes three times as long
        if len(places) < len(targets):
            vectors, targets = vectors.index_select(0, places), targets.index_select(0, places)
        total, plain = projected_cross_entropy(vectors, self.weight, targets, label_smoothing, z_loss)
        return Loss(total, plain, torch.tensor(len(places)))

    def loss_without_waiting(
        self, vectors: Float[Tensor, "N M"], targets: Int[Tensor, " N"], label_smoothing: float, z_loss: float
    ) -> Loss:
        """The same on an accelerator, which would have to be waited for to learn how many targets are real.

        Padding becomes a vector of zeros, of which all words are equally likely whatever the weights: what it adds is
        known beforehand, and taken off.
        """
        real = targets != PAD
        blank, uncertainty = (~real).sum(), math.log(len(self.weight))
        vectors = vectors.masked_fill(~real[:, None], 0)
        total, plain = projected_cross_entropy(vectors, self.weight, targets, label_smoothing, z_loss)
        total = total - blank * (uncertainty + z_loss * uncertainty**2)
        return Loss(total, plain - blank * uncertainty, real.sum())
