"""What a model promises to the trainer, the decoder and the inspector.

Shape legend: B sentences, W beams of a sentence, S source length, T target length or tokens of a text, N texts,
V vocabulary, M d_model.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import torch
from pydantic import Field
from torch import Tensor, nn

from regardant.attention import Attention
from regardant.config import Variants
from regardant.layers.dropout import DropoutKey


@dataclass(frozen=True)
class Vectors:
    """What travels between representation, sequence model and head."""

    values: Tensor
    """[B, S, M]"""
    real: Tensor
    """[B, S] bool: True where there is an item, False where there is padding."""
    earlier: list[Tensor] = field(default_factory=list)
    """What the layers before the last one say, where a decoder layer reads the encoder layer of its own height."""

    def of_layers(self, num_layers: int) -> list[Tensor]:
        """What each of the layers above reads."""
        return [*self.earlier, self.values] if self.earlier else [self.values] * num_layers


class DecodingState(Protocol):
    """Everything a model remembers between two decoding steps, for B sentences of W beams; before the first, of one."""

    def reorder(self, beams: Tensor) -> None:
        """From now on beam w of sentence b continues what was beam `beams[b, w]`. [B, W] int64."""

    def keep(self, sentences: Tensor) -> None:
        """Go on with these sentences alone, in this order. [B'] int64 indices into the present B."""


class Widening(DecodingState, Protocol):
    """A state that knows how many beams a sentence has."""

    @property
    def beam_size(self) -> int:
        """Of each sentence, so far."""


def widen(state: Widening, tokens: Tensor) -> None:
    """Before `tokens` [B, W] of more beams than one: all of them continue the one that was."""
    if state.beam_size == 1 < tokens.shape[1]:
        state.reorder(torch.zeros_like(tokens))


class SequenceToSequence(Protocol):
    """A model that reads a source and writes a target, one token at a time."""

    def encode(self, source: Tensor) -> Any:
        """Token ids [B, S], padded with PAD, to the memory that `start` takes."""

    def start(self, memory: Any, beam_size: int, max_length: int) -> DecodingState:
        """The state before the first target token, for at most `beam_size` beams and `max_length` steps."""

    def step(self, tokens: Tensor, state: Any) -> Tensor:
        """Feed the newest token of every beam, [B, W] int64 (SOS first) to a state of `start`; get scores [B, W, V].
        At first one beam stands for all of them, W = 1; more are as many that continue it.

        Scores of the next token, unnormalised (logits), which a search writes over. The state is changed in place.
        """

    def scores(self, source: Tensor, target: Tensor) -> Tensor:
        """Teacher forcing: source [B, S], target [B, T] from SOS on; next-token logits [B, T, V]."""


class ModelConfig(Variants):
    """What the configuration of a model that translates is. A class derived from it, with a `kind`, adds a model."""

    default_kind: ClassVar[str] = "encoder_decoder"

    max_length: int = Field(256, gt=1)
    """The longest source or target, in tokens."""

    @property
    def joint(self) -> bool:
        """Whether source and target need one vocabulary."""
        return False

    def build(self, source_vocab_size: int, target_vocab_size: int) -> "Model":
        """The model with fresh weights. Raises ValueError where the vocabularies do not fit."""
        raise NotImplementedError


class CausalModelConfig(Variants):
    """What the configuration of a model that goes on with a text is; as ModelConfig."""

    default_kind: ClassVar[str] = "decoder_only"

    max_length: int = Field(256, gt=1)
    """The context: how many tokens it sees at once, in training and after."""

    def build(self, vocab_size: int) -> "CausalModel":
        """The model with fresh weights. Raises ValueError where its parts do not fit."""
        raise NotImplementedError


class Trainable(nn.Module):
    """Base of the package's models: the forward of each is the Loss of a batch."""

    dropout_key: DropoutKey
    """What decides its dropout, for the trainer to move on."""


class Model(Trainable):
    """Base of models that translate: a SequenceToSequence whose forward is the Loss of a batch of pairs."""

    config: ModelConfig

    def redraw(self) -> None:
        """Draw anew what is random in its mechanisms: Performer's features, LSH's hashes. torch's seed decides what.

        Training does not do so by itself: what was drawn first is trained on and kept with the weights.
        """
        for module in self.modules():
            if isinstance(module, Attention):
                module.redraw()

    def check_lengths(self) -> None:
        """Refuse a mechanism that ends before the model does.

        Raises:
            ValueError: there is one.
        """
        for module in self.modules():
            if isinstance(module, Attention) and module.longest is not None and module.longest < self.config.max_length:
                raise ValueError(
                    f"{type(module).__name__} ends at {module.longest} keys and model.max_length is "
                    f"{self.config.max_length}: raise its max_length or lower the model's"
                )

    def encode(self, source: Tensor) -> Any:
        """See SequenceToSequence, here and below."""
        raise NotImplementedError

    def start(self, memory: Any, beam_size: int, max_length: int) -> Any:
        """The state before the first target token."""
        raise NotImplementedError

    def step(self, tokens: Tensor, state: Any) -> Tensor:
        """Scores of the next token; the state is changed in place."""
        raise NotImplementedError

    def scores(self, source: Tensor, target: Tensor) -> Tensor:
        """Scores of the token after each of `target`."""
        raise NotImplementedError


class CausalModel(Trainable):
    """Base of models that go on with a text. Texts of a batch are equally long: nothing is padded."""

    config: CausalModelConfig

    def forward(self, tokens: Tensor, label_smoothing: float = 0.0, z_loss: float = 0.0) -> Any:
        """The Loss of tokens [N, 1 + T]: of each after those before it."""
        raise NotImplementedError

    def scores(self, tokens: Tensor) -> Tensor:
        """Logits [N, T, V] of the token after each of `tokens` [N, T]."""
        raise NotImplementedError

    def start(self, beam_size: int, max_length: int) -> Any:
        """The state before the first of at most `max_length` tokens: a DecodingState."""
        raise NotImplementedError

    def step(self, tokens: Tensor, state: Any) -> Tensor:
        """Feed the newest tokens [N, T] of every row; logits [N, V] of the next one. The state is changed in place."""
        raise NotImplementedError
