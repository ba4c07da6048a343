"""GPT-2, BERT and ViT of transformers, trained."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from random_batches import CHANNELS, CLASSES, PAD, batches
from torch import Tensor, nn
from training_loop import train_on
from transformers import (
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    ViTConfig,
    ViTForImageClassification,
)
from transformers_attention import attend


def build(shape: dict[str, Any]) -> nn.Module:
    """Return the model of a shape, with fresh weights."""
    if shape["kind"] == "language model":
        config = GPT2Config(
            vocab_size=shape["vocab_size"],
            n_positions=shape["length"],
            n_embd=shape["d_model"],
            n_layer=shape["num_layers"],
            n_head=shape["num_heads"],
            n_inner=shape["d_ff"],
            resid_pdrop=shape["dropout"],
            embd_pdrop=shape["dropout"],
            attn_pdrop=0.0,  # Regardant drops no attention weights
            activation_function="gelu",  # as in the other libraries; GPT-2's own is composed of slower operations
        )
        return GPT2LMHeadModel(config)
    sizes = {
        "hidden_size": shape["d_model"],
        "num_hidden_layers": shape["num_layers"],
        "num_attention_heads": shape["num_heads"],
        "intermediate_size": shape["d_ff"],
        "hidden_dropout_prob": shape["dropout"],
        "attention_probs_dropout_prob": 0.0,
    }
    if shape["kind"] == "masked":
        return BertForMaskedLM(
            BertConfig(vocab_size=shape["vocab_size"], max_position_embeddings=shape["length"], **sizes)
        )
    side = round(shape["length"] ** 0.5) * shape["patch_size"]
    return ViTForImageClassification(
        ViTConfig(image_size=side, patch_size=shape["patch_size"], num_channels=CHANNELS, num_labels=CLASSES, **sizes)
    )


def word_loss(model: GPT2LMHeadModel, tokens: Tensor, targets: Tensor) -> Tensor:
    """Return the mean cross-entropy."""
    return F.cross_entropy(model(input_ids=tokens, use_cache=False).logits.flatten(0, 1), targets.flatten())


def masked_loss(model: BertForMaskedLM, tokens: Tensor, targets: Tensor) -> Tensor:
    """Return the mean cross-entropy of the masked tokens. The head reads these alone, as in Regardant."""
    targets = targets.flatten()
    places = (targets != PAD).nonzero().squeeze(1)  # a mask would do the same with a slower gradient
    vectors = model.bert(input_ids=tokens)[0].flatten(0, 1).index_select(0, places)
    return F.cross_entropy(model.cls(vectors), targets.index_select(0, places))


def class_loss(model: ViTForImageClassification, pixels: Tensor, targets: Tensor) -> Tensor:
    """Return the mean cross-entropy of the classes."""
    return F.cross_entropy(model(pixel_values=pixels).logits, targets)


LOSSES: dict[str, Callable[[Any, Tensor, Tensor], Tensor]] = {
    "language model": word_loss,
    "masked": masked_loss,
    "image": class_loss,
}
"""Losses by kind of model."""


def main() -> None:
    shape = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    torch.manual_seed(1)
    image = shape["kind"] == "image"
    pairs = [
        ((block.permute(0, 3, 1, 2).contiguous() if image else block, targets), count)
        for block, targets, count in batches(shape)
    ]
    train_on("transformers", build(shape), pairs, LOSSES[shape["kind"]], attend)


if __name__ == "__main__":
    main()
