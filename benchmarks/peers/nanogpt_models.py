"""A language model of nanoGPT, trained. Arguments: its shape, and a checkout of nanoGPT."""

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

import torch
from random_batches import batches
from torch import Tensor, nn
from training_loop import train_on


def word_loss(model: nn.Module, tokens: Tensor, targets: Tensor) -> Tensor:
    """Return the mean cross-entropy."""
    loss: Tensor = model(tokens, targets)[1]
    return loss


def attend(model: nn.Module, attention: str) -> contextlib.AbstractContextManager[Any]:
    """Attend by torch's kernel, or by nanoGPT's own products, which it leaves to versions of torch without a kernel."""
    for module in model.modules():
        if hasattr(module, "flash"):
            module.flash = attention == "sdpa"
            if not hasattr(module, "bias"):
                length = model.config.block_size  # type: ignore[union-attr]
                module.register_buffer("bias", torch.ones(1, 1, length, length).tril())
    return contextlib.nullcontext()


def main() -> None:
    shape = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    sys.path.insert(0, sys.argv[2])
    from model import GPT, GPTConfig

    torch.manual_seed(1)
    config = GPTConfig(
        block_size=shape["length"],
        vocab_size=shape["vocab_size"],
        n_embd=shape["d_model"],
        n_layer=shape["num_layers"],
        n_head=shape["num_heads"],
        dropout=shape["dropout"],
    )
    with contextlib.redirect_stdout(sys.stderr):  # the constructor prints the number of parameters
        model = GPT(config)
    pairs = [((tokens.contiguous(), targets.contiguous()), count) for tokens, targets, count in batches(shape)]
    train_on("torch", model, pairs, word_loss, attend)


if __name__ == "__main__":
    main()
