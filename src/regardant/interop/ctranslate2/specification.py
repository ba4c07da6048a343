"""An encoder-decoder Transformer as a CTranslate2 specification, its weights copied part by part (`names`).

Tables of added positions, the scale of scores and the epsilon of norms are written into the specification. CTranslate2
computes rotary positions from their base, in each self-attention, as our model does. Settings that it cannot compute
are refused by name.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from ctranslate2.specs import TransformerDecoderSpec, TransformerEncoderSpec, TransformerSpec
from ctranslate2.specs.common_spec import LayerNormSpec
from ctranslate2.specs.model_spec import index_spec
from numpy.typing import NDArray
from torch import Tensor, nn

from regardant.data.tokenizers import Tokenizers
from regardant.data.vocabulary import EOS, SOS, UNK
from regardant.errors import RunError
from regardant.interop.ctranslate2.names import ACTIVATIONS, DECODER_LAYER, ENCODER_LAYER, GATED
from regardant.layers.feed_forward import GatedFeedForwardConfig, LinearFeedForwardConfig
from regardant.layers.multi_head import SelfAttention
from regardant.models import EncoderDecoder, EncoderDecoderConfig, SequenceToSequenceConfig, SequenceToSequenceModel
from regardant.models.heads import NextToken
from regardant.models.representations import Representation, TokenEmbedding
from regardant.models.stacks import Encoder
from regardant.positions.rotary import RotaryConfig

Numbers = NDArray[np.float32]

EXPRESSIBLE: dict[str, tuple[str | bool, ...]] = {
    "kind": ("encoder_decoder",),
    "encoder.self_attention.kind": ("scaled_dot_product",),
    "decoder.self_attention.kind": ("scaled_dot_product",),
    "decoder.cross_attention.kind": ("scaled_dot_product",),
    "projections": ("separate", "query_key", "key_value", "all"),
    "feed_forward.kind": ("linear", "gated"),
    "feed_forward.activation": ("relu", "gelu", "gelu_tanh", "silu", "sigmoid"),
    "feed_forward.bias": (True,),
    "attention_bias": (True,),
    "attention_output": (True,),
    "embedding_norm": (False,),
    "normalisation.kind": ("layer_norm", "rms_norm"),
    "residual": ("add",),
    "memory": ("final",),
    "positions.kind": ("sinusoidal", "learned", "two_dimensional", "rotary", "none"),
    "positions.combine": ("add",),
}
"""Values of a model's configuration that CTranslate2 can compute, by field. Fields not listed may have any value."""

PADDED_TO = 16
"""Multiple to which CTranslate2 pads lengths on a GPU: positions past the longest text need a row too."""


def specify(model: SequenceToSequenceModel, tokenizers: Tokenizers) -> TransformerSpec:
    """Return the specification of a model with its vocabularies. Raises RunError if CTranslate2 cannot compute it."""
    require_expressible(model.config)
    assert isinstance(model.head, NextToken)
    if model.head.words.transform is not None:
        raise RunError("CTranslate2 cannot compute head.transform: use --engine torch")
    assert isinstance(model, EncoderDecoder) and isinstance(model.encoder, Encoder)
    config = model.config
    assert isinstance(config, EncoderDecoderConfig)
    network = config.feed_forward
    assert isinstance(network, LinearFeedForwardConfig | GatedFeedForwardConfig)
    shape = {
        "num_heads": config.num_heads,
        "num_heads_kv": config.key_heads,
        "head_dim": config.heads.key_size,
        "pre_norm": config.norm == "pre",
        "rms_norm": config.normalisation.kind == "rms_norm",
        "activation": ACTIVATIONS[network.activation],
        "ffn_glu": config.feed_forward.kind == "gated",
    }
    if isinstance(config.positions, RotaryConfig):
        shape |= {"rotary_dim": config.heads.key_size, "rotary_base": config.positions.base, "rotary_interleave": True}
    spec = TransformerSpec(
        TransformerEncoderSpec(config.encoder.num_layers, **shape),
        TransformerDecoderSpec(config.decoder.num_layers, **shape),
    )
    gate = GATED if config.feed_forward.kind == "gated" else {}
    _fill_stack(spec.encoder, model.encoder, ENCODER_LAYER | gate)
    _fill_stack(spec.decoder, model.decoder, DECODER_LAYER | gate)
    _fill_input(spec.encoder, spec.encoder.embeddings[0], model.source, config)
    _fill_input(spec.decoder, spec.decoder.embeddings, model.target, config)
    spec.decoder.projection.weight = _numbers(model.head.weight * model.head.words.scale)
    if (bias := model.head.added) is not None:
        spec.decoder.projection.bias = _numbers(bias)
    spec.register_source_vocabulary(tokenizers.source.pieces)
    spec.register_target_vocabulary(tokenizers.target.pieces)
    named = tokenizers.target.pieces
    spec.config.unk_token = named[UNK]
    spec.config.bos_token = spec.config.decoder_start_token = named[SOS]
    spec.config.eos_token = named[EOS]
    spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = model.get_submodule("encoder.layers.0.after_feed_forward.norm").eps
    return spec


def require_expressible(config: SequenceToSequenceConfig) -> None:
    """Raise RunError, with every reason, for a model that CTranslate2 cannot compute."""
    if unmet := list(_inexpressible(config)):
        raise RunError(f"CTranslate2 cannot compute {'; '.join(unmet)}: use --engine torch")


def _inexpressible(config: SequenceToSequenceConfig) -> Iterator[str]:
    for path, known in EXPRESSIBLE.items():
        value: Any = config
        for name in path.split("."):
            value = getattr(value, name, None)
        if value is not None and value not in known:  # a kind that lacks a field is refused as a kind
            yield f"model.{path} {value} (supported: {', '.join(map(str, known))})"
    if isinstance(config, EncoderDecoderConfig) and config.heads.key_size != config.heads.value_size:
        yield f"model.value_size {config.heads.value_size} (supported: the size of keys, {config.heads.key_size})"


def _fill_stack(spec: Any, stack: Any, names: Mapping[str, str]) -> None:
    for layer_spec, layer in zip(spec.layer, stack.layers, strict=True):
        for theirs, ours in names.items():
            _fill(index_spec(layer_spec, theirs), layer.get_submodule(ours))
        _fill_attention(layer_spec.self_attention, layer.self_attention)
        if hasattr(layer_spec, "attention"):
            layer_spec.attention.queries_scale = layer.cross_attention.mechanism.scale
    if hasattr(spec, "layer_norm"):  # the last norm of a pre-norm stack
        _fill(spec.layer_norm, stack.final_norm)


def _fill(spec: Any, module: nn.Linear | nn.LayerNorm | nn.RMSNorm) -> None:
    names = ("gamma", "beta") if isinstance(spec, LayerNormSpec) else ("weight", "bias")
    for name, parameter in zip(names, (module.weight, getattr(module, "bias", None)), strict=True):
        if parameter is not None:
            setattr(spec, name, _numbers(parameter))


def _fill_attention(spec: Any, attention: SelfAttention) -> None:
    spec.queries_scale = attention.mechanism.scale
    joint = spec.linear[0]
    joint.weight, joint.bias = (_all_three(numbers, attention) for numbers in (joint.weight, joint.bias))


def _all_three(projected: Numbers, attention: SelfAttention) -> Numbers:
    """Return separate rows for query, key and value, repeated where they share a matrix in the model."""
    cuts = np.cumsum(attention.widths)[:-1]
    found = dict(zip(attention.parts, np.split(projected, cuts), strict=True))
    return np.concatenate([found.get(part, found["key"]) for part in ("query", "key", "value")])


def _fill_input(spec: Any, table: Any, embedding: Representation, config: EncoderDecoderConfig) -> None:
    assert isinstance(embedding, TokenEmbedding)
    table.weight = _numbers(embedding.table.weight)
    spec.scale_embeddings = config.scale_embeddings
    if not hasattr(spec, "position_encodings"):  # a decoder with rotary positions
        return
    rows = -(-config.max_length // PADDED_TO) * PADDED_TO
    encodings = np.zeros((rows, config.d_model), dtype=np.float32)
    if embedding.positions.acts_on == "input":
        device = embedding.table.weight.device
        encodings[: config.max_length] = _numbers(
            embedding.positions.embed(torch.arange(config.max_length, device=device))
        )
    spec.position_encodings.encodings = encodings


def _numbers(tensor: Tensor) -> Numbers:
    """Return a float32 copy on the CPU: quantising writes into its argument."""
    return tensor.detach().float().cpu().numpy().copy()
