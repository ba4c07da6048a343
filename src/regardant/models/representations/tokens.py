"""Token ids to vectors.

Shape legend: B batch, T tokens, M d_model.
"""

from functools import partial

from jaxtyping import Int
from torch import Tensor, nn

from regardant.data.vocabulary import PAD
from regardant.models.representations.base import InputShape, Representation, RepresentationBuilder
from regardant.models.vectors import Vectors


class TokenEmbedding(Representation):
    """A learned vector for each token of a vocabulary."""

    unit = "token"

    def __init__(self, shape: InputShape, vocab_size: int) -> None:
        super().__init__(shape)
        self.table = nn.Embedding(vocab_size, shape.element_size)
        nn.init.normal_(self.table.weight, std=shape.d_model**-0.5)

    def embed(self, inputs: Int[Tensor, "B T"]) -> Vectors:
        """Return the vectors of token ids."""
        return Vectors(self.table(inputs), inputs != PAD)

    def tie(self, weight: nn.Parameter) -> None:
        if self.table.weight.shape != weight.shape:
            raise ValueError(
                f"tie_embeddings needs one vocabulary, but the input has {self.table.num_embeddings} words of "
                f"{self.table.embedding_dim} numbers and the output {len(weight)} of {weight.shape[1]}"
            )
        self.table.weight = weight


def tokens(vocab_size: int) -> RepresentationBuilder:
    """Return the builder of an embedding of `vocab_size` tokens, padded with PAD."""
    return partial(TokenEmbedding, vocab_size=vocab_size)
