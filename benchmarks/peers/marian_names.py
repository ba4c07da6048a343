"""Weights of a post-norm model of ours under the names of Marian's model in transformers."""

from collections.abc import Iterator

from torch import Tensor

EMBEDDING = "source.table.weight"
"""Name in a run's weights of the matrix that source, target and output share."""

EMBEDDINGS = (
    "model.shared.weight",
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
    "lm_head.weight",
)

SUBLAYERS = {
    "encoder": {
        "self_attention": "self_attn",
        "after_self_attention.norm": "self_attn_layer_norm",
        "after_feed_forward.norm": "final_layer_norm",
        "feed_forward.widen": "fc1",
        "feed_forward.narrow": "fc2",
    },
}
SUBLAYERS["decoder"] = SUBLAYERS["encoder"] | {
    "cross_attention": "encoder_attn",
    "after_cross_attention.norm": "encoder_attn_layer_norm",
}
"""Marian's name of each part of a layer, by ours."""

FUSED = {"query_key_value": ("q_proj", "k_proj", "v_proj"), "key_value": ("k_proj", "v_proj")}
ALONE = {"query": "q_proj", "output": "out_proj"}
"""Marian's names of the projections of an attention, by ours: fused ones, and single ones."""


def in_marians_names(ours: dict[str, Tensor], num_layers: int) -> dict[str, Tensor]:
    """Return the weights of a post-norm model of ours by Marian's names."""
    named = dict.fromkeys(EMBEDDINGS, ours[EMBEDDING])
    for stack, sublayers in SUBLAYERS.items():
        for layer in range(num_layers):
            for our_name, their_name in sublayers.items():
                prefix = f"{stack}.layers.{layer}.{our_name}."
                parts = {name.removeprefix(prefix): value for name, value in ours.items() if name.startswith(prefix)}
                theirs = f"model.{stack}.layers.{layer}.{their_name}"
                named |= {f"{theirs}.{name}": value for name, value in split(parts)}
    return named


def split(parts: dict[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """Yield the weights of one sublayer by Marian's names; fused projections of an attention are split."""
    for name, value in parts.items():
        projection, _, kind = name.rpartition(".")
        if projection in FUSED:
            names = FUSED[projection]
            yield from zip((f"{one}.{kind}" for one in names), value.chunk(len(names)), strict=True)
        else:
            yield f"{ALONE[projection]}.{kind}" if projection else kind, value
