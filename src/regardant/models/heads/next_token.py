"""A score for every word of a vocabulary, at every element.

With `transform` as in Devlin et al. 2019, "BERT", https://arxiv.org/abs/1810.04805, section 3.1 and the released code.

Shape legend: N tokens, M d_model, V vocabulary.
"""

import math
from typing import Annotated, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from regardant.attention.masks import product_dtype
from regardant.config import Config
from regardant.data.vocabulary import PAD
from regardant.layers.activations import Activation
from regardant.layers.label_smoothed_cross_entropy import projected_cross_entropy
from regardant.layers.linear import Linear, linear
from regardant.layers.norms import LayerNormConfig, NormConfig
from regardant.models.heads.base import Head, HeadBuilder, HeadConfig, Loss
from regardant.models.vectors import Vectors

ABSENT_SCORE = -1e4
"""Score of a word that is absent. Finite, so that label smoothing stays finite."""


class TransformConfig(Config):
    """A dense layer, an activation and a norm, before words are scored."""

    activation: Activation = "gelu"
    """Activation function after the dense layer."""

    normalisation: NormConfig = LayerNormConfig()
    """Norm after the activation."""


class WordScoresConfig(Config):
    """Scoring of the words of a vocabulary: by a matrix, and by the additional layers of an imported model."""

    bias: bool = False
    """True if a learned bias is added to the score of each word."""

    scale: float = Field(1.0, gt=0)
    """Factor on vectors before they are scored."""

    transform: TransformConfig | None = None
    """A dense layer, an activation and a norm before words are scored (BERT). Empty: there are none."""

    absent: tuple[Annotated[int, Field(ge=0)], ...] = ()
    """Ids without a word, such as special tokens that an imported model lacks: their probability is 0."""


class NextTokenConfig(WordScoresConfig, HeadConfig):
    """A word of the vocabulary at every element: the next one, or one that was masked."""

    kind: Literal["next_token"] = "next_token"

    label_smoothing: float = Field(0.0, ge=0, lt=1)
    """Share of the target distribution spread over the whole vocabulary."""

    z_loss: float = Field(0.0, ge=0, allow_inf_nan=False)
    """Weight of log^2 Z of the softmax over the vocabulary in the loss of a target (PaLM: 0.0001)."""

    def build(self, d_model: int, num_outputs: int) -> "NextToken":
        return NextToken(d_model, num_outputs, self.label_smoothing, self.z_loss, self)


class Transform(nn.Module):
    """A dense layer, an activation and a norm."""

    def __init__(self, config: TransformConfig, d_model: int) -> None:
        super().__init__()
        self.dense = Linear(d_model, d_model)
        self.norm = config.normalisation.build(d_model)
        self.activation: Activation = config.activation

    def forward(self, x: Float[Tensor, "*B M"]) -> Float[Tensor, "*B M"]:
        transformed: Tensor = self.norm(self.dense(x, self.activation))
        return transformed


class NextToken(Head):
    """Head that scores every word of the vocabulary. Its matrix may be tied to an embedding."""

    ignored = PAD

    def __init__(
        self,
        d_model: int,
        vocab_size: int,
        label_smoothing: float = 0.0,
        z_loss: float = 0.0,
        words: WordScoresConfig = WordScoresConfig(),  # noqa: B008  # frozen
    ) -> None:
        super().__init__()
        self.words = words
        self.transform = nn.Identity() if words.transform is None else Transform(words.transform, d_model)
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))
        nn.init.normal_(self.weight, std=d_model**-0.5)
        self.logits = nn.Identity()  # a module, so that it can be hooked
        self.label_smoothing, self.z_loss = label_smoothing, z_loss
        if words.bias:
            self.bias = nn.Parameter(torch.zeros(vocab_size))
        if words.absent:
            if max(words.absent) >= vocab_size:
                raise ValueError(f"head.absent has the id {max(words.absent)}, and there are {vocab_size} words")
            offsets = torch.zeros(vocab_size)
            offsets[list(words.absent)] = ABSENT_SCORE
            self.register_buffer("offsets", offsets, persistent=False)

    @property
    def added(self) -> Tensor | None:
        """Sum of the bias and the offsets of absent words [V], added to the scores. None: there are neither."""
        bias: Tensor | None = getattr(self, "bias", None)
        offsets: Tensor | None = getattr(self, "offsets", None)
        return offsets if bias is None else bias if offsets is None else bias + offsets

    def scores(self, vectors: Vectors) -> Tensor:
        """Return logits [B, T, V]."""
        values = self.read(vectors.values)
        bias = self.added  # a new tensor at each step, but `linear` caches layouts by the identity of a bias
        logits = linear(values, self.weight) if bias is None else linear(values, self.weight) + bias
        shown: Tensor = self.logits(logits)
        return shown

    def read(self, values: Float[Tensor, "*B M"]) -> Float[Tensor, "*B M"]:
        """Return the transformed and scaled vectors that the matrix multiplies."""
        read = self.transform(values).to(values.dtype)  # autocast on an accelerator computes a norm in float32
        return read if self.words.scale == 1 else read * self.words.scale

    def loss(self, vectors: Vectors, targets: Tensor) -> Loss:
        """Return the cross-entropy of the targets [B, T] that are not PAD, without materialising all logits."""
        values = vectors.values.to(product_dtype(vectors.values)).flatten(0, -2)
        targets = targets.flatten()
        if values.device.type != "cpu":
            return self.loss_without_waiting(self.read(values), targets)
        places = (targets != PAD).nonzero().squeeze(1)  # the gradient of a boolean mask takes three times as long
        if len(places) < len(targets):
            values, targets = values.index_select(0, places), targets.index_select(0, places)
        values, weight = self._with_bias(self.read(values))
        total, plain = projected_cross_entropy(values, weight, targets, self.label_smoothing, self.z_loss)
        return Loss(total, plain, torch.tensor(len(places)))

    def loss_without_waiting(self, values: Float[Tensor, "N M"], targets: Int[Tensor, " N"]) -> Loss:
        """Return the same loss on an accelerator, without a synchronisation to count the targets that are not PAD.

        Padding becomes a vector of zeros, for which all words are equally likely whatever the weights: its loss is
        known in advance, and subtracted.
        """
        real = targets != PAD
        blank, uncertainty = (~real).sum(), math.log(len(self.weight))
        values, weight = self._with_bias(values)
        values = values.masked_fill(~real[:, None], 0)
        total, plain = projected_cross_entropy(values, weight, targets, self.label_smoothing, self.z_loss)
        total = total - blank * (uncertainty + self.z_loss * uncertainty**2)
        return Loss(total, plain - blank * uncertainty, real.sum())

    def _with_bias(self, values: Float[Tensor, "N M"]) -> tuple[Tensor, Tensor]:
        """Return vectors and matrix, with the bias as one more column of both, which copies the matrix."""
        if (bias := self.added) is None:
            return values, self.weight
        return F.pad(values, (0, 1), value=1.0), torch.cat([self.weight, bias[:, None]], 1)

    def embedding(self) -> nn.Parameter:
        return self.weight


def next_token(
    vocab_size: int,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    words: WordScoresConfig = WordScoresConfig(),  # noqa: B008  # frozen
) -> HeadBuilder:
    """Return the builder of a head over a vocabulary of `vocab_size` words."""
    return lambda d_model: NextToken(d_model, vocab_size, label_smoothing, z_loss, words)
