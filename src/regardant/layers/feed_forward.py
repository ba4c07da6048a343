"""The position-wise feed-forward network: max(0, x W1 + b1) W2 + b2, with dropout inside.

Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, eq. 2.
"""

from jaxtyping import Float
from torch import Tensor, nn

from regardant.layers.dropout import Dropout


class FeedForward(nn.Module):
    """Each position by itself: widened to d_ff, rectified, narrowed again."""

    def __init__(self, d_model: int, d_ff: int, dropout: float) -> None:
        super().__init__()
        self.widen = nn.Linear(d_model, d_ff)
        self.dropout = Dropout(dropout)
        self.narrow = nn.Linear(d_ff, d_model)

    def forward(self, x: Float[Tensor, "*B M"]) -> Float[Tensor, "*B M"]:
        return self.narrow(self.dropout(self.widen(x).relu()))
