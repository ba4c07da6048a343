"""Vectors to answers.

Shape legend: N tokens, M d_model, V vocabulary.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regardant.layers.cross_entropy import projected_cross_entropy
from regardant.layers.linear import linear


class Loss(NamedTuple):
    """Sums over tokens, so that a mean over several batches, or ranks, can be taken right."""

    total: Float[Tensor, ""]
    """What is minimised, summed, in nats. Can be differentiated."""
    plain: Float[Tensor, ""]
    """The same without smoothing and z-loss: exp(plain / tokens) is the perplexity."""
    tokens: int
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
        self, vectors: Float[Tensor, "N M"], targets: Int[Tensor, " N"], label_smoothing: float, z_loss: float = 0.0
    ) -> Loss:
        """Cross-entropy of the targets, without ever holding all N x V logits."""
        device = vectors.device.type
        if torch.is_autocast_enabled(device):
            vectors = vectors.to(torch.get_autocast_dtype(device))
        total, plain = projected_cross_entropy(vectors, self.weight, targets, label_smoothing, z_loss)
        return Loss(total, plain, len(targets))
