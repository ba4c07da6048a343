"""GPT-2 (Radford et al. 2019, "Language models are unsupervised multitask learners")."""

from regardant.interop.huggingface.forms import SAME, TRANSPOSED, WORDS
from regardant.interop.huggingface.layouts import ACTIVATIONS, CheckpointLayout, Entry, linear, setting
from regardant.models.decoder_only import DecoderOnlyConfig

LAYOUTS = (
    CheckpointLayout(
        model_type="gpt2",
        architecture="GPT2LMHeadModel",
        model=DecoderOnlyConfig,
        fixed={
            "task": "language_modelling",
            "data.source": [],
            "training.max_minutes": "auto",
            "model.kind": "decoder_only",
            "model.norm": "pre",
            "model.scale_embeddings": False,
            "model.positions.kind": "learned",
            "model.feed_forward.kind": "linear",
            "model.normalisation.kind": "layer_norm",
            "model.tie_embeddings": "all",
        },
        settings=(
            setting("n_embd", "model.d_model", default=768),
            setting("n_layer", "model.num_layers", default=12),
            setting("n_head", "model.num_heads", default=12),
            setting("n_inner", "model.d_ff", default=lambda config: 4 * config.get("n_embd", 768)),
            setting("n_positions", "model.max_length", default=1024),
            setting("activation_function", "model.feed_forward.activation", default="gelu_new", values=ACTIVATIONS),
            setting("layer_norm_epsilon", "model.normalisation.eps", default=1e-5),
            setting("resid_pdrop", "model.dropout", default=0.1),
        ),
        weights=(
            Entry(("text.table.weight",), ("transformer.wte.weight",), WORDS),
            Entry(("decoder.positions.table",), ("transformer.wpe.weight",)),
            *linear("decoder.final_norm", "transformer.ln_f"),
        ),
        layers={
            "model.num_layers": (
                *linear("decoder.layers.{layer}.after_self_attention.norm", "transformer.h.{layer}.ln_1"),
                *linear(
                    "decoder.layers.{layer}.self_attention.query_key_value",
                    "transformer.h.{layer}.attn.c_attn",
                    form=TRANSPOSED,
                    bias=SAME,
                ),
                *linear(
                    "decoder.layers.{layer}.self_attention.output",
                    "transformer.h.{layer}.attn.c_proj",
                    form=TRANSPOSED,
                ),
                *linear("decoder.layers.{layer}.after_feed_forward.norm", "transformer.h.{layer}.ln_2"),
                *linear("decoder.layers.{layer}.feed_forward.widen", "transformer.h.{layer}.mlp.c_fc", form=TRANSPOSED),
                *linear(
                    "decoder.layers.{layer}.feed_forward.narrow", "transformer.h.{layer}.mlp.c_proj", form=TRANSPOSED
                ),
            )
        },
        required={
            "scale_attn_weights": (True,),
            "scale_attn_by_inverse_layer_idx": (False,),
            "add_cross_attention": (False,),
            "tie_word_embeddings": (True,),
        },
        prefix="transformer.",
        ignored=("transformer.h.*.attn.bias", "transformer.h.*.attn.masked_bias", "lm_head.weight"),
        tokenizer="tokenizer",
    ),
)
