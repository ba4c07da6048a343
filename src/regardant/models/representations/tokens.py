"""Token ids to vectors with positions.

Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, sections 3.4 (scaled by sqrt(d_model)),
3.5 and 5.4 (dropout on the sum of embedding and position).

Shape legend: B sentences, T tokens, M d_model.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regardant.data.vocabulary import PAD
from regardant.layers.dropout import Dropout
from regardant.positions import Positions


class TokenEmbedding(nn.Module):
    """A learned vector a token, plus where it stands."""

    def __init__(self, vocab_size: int, d_model: int, *, positions: Positions, scale: bool, dropout: float) -> None:
        super().__init__()
        self.table = nn.Embedding(vocab_size, d_model - positions.concatenated)
        nn.init.normal_(self.table.weight, std=d_model**-0.5)
        self.positions = positions
        self.scale = math.sqrt(d_model) if scale else 1.0
        self.dropout = Dropout(dropout)

    def forward(self, tokens: Int[Tensor, "B T"], start: int = 0) -> Float[Tensor, "B T M"]:
        """The vectors of tokens that stand at `start`, `start` + 1, ..."""
        vectors, end = self.table(tokens) * self.scale, start + tokens.shape[1]
        if self.positions.acts_on == "input":
            longest = self.positions.longest
            if longest is not None and end > longest:
                raise ValueError(
                    f"these positions end at {longest} tokens and {end} were given: raise model.max_length and train "
                    "anew, or take positions that go on (sinusoidal, rotary, alibi)"
                )
            self.positions.reach(end)
            at = self.positions.embed(torch.arange(start, end, device=tokens.device))
            vectors = (
                torch.cat([vectors, at.expand(len(tokens), -1, -1)], -1)
                if self.positions.concatenated
                else vectors + at
            )
        return self.dropout(vectors)


def real_tokens(tokens: Int[Tensor, "B T"]) -> Tensor:
    """[B, T] bool: True where there is a token and not padding."""
    return tokens != PAD
