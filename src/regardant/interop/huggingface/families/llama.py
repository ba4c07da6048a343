"""Llama (Touvron et al. 2023, https://arxiv.org/abs/2302.13971) and models of its shape: rotary positions, RMSNorm,
SwiGLU, shared key heads."""

from regardant.interop.huggingface.forms import ROTARY_QUERY_KEY_VALUE, WORDS
from regardant.interop.huggingface.layouts import ACTIVATIONS, CheckpointLayout, Computed, Entry, linear, setting
from regardant.models.decoder_only import DecoderOnlyConfig

TWO_THIRDS = Computed(read=lambda inner: -(-3 * inner // 2), write=lambda d_ff: 2 * d_ff // 3)
"""Inner width of a gated network: given as such by a checkpoint, two thirds of d_ff in our configuration."""

LAYOUTS = (
    CheckpointLayout(
        model_type="llama",
        architecture="LlamaForCausalLM",
        model=DecoderOnlyConfig,
        fixed={
            "task": "language_modelling",
            "data.source": [],
            "training.max_minutes": "auto",
            "model.kind": "decoder_only",
            "model.norm": "pre",
            "model.scale_embeddings": False,
            "model.attention_bias": False,
            "model.positions.kind": "rotary",
            "model.feed_forward.kind": "gated",
            "model.feed_forward.bias": False,
            "model.normalisation.kind": "rms_norm",
        },
        settings=(
            setting("hidden_size", "model.d_model", default=4096),
            setting("num_hidden_layers", "model.num_layers", default=32),
            setting("num_attention_heads", "model.num_heads", default=32),
            setting("num_key_value_heads", "model.num_key_heads"),
            setting("head_dim", "model.key_size", "model.value_size"),
            setting("intermediate_size", "model.d_ff", default=11008, values=TWO_THIRDS),
            setting("max_position_embeddings", "model.max_length", default=2048),
            setting("hidden_act", "model.feed_forward.activation", default="silu", values=ACTIVATIONS),
            setting("rms_norm_eps", "model.normalisation.eps", default=1e-6),
            setting("rope_theta", "model.positions.base", default=10000.0),
            setting("tie_word_embeddings", "model.tie_embeddings", default=False, values={True: "all", False: "none"}),
        ),
        weights=(
            Entry(("text.table.weight",), ("model.embed_tokens.weight",), WORDS),
            Entry(("head.weight",), ("lm_head.weight",), WORDS, only_untied=True),
            *linear("decoder.final_norm", "model.norm", bias=None),
        ),
        layers={
            "model.num_layers": (
                *linear(
                    "decoder.layers.{layer}.after_self_attention.norm",
                    "model.layers.{layer}.input_layernorm",
                    bias=None,
                ),
                *linear(
                    "decoder.layers.{layer}.self_attention.query_key_value",
                    "model.layers.{layer}.self_attn.q_proj",
                    "model.layers.{layer}.self_attn.k_proj",
                    "model.layers.{layer}.self_attn.v_proj",
                    form=ROTARY_QUERY_KEY_VALUE,
                    bias=None,
                ),
                *linear(
                    "decoder.layers.{layer}.self_attention.output", "model.layers.{layer}.self_attn.o_proj", bias=None
                ),
                *linear(
                    "decoder.layers.{layer}.after_feed_forward.norm",
                    "model.layers.{layer}.post_attention_layernorm",
                    bias=None,
                ),
                *linear("decoder.layers.{layer}.feed_forward.gate", "model.layers.{layer}.mlp.gate_proj", bias=None),
                *linear("decoder.layers.{layer}.feed_forward.widen", "model.layers.{layer}.mlp.up_proj", bias=None),
                *linear("decoder.layers.{layer}.feed_forward.narrow", "model.layers.{layer}.mlp.down_proj", bias=None),
            )
        },
        required={
            "attention_bias": (False,),
            "mlp_bias": (False,),
            "rope_scaling": (None,),
            "rope_type": (None, "default"),
        },
        prefix="model.",
        ignored=("model.layers.*.self_attn.rotary_emb.inv_freq", "lm_head.weight"),
        tokenizer="tokenizer",
    ),
)
