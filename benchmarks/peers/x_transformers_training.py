"""XTransformer of x-transformers, trained. Its positions are learned and its output matrix is untied."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from torch import Tensor, nn
from training_loop import PAD, smoothed, train
from x_transformers import XTransformer
from x_transformers.attend import Attend


def build(shape: dict[str, Any]) -> XTransformer:
    stack = {
        "num_tokens": shape["vocab_size"],
        "max_seq_len": shape["max_length"],
        "depth": shape["num_layers"],
        "heads": shape["num_heads"],
        "attn_dim_head": shape["d_model"] // shape["num_heads"],
        "attn_flash": True,
        "attn_sublayer_dropout": shape["dropout"],
        "ff_mult": shape["d_ff"] // shape["d_model"],
        "ff_custom_activation": nn.ReLU(),
        "ff_dropout": shape["dropout"],
        "ff_sublayer_dropout": shape["dropout"],
        "emb_dropout": shape["dropout"],
    }
    both = {f"{side}_{name}": value for side in ("enc", "dec") for name, value in stack.items()}
    return XTransformer(dim=shape["d_model"], tie_token_emb=True, **both)


def attend(model: nn.Module, attention: str) -> AbstractContextManager[Any]:
    """Attend by torch's kernel, or by the library's own products."""
    for module in model.modules():
        if isinstance(module, Attend):
            module.flash = attention == "sdpa"
    return nullcontext()


def loss(model: nn.Module, source: Tensor, target: Tensor) -> Tensor:
    real = source != PAD
    memory = model.encoder(source, mask=real, return_embeddings=True)
    return smoothed(model.decoder.net(target[:, :-1], context=memory, context_mask=real), target)


if __name__ == "__main__":
    train("x-transformers", build, loss, attend)
