"""A language model of litgpt, trained: GPT-2's layers, but with rotary positions and an untied output matrix."""

import json
import sys
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from litgpt import GPT, Config
from random_batches import batches
from torch import Tensor, nn
from training_loop import train_on


def build(shape: dict[str, Any]) -> GPT:
    """Return the model of a shape, with fresh weights."""
    return GPT(
        Config(
            block_size=shape["length"],
            padded_vocab_size=shape["vocab_size"],
            n_embd=shape["d_model"],
            n_layer=shape["num_layers"],
            n_head=shape["num_heads"],
            intermediate_size=shape["d_ff"],
            parallel_residual=False,
        )
    )


def word_loss(model: nn.Module, tokens: Tensor, targets: Tensor) -> Tensor:
    """Return the mean cross-entropy."""
    return F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())


def main() -> None:
    shape = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    torch.manual_seed(1)
    pairs = [((tokens, targets), count) for tokens, targets, count in batches(shape)]
    train_on("litgpt", build(shape), pairs, word_loss)


if __name__ == "__main__":
    main()
