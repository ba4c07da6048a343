"""The residual stream: how a sublayer reads from it and writes to it.

pre: x + dropout(sublayer(norm(x))), which trains stably and needs a norm after the last layer.
post: norm(x + dropout(sublayer(x))), the original (Vaswani et al. 2017, section 5.4).
Xiong et al. 2020, "On layer normalization in the Transformer architecture", https://arxiv.org/abs/2002.04745.
"""

from collections.abc import Callable
from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn

from regardant.layers.dropout import Dropout

NormPlace = Literal["pre", "post"]


class Residual(nn.Module):
    """One write to the stream. The sublayer is given at the call, since it differs in what else it takes."""

    def __init__(self, d_model: int, norm_place: NormPlace, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d_model)
        self.dropout = Dropout(dropout)
        self.norm_place = norm_place

    def forward(self, x: Float[Tensor, "*B M"], sublayer: Callable[[Tensor], Tensor]) -> Float[Tensor, "*B M"]:
        if self.norm_place == "pre":
            return x + self.dropout(sublayer(self.norm(x)))
        normed: Tensor = self.norm(x + self.dropout(sublayer(x)))
        return normed
