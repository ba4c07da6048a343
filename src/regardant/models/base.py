"""Interface of models for the trainer, the decoder, the inspector and every other tool.

A model consists of representations, a sequence model and a head. It names its inputs, and declares for each kind of
attention which inputs give the queries and the keys, so that tools need not guess.

Shape legend: B batch, W beams, S source length, T target length or elements of the one input, V vocabulary.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

from pydantic import Field
from torch import Tensor, nn

from regardant.attention import Attention
from regardant.config import Variants
from regardant.layers.dropout import DropoutKey
from regardant.models.heads import Head, HeadBuilder, Loss
from regardant.models.representations import Representation, RepresentationBuilder
from regardant.models.vectors import Vectors


@dataclass(frozen=True)
class AttentionKind:
    """One kind of attention of a model: the inputs its queries and keys come from."""

    queries: str
    """Name of the input that gives the queries."""
    keys: str
    """Name of the input that gives the keys."""
    causal: bool = False
    """True if no query attends to a later key."""


class Model(nn.Module):
    """Base of all models. Subclasses implement `vectors`; `forward` gives a batch's Loss, `scores` its scores."""

    inputs: ClassVar[tuple[str, ...]]
    """Names of the inputs, which are arguments of `vectors`, `scores` and `forward`."""

    reads_order: bool = True
    """True if the order of elements may change an answer."""

    config: Any
    head: Head
    dropout_key: DropoutKey
    """Key of the dropout masks, advanced by the trainer."""

    former_names: ClassVar[Mapping[str, str]] = {}
    """Prefixes of parameter names in weights of earlier versions, mapped to the current prefixes."""

    @property
    def attention_kinds(self) -> Mapping[str, AttentionKind]:
        """Kinds of attention by name, such as `encoder.self_attention`. Empty for a model without attention."""
        return {}

    def representation(self, name: str) -> Representation:
        """Return the representation of an input."""
        module = self.get_submodule(name)
        assert isinstance(module, Representation)
        return module

    def max_length(self, name: str) -> int:
        """Return the maximum number of elements of an input."""
        length: int = self.config.max_length
        return length

    def vectors(self, *args: Any, **inputs: Any) -> Vectors:
        """Return the vectors [B, T, M] that the head reads."""
        raise NotImplementedError

    def forward(self, *args: Any, targets: Tensor, **inputs: Any) -> Loss:
        """Return the loss of targets given the inputs."""
        return self.head.loss(self.vectors(*args, **inputs), targets)

    def scores(self, *args: Any, **inputs: Any) -> Tensor:
        """Return the head's scores: logits, or forecast values."""
        return self.head.scores(self.vectors(*args, **inputs))

    def tie(self, name: str, *, instead: str) -> None:
        """Tie the matrix of the head to the embedding of an input.

        Raises:
            ValueError: the two cannot be tied; the message proposes `tie_embeddings=instead`.
        """
        try:
            self.representation(name).tie(self.head.embedding())
        except ValueError as error:
            raise ValueError(f"{error}: set tie_embeddings={instead}") from None

    def redraw(self) -> None:
        """Redraw the random parts of attention mechanisms (Performer's features, LSH's hashes) by torch's generator.

        Training never does so: it uses the first draw throughout and saves it with the weights.
        """
        for module in self.modules():
            if isinstance(module, Attention):
                module.redraw()

    def check_lengths(self, field: str = "max_length") -> None:
        """Raise ValueError if an attention mechanism is limited to fewer keys than a field of the model."""
        most = getattr(self.config, field)
        for module in self.modules():
            if isinstance(module, Attention) and module.longest is not None and module.longest < most:
                raise ValueError(
                    f"{type(module).__name__} ends at {module.longest} keys and model.{field} is {most}: raise its "
                    "max_length or lower the model's"
                )


class DecodingState(Protocol):
    """State of a model between two decoding steps, for B sentences of W beams, or of one beam before the first step."""

    def reorder(self, beams: Tensor) -> None:
        """Let beam w of sentence b continue beam `beams[b, w]`. [B, W] int64."""

    def keep(self, sentences: Tensor) -> None:
        """Keep only these sentences, in this order. [B'] int64 indices into the current B.

        The state of a CausalModel also takes a text several times, so that samples continue one prompt: B' > B.
        """


@runtime_checkable
class BeamState(DecodingState, Protocol):
    """Decoding state with a known number of beams."""

    @property
    def beam_size(self) -> int:
        """Current number of beams of each sentence."""


@runtime_checkable
class JoinableState(DecodingState, Protocol):
    """Decoding state that the sentences of other states can be appended to."""

    @property
    def joins(self) -> bool:
        """True if `join` works: all parts of the state can be joined."""

    def join(self, *others: Any) -> None:
        """Append the sentences of other states of the same model, after as many steps.

        All tensors are copied, which frees the memory of dropped sentences.
        """


class SequenceToSequenceModel(Model):
    """Base of models that read a source and write a target, one token at a time."""

    inputs = ("source", "target")

    def encode(self, source: Any) -> Any:
        """Return the memory of a source that `start` takes."""
        raise NotImplementedError

    def start(self, memory: Any, beam_size: int, max_length: int) -> Any:
        """Return the state before the first target token, for at most `beam_size` beams and `max_length` steps."""
        raise NotImplementedError

    def step(self, tokens: Tensor, state: Any) -> Tensor:
        """Feed the newest token of every beam, [B, W] int64 (SOS first), to a state; return the next logits [B, W, V].

        In the first step one beam stands for all (W = 1), and the others continue it. The caller may overwrite the
        logits. The state is changed in place.
        """
        raise NotImplementedError


class CausalModel(Model):
    """Base of models that continue a text. Texts of a batch are equally long: nothing is padded.

    If the model carries a state, `vectors` and `forward` take the initial one as `state`, and the Loss of `forward` has
    the state after the last token.
    """

    inputs = ("text",)

    @property
    def carries_state(self) -> bool:
        """True if a state can be carried from one window of a text to the next."""
        carries: bool = self.config.carries_state
        return carries

    def first_state(self, rows: int) -> tuple[Tensor, ...]:
        """Return the initial state of `rows` texts, [layers, rows, size] each. Only for models that carry a state."""
        raise NotImplementedError

    def forward(self, *args: Any, targets: Tensor, **inputs: Any) -> Loss:
        vectors = self.vectors(*args, **inputs)
        loss = self.head.loss(vectors, targets)
        return loss if vectors.state is None else loss._replace(state=tuple(part.detach() for part in vectors.state))

    def start(self, beam_size: int, max_length: int) -> Any:
        """Return the state before the first of at most `max_length` tokens: a DecodingState, which repeats texts."""
        raise NotImplementedError

    def step(self, tokens: Tensor, state: Any) -> Tensor:
        """Feed the newest tokens [B, T] of every text; return logits [B, V] of the next. The state changes in place."""
        raise NotImplementedError


class SequenceToSequenceConfig(Variants):
    """Configuration of a model that writes a target for a source. A subclass with a `kind` adds a model."""

    default_kind: ClassVar[str] = "encoder_decoder"

    max_length: int = Field(256, gt=1)
    """Maximum number of elements of a source, and of a target."""

    @property
    def joint(self) -> bool:
        """True if source and target need a joint vocabulary."""
        return False

    def build(
        self, source: RepresentationBuilder, target: RepresentationBuilder, head: HeadBuilder
    ) -> SequenceToSequenceModel:
        """Return the model with fresh weights. Raises ValueError where its parts do not fit."""
        raise NotImplementedError


class CausalConfig(Variants):
    """Configuration of a model that continues a text. A subclass with a `kind` adds a model."""

    default_kind: ClassVar[str] = "decoder_only"

    carries_state: ClassVar[bool] = False
    """True if the model's state can be carried from one window of a text to the next."""

    max_length: int = Field(256, gt=1)
    """Context length in tokens, in training and generation."""

    def build(self, text: RepresentationBuilder, head: HeadBuilder) -> CausalModel:
        """Return the model with fresh weights. Raises ValueError where its parts do not fit."""
        raise NotImplementedError


class EncoderConfig(Variants):
    """Configuration of a model that reads one input at once. A subclass with a `kind` adds a model."""

    default_kind: ClassVar[str] = "encoder_only"

    max_length: int = Field(256, gt=1)
    """Maximum number of elements of an input."""

    def num_vectors(self, elements: int) -> int:
        """Return the number of vectors that the head reads for an input of `elements`, without a class token."""
        return elements

    def build(self, representation: RepresentationBuilder, head: HeadBuilder) -> Model:
        """Return the model with fresh weights. Its input is named `input`, or its inputs like the parts of an item.

        Raises:
            ValueError: its parts do not fit.
        """
        raise NotImplementedError


class MatchingConfig(Variants):
    """Configuration of a model that compares two inputs. A subclass with a `kind` adds a model."""

    default_kind: ClassVar[str] = "dual_encoder"

    def build(self, first: RepresentationBuilder, second: RepresentationBuilder, head: HeadBuilder) -> Model:
        """Return the model with fresh weights; its inputs are named `first` and `second`.

        Raises:
            ValueError: its parts do not fit.
        """
        raise NotImplementedError
