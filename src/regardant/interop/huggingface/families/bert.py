"""BERT (Devlin et al. 2019, https://arxiv.org/abs/1810.04805) and models of its shape, such as MiniLM."""

from regardant.interop.huggingface.forms import POSITIONS_AND_TYPES, QUERY_KEY_VALUE, WORDS
from regardant.interop.huggingface.layouts import ACTIVATIONS, CheckpointLayout, Entry, linear, setting
from regardant.models.encoder_only import EncoderOnlyConfig

OF_TEXTS = {
    "data.source": (),
    "training.max_minutes": "auto",
    "input.kind": "text",
}

ENCODER = {
    "model.kind": "encoder_only",
    "model.norm": "post",
    "model.embedding_norm": True,
    "model.scale_embeddings": False,
    "model.positions.kind": "learned",
    "model.feed_forward.kind": "linear",
    "model.normalisation.kind": "layer_norm",
}

SIZES = (
    setting("hidden_size", "model.d_model", default=768),
    setting("num_hidden_layers", "model.num_layers", default=12),
    setting("num_attention_heads", "model.num_heads", default=12),
    setting("intermediate_size", "model.d_ff", default=3072),
    setting("hidden_dropout_prob", "model.dropout", default=0.1),
)

LENGTH = setting("max_position_embeddings", "model.max_length", default=512)

LAYER = (
    *linear(
        "encoder.layers.{layer}.self_attention.query_key_value",
        "bert.encoder.layer.{layer}.attention.self.query",
        "bert.encoder.layer.{layer}.attention.self.key",
        "bert.encoder.layer.{layer}.attention.self.value",
        form=QUERY_KEY_VALUE,
        bias=QUERY_KEY_VALUE,
    ),
    *linear("encoder.layers.{layer}.self_attention.output", "bert.encoder.layer.{layer}.attention.output.dense"),
    *linear(
        "encoder.layers.{layer}.after_self_attention.norm", "bert.encoder.layer.{layer}.attention.output.LayerNorm"
    ),
    *linear("encoder.layers.{layer}.feed_forward.widen", "bert.encoder.layer.{layer}.intermediate.dense"),
    *linear("encoder.layers.{layer}.feed_forward.narrow", "bert.encoder.layer.{layer}.output.dense"),
    *linear("encoder.layers.{layer}.after_feed_forward.norm", "bert.encoder.layer.{layer}.output.LayerNorm"),
)

INPUT = (
    Entry(("input.table.weight",), ("bert.embeddings.word_embeddings.weight",), WORDS),
    Entry(
        ("encoder.positions.table",),
        ("bert.embeddings.position_embeddings.weight", "bert.embeddings.token_type_embeddings.weight"),
        POSITIONS_AND_TYPES,
    ),
    *linear("input.norm", "bert.embeddings.LayerNorm"),
)

REQUIRED = {
    "type_vocab_size": (2, 1),
    "position_embedding_type": ("absolute",),
    "is_decoder": (False,),
    "add_cross_attention": (False,),
}

IGNORED = ("bert.embeddings.position_ids", "bert.embeddings.token_type_ids", "cls.seq_relationship.*")

MASKED = CheckpointLayout(
    model_type="bert",
    architecture="BertForMaskedLM",
    model=EncoderOnlyConfig,
    fixed={
        "task": "masked_language_modelling",
        **OF_TEXTS,
        **ENCODER,
        "model.tie_embeddings": True,
        "head.bias": True,
        "head.transform.normalisation.kind": "layer_norm",
    },
    settings=(
        *SIZES,
        LENGTH,
        setting(
            "hidden_act",
            "model.feed_forward.activation",
            "head.transform.activation",
            default="gelu",
            values=ACTIVATIONS,
        ),
        setting("layer_norm_eps", "model.normalisation.eps", "head.transform.normalisation.eps", default=1e-12),
    ),
    weights=(
        *INPUT,
        *linear("head.transform.dense", "cls.predictions.transform.dense"),
        *linear("head.transform.norm", "cls.predictions.transform.LayerNorm"),
        Entry(("head.bias",), ("cls.predictions.bias",), WORDS),
    ),
    layers={"model.num_layers": LAYER},
    required={**REQUIRED, "tie_word_embeddings": (True,)},
    prefix="bert.",
    ignored=(*IGNORED, "bert.pooler.*", "cls.predictions.decoder.*"),
    tokenizer="input.tokenizer",
)

WITHOUT_HEAD = (
    *SIZES,
    LENGTH,
    setting("hidden_act", "model.feed_forward.activation", default="gelu", values=ACTIVATIONS),
    setting("layer_norm_eps", "model.normalisation.eps", default=1e-12),
)

CLASSES = CheckpointLayout(
    model_type="bert",
    architecture="BertForSequenceClassification",
    model=EncoderOnlyConfig,
    fixed={
        "task": "classification",
        **OF_TEXTS,
        "data.source": "",
        **ENCODER,
        "model.tie_embeddings": False,
        "head.kind": "sequence_class",
        "head.pooling": "first",
        "head.transform": True,
    },
    settings=WITHOUT_HEAD,
    weights=(*INPUT, *linear("head.transform.0", "bert.pooler.dense"), *linear("head.output", "classifier")),
    layers={"model.num_layers": LAYER},
    required={**REQUIRED, "problem_type": (None, "single_label_classification")},
    prefix="bert.",
    ignored=IGNORED,
    tokenizer="input.tokenizer",
)

VECTORS = CheckpointLayout(
    model_type="bert",
    architecture="BertModel",
    model=EncoderOnlyConfig,
    fixed={"task": "sentence_embedding", **OF_TEXTS, **ENCODER, "model.tie_embeddings": False},
    settings=WITHOUT_HEAD,
    weights=INPUT,
    layers={"model.num_layers": LAYER},
    required=REQUIRED,
    prefix="bert.",
    ignored=(*IGNORED, "bert.pooler.*"),
    tokenizer="input.tokenizer",
)

LAYOUTS = (MASKED, CLASSES, VECTORS)
