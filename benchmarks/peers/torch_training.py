"""torch.nn.Transformer, trained. Attention weights are dropped out only if `--attention-dropout` is given."""

import sys
from typing import Any

from torch import Tensor, nn
from torch_transformer import Translator
from training_loop import smoothed, train


def build(shape: dict[str, Any]) -> Translator:
    model = Translator(shape)
    if "--attention-dropout" not in sys.argv:
        for module in model.modules():
            if isinstance(module, nn.MultiheadAttention):
                module.dropout = 0.0
    return model


def loss(model: nn.Module, source: Tensor, target: Tensor) -> Tensor:
    return smoothed(model(source, target[:, :-1]), target)


if __name__ == "__main__":
    train("torch", build, loss)
