"""The Vision Transformer (Dosovitskiy et al. 2021, https://arxiv.org/abs/2010.11929)."""

from regardant.interop.huggingface.forms import CLASS_TOKEN_AND_POSITIONS, PATCHES, QUERY_KEY_VALUE, SAME
from regardant.interop.huggingface.layouts import ACTIVATIONS, CheckpointLayout, Entry, linear, setting
from regardant.models.encoder_only import EncoderOnlyConfig

LAYER = "vit.encoder.layer.{layer}"

LAYOUTS = (
    CheckpointLayout(
        model_type="vit",
        architecture="ViTForImageClassification",
        model=EncoderOnlyConfig,
        fixed={
            "task": "classification",
            "data.kind": "folders",
            "data.source": "",
            "training.max_minutes": "auto",
            "input.kind": "image",
            "model.kind": "encoder_only",
            "model.norm": "pre",
            "model.scale_embeddings": False,
            "model.positions.kind": "learned",
            "model.feed_forward.kind": "linear",
            "model.normalisation.kind": "layer_norm",
            "model.tie_embeddings": False,
            "head.kind": "sequence_class",
            "head.pooling": "class_token",
        },
        settings=(
            setting("hidden_size", "model.d_model", default=768),
            setting("num_hidden_layers", "model.num_layers", default=12),
            setting("num_attention_heads", "model.num_heads", default=12),
            setting("intermediate_size", "model.d_ff", default=3072),
            setting("hidden_act", "model.feed_forward.activation", default="gelu", values=ACTIVATIONS),
            setting("hidden_dropout_prob", "model.dropout", default=0.0),
            setting("layer_norm_eps", "model.normalisation.eps", default=1e-12),
            setting("image_size", "image.height", "image.width", default=224),
            setting("num_channels", "image.channels", default=3),
            setting("patch_size", "image.patch_size", "input.patch_size", default=16),
        ),
        weights=(
            Entry(
                ("input.class_token", "encoder.positions.table"),
                ("vit.embeddings.cls_token", "vit.embeddings.position_embeddings"),
                CLASS_TOKEN_AND_POSITIONS,
            ),
            *linear("input.projection", "vit.embeddings.patch_embeddings.projection", form=PATCHES, bias=SAME),
            *linear("encoder.final_norm", "vit.layernorm"),
            *linear("head.output", "classifier"),
        ),
        layers={
            "model.num_layers": (
                *linear("encoder.layers.{layer}.after_self_attention.norm", f"{LAYER}.layernorm_before"),
                *linear(
                    "encoder.layers.{layer}.self_attention.query_key_value",
                    f"{LAYER}.attention.attention.query",
                    f"{LAYER}.attention.attention.key",
                    f"{LAYER}.attention.attention.value",
                    form=QUERY_KEY_VALUE,
                    bias=QUERY_KEY_VALUE,
                ),
                *linear("encoder.layers.{layer}.self_attention.output", f"{LAYER}.attention.output.dense"),
                *linear("encoder.layers.{layer}.after_feed_forward.norm", f"{LAYER}.layernorm_after"),
                *linear("encoder.layers.{layer}.feed_forward.widen", f"{LAYER}.intermediate.dense"),
                *linear("encoder.layers.{layer}.feed_forward.narrow", f"{LAYER}.output.dense"),
            )
        },
        required={"qkv_bias": (True,), "problem_type": (None, "single_label_classification")},
        prefix="vit.",
        ignored=("vit.embeddings.mask_token", "vit.pooler.*"),
    ),
)
