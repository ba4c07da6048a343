"""T5 (Raffel et al. 2020, https://arxiv.org/abs/1910.10683) with one matrix for input and output (version 1.0)."""

from regardant.interop.huggingface.forms import KEY_VALUE, QUERY_KEY_VALUE, TRANSPOSED, WORDS
from regardant.interop.huggingface.layouts import CheckpointLayout, Computed, Entry, linear, setting
from regardant.models.encoder_decoder import EncoderDecoderConfig

SCALE = Computed(read=lambda d_model: d_model**-0.5, write=lambda scale: round(scale**-2))
"""Factor on the vectors before the output projection, from d_model."""


def layer(stack: str, number_of_network: int) -> tuple[Entry, ...]:
    """Return the entries that encoder and decoder layers share. number_of_network: index of the feed-forward part."""
    ours, theirs = f"{stack}.layers.{{layer}}", f"{stack}.block.{{layer}}.layer"
    parts = (f"{theirs}.0.SelfAttention.{part}" for part in "qkv")
    network = f"{theirs}.{number_of_network}"
    return (
        *linear(f"{ours}.self_attention.query_key_value", *parts, form=QUERY_KEY_VALUE, bias=None),
        *linear(f"{ours}.self_attention.output", f"{theirs}.0.SelfAttention.o", bias=None),
        *linear(f"{ours}.after_self_attention.norm", f"{theirs}.0.layer_norm", bias=None),
        *linear(f"{ours}.feed_forward.widen", f"{network}.DenseReluDense.wi", bias=None),
        *linear(f"{ours}.feed_forward.narrow", f"{network}.DenseReluDense.wo", bias=None),
        *linear(f"{ours}.after_feed_forward.norm", f"{network}.layer_norm", bias=None),
    )


def positions(stack: str) -> Entry:
    """Return the entry of the relative positions, which all layers of a stack share."""
    theirs = f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    return Entry((f"{stack}.positions.table",), (theirs,), TRANSPOSED)


CROSS = "decoder.block.{layer}.layer.1.EncDecAttention"

LAYOUTS = (
    CheckpointLayout(
        model_type="t5",
        architecture="T5ForConditionalGeneration",
        model=EncoderDecoderConfig,
        fixed={
            "task": "translation",
            "data.kind": "pairs",
            "data.source": "",
            "data.target": "",
            "training.max_minutes": "auto",
            "model.kind": "encoder_decoder",
            "model.preset": None,
            "model.norm": "pre",
            "model.scale_embeddings": False,
            "model.attention_bias": False,
            "model.encoder.self_attention": {"kind": "scaled_dot_product", "scaled": False},
            "model.decoder.self_attention": {"kind": "scaled_dot_product", "scaled": False},
            "model.decoder.cross_attention": {"kind": "scaled_dot_product", "scaled": False},
            "model.positions.kind": "t5",
            "model.feed_forward": {"kind": "linear", "activation": "relu", "bias": False},
            "model.normalisation.kind": "rms_norm",
            "model.tie_embeddings": "all",
        },
        settings=(
            setting("d_model", "model.d_model", default=512),
            setting("d_model", "head.scale", default=512, values=SCALE),
            setting("d_kv", "model.key_size", "model.value_size", default=64),
            setting("d_ff", "model.d_ff", default=2048),
            setting("num_layers", "model.encoder.num_layers", default=6),
            setting(
                "num_decoder_layers", "model.decoder.num_layers", default=lambda config: config.get("num_layers", 6)
            ),
            setting("num_heads", "model.num_heads", default=8),
            setting("relative_attention_num_buckets", "model.positions.num_buckets", default=32),
            setting("relative_attention_max_distance", "model.positions.max_distance", default=128),
            setting("layer_norm_epsilon", "model.normalisation.eps", default=1e-6),
            setting("n_positions", "model.max_length", default=512),
            setting("dropout_rate", "model.dropout", default=0.1),
        ),
        weights=(
            Entry(("source.table.weight",), ("shared.weight",), WORDS),
            positions("encoder"),
            positions("decoder"),
            *linear("encoder.final_norm", "encoder.final_layer_norm", bias=None),
            *linear("decoder.final_norm", "decoder.final_layer_norm", bias=None),
        ),
        layers={
            "model.encoder.num_layers": layer("encoder", 1),
            "model.decoder.num_layers": (
                *layer("decoder", 2),
                *linear("decoder.layers.{layer}.cross_attention.query", f"{CROSS}.q", bias=None),
                *linear(
                    "decoder.layers.{layer}.cross_attention.key_value",
                    f"{CROSS}.k",
                    f"{CROSS}.v",
                    form=KEY_VALUE,
                    bias=None,
                ),
                *linear("decoder.layers.{layer}.cross_attention.output", f"{CROSS}.o", bias=None),
                *linear(
                    "decoder.layers.{layer}.after_cross_attention.norm",
                    "decoder.block.{layer}.layer.1.layer_norm",
                    bias=None,
                ),
            ),
        },
        required={"feed_forward_proj": ("relu",), "tie_word_embeddings": (True,), "scale_decoder_outputs": (True,)},
        ignored=("*coder.embed_tokens.weight", "lm_head.weight"),
        tokenizer="tokenizer",
    ),
)
