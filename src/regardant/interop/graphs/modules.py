"""Trained models as functions of plain tensors, which can be traced to a graph.

A decoder takes the keys and values of earlier steps as inputs and returns them with the new ones, so that a graph
keeps no state.

Shape legend: B sentences, N rows (a row is a beam of a sentence), S source length, T new tokens, P tokens before them,
L layers, G key heads, D size of a key, E size of a value, V vocabulary.
"""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from regardant.attention import Attention, View
from regardant.attention.scaled_dot_product import ScaledDotProduct
from regardant.data.tokenizers import Tokenizer
from regardant.data.vocabulary import PAD
from regardant.errors import RunError
from regardant.interop.settings import file_ids
from regardant.layers.cache import LayerCache
from regardant.layers.multi_head import ProjectedMemory, SelfAttention
from regardant.models import EncoderDecoder, Model
from regardant.models.decoder_only import DecoderOnly
from regardant.models.encoder_only import EncoderOnly
from regardant.models.heads import NextToken
from regardant.models.stacks import Decoder, DecoderState
from regardant.models.vectors import Vectors
from regardant.positions import Positions


class TokenizerIds(nn.Module):
    """Map from a tokenizer's ids to the model's, and from the model's scores back to the tokenizer's order.

    rows: the tokenizer's id for each id of the model, None if it has none. The id after the last of these is padding.
    """

    ours: Tensor

    def __init__(self, rows: Sequence[int | None]) -> None:
        super().__init__()
        named = {theirs: own for own, theirs in enumerate(rows) if theirs is not None}
        self.count = 1 + max(named)
        self.register_buffer("ours", torch.tensor([named.get(theirs, PAD) for theirs in range(self.count + 1)]))

    def read(self, tokens: Tensor) -> Tensor:
        """Return the model's ids for `tokens`, which are ids of the tokenizer."""
        return self.ours[tokens]

    def write(self, scores: Tensor) -> Tensor:
        """Return `scores` [..., V] in the order of the tokenizer's ids."""
        return scores.index_select(-1, self.ours[: self.count])


class SameIds(nn.Module):
    """Identity in place of `TokenizerIds`, for a tokenizer with the ids of the model."""

    def read(self, tokens: Tensor) -> Tensor:
        """Return the ids as they are."""
        return tokens

    def write(self, scores: Tensor) -> Tensor:
        """Return the scores as they are."""
        return scores


def ids_of(tokenizer: Tokenizer) -> nn.Module:
    """Return the module that maps ids of a tokenizer's file to the model's, and scores back."""
    rows = file_ids(tokenizer)
    return SameIds() if rows == list(range(len(rows))) else TokenizerIds(rows)


class WholeInput(nn.Module):
    """Model that reads its input in one pass: maps tokens [B, T] to the scores of its head."""

    def __init__(self, model: Model, ids: Any) -> None:
        super().__init__()
        self.model, self.ids = model, ids
        self.scores_words = isinstance(model.head, NextToken)

    def forward(self, tokens: Tensor) -> Tensor:
        scores = self.model.scores(self.ids.read(tokens))
        written: Tensor = self.ids.write(scores) if self.scores_words else scores
        return written


class TranslatorEncoder(nn.Module):
    """Encoder of a translator: maps tokens [B, S] to the keys [L, B, G, S, D] and values [L, B, G, S, E] of the
    cross-attention of each decoder layer, and to the mask of real tokens [B, S]."""

    def __init__(self, model: EncoderDecoder, ids: Any) -> None:
        super().__init__()
        self.model, self.ids = model, ids

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        memory = self.model.encode(self.ids.read(tokens))
        decoder = self.model.decoder
        assert isinstance(decoder, Decoder) and memory.real is not None
        projected = [
            layer.cross_attention.project(values)
            for layer, values in zip(decoder.layers, decoder._memories(memory), strict=True)
            if layer.cross_attention is not None
        ]
        return torch.stack([one.keys for one in projected]), torch.stack([one.values for one in projected]), memory.real


class TranslatorDecoder(nn.Module):
    """Decoder of a translator: maps new tokens [N, T], the keys [L, N, G, P, D] and values [L, N, G, P, E] of those
    before them, and the outputs of `TranslatorEncoder` for each row to scores [N, T, V] and the keys and values of all
    tokens."""

    def __init__(self, model: EncoderDecoder, ids: Any) -> None:
        super().__init__()
        self.model, self.ids = model, ids

    def forward(
        self,
        tokens: Tensor,
        keys: Tensor,
        values: Tensor,
        memory_keys: Tensor,
        memory_values: Tensor,
        real: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        memory = [ProjectedMemory(*pair) for pair in zip(memory_keys, memory_values, strict=True)]
        state = _state(self.model.decoder, keys, values, memory=memory, real=real)
        x = self.model.target(self.ids.read(tokens), start=keys.shape[3]).values
        scores = self.model.head.scores(Vectors(self.model.decoder.step(x, state)))
        return self.ids.write(scores), *_kept(state)


class Continuation(nn.Module):
    """Language model: maps new tokens [N, T], and keys and values as in `TranslatorDecoder`, to scores [N, T, V] and
    the keys and values of all tokens."""

    def __init__(self, model: DecoderOnly, ids: Any) -> None:
        super().__init__()
        self.model, self.ids = model, ids

    def forward(self, tokens: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        state = _state(self.model.decoder, keys, values)
        x = self.model.text(self.ids.read(tokens), start=keys.shape[3]).values
        scores = self.model.head.scores(Vectors(self.model.decoder.step(x, state)))
        return self.ids.write(scores), *_kept(state)


@dataclass
class GivenKeys(LayerCache):
    """Cache whose keys and values are inputs of a graph, and outputs with the newest ones appended."""

    mechanism: Attention
    keys: Tensor
    values: Tensor

    @property
    def length(self) -> int:
        """Number of tokens in the cache."""
        return self.keys.shape[2]

    def open(self, x: Tensor, view: View) -> tuple[Tensor, View]:
        """Return the newest tokens as rows of queries, and the view of the keys that they may attend to."""
        return x, view

    def attend(self, q: Tensor, k: Tensor, v: Tensor, view: View) -> Tensor:
        """Append the newest keys and values, and attend to all."""
        self.keys, self.values = torch.cat([self.keys, k], 2), torch.cat([self.values, v], 2)
        mixed: Tensor = self.mechanism(q, self.keys, self.values, view)
        return mixed


@contextmanager
def traceable(model: Model) -> Iterator[Model]:
    """Yield a float32 copy of a model on the CPU, whose attention has no control flow that depends on data.

    Raises:
        RunError: the model has parts that no graph can express; the message names them.
    """
    require_traceable(model)
    copied = copy.deepcopy(model).cpu().float().eval()
    for module in copied.modules():
        if isinstance(module, ScaledDotProduct):
            module.kernel = _attend
        if isinstance(module, Positions):
            module.reach(copied.config.max_length)
    with torch.no_grad():
        yield copied


def require_traceable(model: Model) -> None:
    """Raise RunError, with every reason, for a model that no graph can express."""
    reasons = []
    if not isinstance(model, EncoderDecoder | DecoderOnly | EncoderOnly):
        reasons.append(f"model.kind {model.config.kind}")
    for module in model.modules():
        if isinstance(module, Attention) and type(module) is not ScaledDotProduct:
            reasons.append(f"the attention {type(module).__name__}")
        if isinstance(module, SelfAttention) and module.positions.depends_on_query:
            reasons.append(f"the positions {type(module.positions).__name__}")
    stack = getattr(model, "decoder", None)
    if isinstance(stack, Decoder):
        reasons += [
            f"{type(layer.self_attention).__name__} in place of attention"
            for layer in stack.layers
            if not isinstance(layer.self_attention, SelfAttention)
        ]
        if any(layer.feed_forward.start() is not None for layer in stack.layers):
            reasons.append(f"model.feed_forward.kind {model.config.feed_forward.kind}")
    elif stack is not None:
        reasons.append(f"the decoder {type(stack).__name__}")
    if reasons:
        named = "; ".join(dict.fromkeys(reasons))
        raise RunError(f"a graph cannot express {named}: export a Transformer with scaled_dot_product attention")


def _state(decoder: Any, keys: Tensor, values: Tensor, memory: Any = (), real: Tensor | None = None) -> DecoderState:
    caches: list[Any] = [
        (GivenKeys(layer.self_attention.mechanism, *pair), None)
        for layer, *pair in zip(decoder.layers, keys, values, strict=True)
    ]
    state = DecoderState(beam_origin=None, caches=caches, memory=list(memory), length=keys.shape[3])
    if real is not None:
        state.memory_view = View(keys=real)  # type: ignore[assignment]  # its masks are made for one call
    return state


def _kept(state: DecoderState) -> tuple[Tensor, Tensor]:
    caches: list[Any] = [cache for cache, _ in state.caches]
    return torch.stack([one.keys for one in caches]), torch.stack([one.values for one in caches])


def _attend(q: Tensor, k: Tensor, v: Tensor, view: View, scale: float) -> Tensor:
    """Compute attention as every kernel does, without control flow that depends on data."""
    scores = (q @ k.mT) * scale
    bias = view.bias_between(*view.positions(q, k), scores.dtype)
    if bias is not None:
        scores = scores + bias
    if (mask := View.mask(view, q, k)) is not None:  # a PassView caches masks by length, which is dynamic here
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return torch.softmax(scores, -1) @ v
