"""Matching of items of two inputs: every item of a batch is compared with every item of the other input.

Radford et al. 2021, "Learning transferable visual models from natural language supervision" (CLIP),
https://arxiv.org/abs/2103.00020, figure 3 and section 2.5: cosine similarities divided by a learned temperature, and
the cross-entropy of the right partner in both directions (InfoNCE: van den Oord et al. 2018,
https://arxiv.org/abs/1807.03748). Rows that share an item are partners of each other: they share the target
probability, as in the supervised contrastive loss (Khosla et al. 2020, https://arxiv.org/abs/2004.11362, equation 2).

Shape legend: B batch, M size of the vectors that are compared.
"""

import math
from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from regardant.attention.softmax import exact
from regardant.models.heads.base import Head, HeadConfig, Loss
from regardant.models.vectors import Vectors

LARGEST_SCALE = 100.0
"""Upper limit of 1 / temperature, without which training is unstable (section 2.5)."""


class MatchConfig(HeadConfig):
    """Contrastive matching of each item with its partner in the batch, for a dual encoder."""

    kind: Literal["match"] = "match"

    temperature: float = Field(0.07, ge=1 / LARGEST_SCALE)
    """Initial value of the learned temperature that similarities are divided by."""

    def build(self, d_model: int, num_outputs: int) -> "Match":
        """Return the head; it has as many scores as the batch has items, whatever `num_outputs` is."""
        return Match(self)


class Match(Head):
    """Head that scores every pair of a batch. Its loss contrasts all pairs, so that a batch cannot be divided."""

    compares_inputs = True
    divisible = False

    def __init__(self, config: MatchConfig) -> None:
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(-math.log(config.temperature)))
        self.logits = nn.Identity()  # a module, so that it can be hooked

    @property
    def scale(self) -> Tensor:
        """1 / temperature, at most LARGEST_SCALE."""
        limited = self.log_scale.clamp(max=math.log(LARGEST_SCALE))
        # The gradient passes the clamp (straight-through): otherwise a temperature at the limit could not rise again.
        return (self.log_scale + (limited - self.log_scale).detach()).exp()

    def scores(self, vectors: Vectors) -> Tensor:
        """Return the scores [B, B] of pairs of the first input (row) and the second (column), from vectors [B, 2, M].

        A score is the cosine similarity divided by the temperature.
        """
        with exact(vectors.values):  # a score of 100 in bfloat16 is off by a half
            first, second = F.normalize(vectors.values.float(), dim=-1).unbind(1)
            logits: Tensor = self.logits(self.scale * first @ second.T)
        return logits

    def loss(self, vectors: Vectors, targets: Tensor) -> Loss:
        """Return the cross-entropy of the partners, the mean of both directions.

        Args:
            vectors: [B, 2, M]
            targets: [B, 2] int64, a number for each item. The partners of row i are row i and the rows that have the
                number of its first or its second item. They share its target probability in equal parts.
        """
        scores = self.scores(vectors)
        partners = (targets[:, None] == targets).any(-1).to(scores.dtype)
        shares = partners / partners.sum(-1, keepdim=True)
        total = sum(F.cross_entropy(each, shares, reduction="sum") / 2 for each in (scores, scores.T))
        assert isinstance(total, Tensor)
        return Loss(total, total.detach(), torch.tensor(len(scores)))
