"""JoeyNMT's configuration of the shape that all share. Its vocabulary has the special tokens in another order."""

from types import SimpleNamespace
from typing import Any

import torch
from joeynmt.transformer_layers import MultiHeadedAttention
from torch import nn

UNK, PAD, BOS, EOS = range(4)

OF_OURS = {0: PAD, 1: BOS, 2: EOS, 3: UNK}
"""JoeyNMT's ids of our special tokens; the ids of all other tokens are equal."""


def words(vocab_size: int) -> list[str]:
    """Return the vocabulary without special tokens: a token is written as its id."""
    return [str(token) for token in range(len(OF_OURS), vocab_size)]


def special_symbols() -> SimpleNamespace:
    return SimpleNamespace(
        unk_token="<unk>",
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        sep_token=None,
        unk_id=UNK,
        pad_id=PAD,
        bos_id=BOS,
        eos_id=EOS,
        sep_id=None,
        lang_tags=[],
    )


def model_section(shape: dict[str, Any]) -> dict[str, Any]:
    """Return the `model` part of a configuration file."""
    if "cell" in shape:
        return recurrent_section(shape)

    def stack() -> dict[str, Any]:
        return {
            "type": "transformer",
            "num_layers": shape["num_layers"],
            "num_heads": shape["num_heads"],
            "embeddings": {"embedding_dim": shape["d_model"], "scale": True},
            "hidden_size": shape["d_model"],
            "ff_size": shape["d_ff"],
            "dropout": shape["dropout"],
            "layer_norm": "pre",
        }

    return {"tied_embeddings": True, "tied_softmax": True, "encoder": stack(), "decoder": stack()}


def recurrent_section(shape: dict[str, Any]) -> dict[str, Any]:
    """Return the `model` part for a recurrent model: Luong's attention with input feeding, as ours."""
    stack = {
        "type": "recurrent",
        "rnn_type": shape["cell"],
        "embeddings": {"embedding_dim": shape["embedding_size"], "scale": False, "dropout": shape["dropout"]},
        "num_layers": shape["num_layers"],
        "dropout": shape["dropout"],
    }
    encoder = {"hidden_size": shape["hidden_size"] // 2, "bidirectional": True}
    decoder = {
        "hidden_size": shape["hidden_size"],
        "hidden_dropout": shape["dropout"],
        "attention": "luong",
        "input_feeding": True,
        "init_hidden": "bridge",
    }
    return {"tied_embeddings": True, "tied_softmax": True, "encoder": stack | encoder, "decoder": stack | decoder}


def keep_attention_weights(model: nn.Module) -> None:
    """Turn off dropout of attention weights, which the other models do not have."""
    for module in model.modules():
        if isinstance(module, MultiHeadedAttention):
            module.dropout.p = 0.0


def renumbering(vocab_size: int) -> torch.Tensor:
    """Return JoeyNMT's id of each of our ids [vocab_size]."""
    ids = torch.arange(vocab_size)
    ids[list(OF_OURS)] = torch.tensor(list(OF_OURS.values()))
    return ids
