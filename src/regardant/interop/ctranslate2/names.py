"""Names of an export: CTranslate2's variables of a layer, and the modules of ours that fill them."""

from ctranslate2.specs import Activation

ACTIVATIONS = {
    "relu": Activation.RELU,
    "gelu": Activation.GELU,
    "gelu_tanh": Activation.GELUTanh,
    "silu": Activation.SWISH,
    "sigmoid": Activation.Sigmoid,
}
"""Activations of feed-forward networks: ours to CTranslate2's."""

ENCODER_LAYER = {
    "self_attention/layer_norm": "after_self_attention.norm",
    "self_attention/linear_0": "self_attention.query_key_value",
    "self_attention/linear_1": "self_attention.output",
    "ffn/layer_norm": "after_feed_forward.norm",
    "ffn/linear_0": "feed_forward.widen",
    "ffn/linear_1": "feed_forward.narrow",
}
"""Parts of an encoder layer."""

DECODER_LAYER = ENCODER_LAYER | {
    "attention/layer_norm": "after_cross_attention.norm",
    "attention/linear_0": "cross_attention.query",
    "attention/linear_1": "cross_attention.key_value",
    "attention/linear_2": "cross_attention.output",
}
"""Parts of a decoder layer."""

GATED = {"ffn/linear_0": "feed_forward.gate", "ffn/linear_0_noact": "feed_forward.widen"}
"""Parts of a gated feed-forward network that differ from those of a linear one."""
