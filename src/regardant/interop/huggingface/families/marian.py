"""Marian's translators (Junczys-Dowmunt et al. 2018, https://arxiv.org/abs/1804.00344), as OPUS-MT publishes them."""

from regardant.interop.huggingface.forms import KEY_VALUE, QUERY_KEY_VALUE, WORDS, WORDS_OF_ONE_ROW
from regardant.interop.huggingface.layouts import ACTIVATIONS, CheckpointLayout, Entry, linear, setting
from regardant.models.encoder_decoder import EncoderDecoderConfig


def attention(ours: str, theirs: str) -> tuple[Entry, ...]:
    """Return the entries of a self-attention."""
    parts = (f"{theirs}.{part}_proj" for part in ("q", "k", "v"))
    return (
        *linear(f"{ours}.query_key_value", *parts, form=QUERY_KEY_VALUE, bias=QUERY_KEY_VALUE),
        *linear(f"{ours}.output", f"{theirs}.out_proj"),
    )


def cross_attention(ours: str, theirs: str) -> tuple[Entry, ...]:
    """Return the entries of a cross-attention."""
    return (
        *linear(f"{ours}.query", f"{theirs}.q_proj"),
        *linear(f"{ours}.key_value", f"{theirs}.k_proj", f"{theirs}.v_proj", form=KEY_VALUE, bias=KEY_VALUE),
        *linear(f"{ours}.output", f"{theirs}.out_proj"),
    )


def rest(ours: str, theirs: str) -> tuple[Entry, ...]:
    """Return the entries that layers of encoder and decoder share."""
    return (
        *attention(f"{ours}.self_attention", f"{theirs}.self_attn"),
        *linear(f"{ours}.after_self_attention.norm", f"{theirs}.self_attn_layer_norm"),
        *linear(f"{ours}.feed_forward.widen", f"{theirs}.fc1"),
        *linear(f"{ours}.feed_forward.narrow", f"{theirs}.fc2"),
        *linear(f"{ours}.after_feed_forward.norm", f"{theirs}.final_layer_norm"),
    )


LAYOUTS = (
    CheckpointLayout(
        model_type="marian",
        architecture="MarianMTModel",
        model=EncoderDecoderConfig,
        fixed={
            "task": "translation",
            "data.kind": "pairs",
            "data.source": "",
            "data.target": "",
            "training.max_minutes": "auto",
            "model.kind": "encoder_decoder",
            "model.preset": None,
            "model.norm": "post",
            "model.positions.kind": "sinusoidal",
            "model.positions.layout": "halves",
            "model.feed_forward.kind": "linear",
            "model.normalisation.kind": "layer_norm",
            "model.tie_embeddings": "all",
            "head.bias": True,
        },
        settings=(
            setting("d_model", "model.d_model", default=1024),
            setting("encoder_layers", "model.encoder.num_layers", default=12),
            setting("decoder_layers", "model.decoder.num_layers", default=12),
            setting("encoder_attention_heads", "model.num_heads", default=16),
            setting("decoder_attention_heads", "model.num_heads", default=16),
            setting("encoder_ffn_dim", "model.d_ff", default=4096),
            setting("decoder_ffn_dim", "model.d_ff", default=4096),
            setting("activation_function", "model.feed_forward.activation", default="gelu", values=ACTIVATIONS),
            setting("max_position_embeddings", "model.max_length", default=1024),
            setting("scale_embedding", "model.scale_embeddings", default=False),
            setting("dropout", "model.dropout", default=0.1),
        ),
        weights=(
            Entry(("source.table.weight",), ("model.shared.weight",), WORDS),
            Entry(("head.bias",), ("final_logits_bias",), WORDS_OF_ONE_ROW),
        ),
        layers={
            "model.encoder.num_layers": rest("encoder.layers.{layer}", "model.encoder.layers.{layer}"),
            "model.decoder.num_layers": (
                *rest("decoder.layers.{layer}", "model.decoder.layers.{layer}"),
                *cross_attention("decoder.layers.{layer}.cross_attention", "model.decoder.layers.{layer}.encoder_attn"),
                *linear(
                    "decoder.layers.{layer}.after_cross_attention.norm",
                    "model.decoder.layers.{layer}.encoder_attn_layer_norm",
                ),
            ),
        },
        required={
            "share_encoder_decoder_embeddings": (True,),
            "tie_word_embeddings": (True,),
            "static_position_embeddings": (True,),
            "normalize_before": (False,),
            "normalize_embedding": (False,),
            "add_final_layer_norm": (False,),
        },
        ignored=(
            "model.*coder.embed_positions.weight",
            "model.*coder.embed_tokens.weight",
            "lm_head.weight",
        ),
        tokenizer="tokenizer",
    ),
)
