"""Does a Transformer need more data than recurrent and convolutional models? Each is trained on more
and more sequences, for an equal number of updates.

All three attend to the source. The convolutional one is that of Gehring et al. 2017, https://arxiv.org/abs/1705.03122:
gated convolutions in the place of self-attention, in encoder and decoder.
"""

from typing import Any

import torch
from torch import Tensor

from regardant.models import Model, next_token, tokens
from regardant.models.recurrent import RecurrentConfig

from . import toy
from .reader import spread

SIZES, STEPS, RATE, SEEDS, UNSEEN = [10, 30, 100, 300, 1000], 400, 2e-3, 3, 500


def measure() -> dict[str, Any]:
    """Return the loss in nats a token on unseen sequences, by number of training sequences."""
    return {
        "claim": "Transformers need more data than recurrent and convolutional models",
        "x": SIZES,
        "steps": STEPS,
        "seeds": SEEDS,
        "chance": round(toy.CHANCE, 3),
        "parameters": {name: sum(p.numel() for p in build(0).parameters()) for name, build in MODELS.items()},
        "series": {name: spread(lambda seed, name=name: _losses(name, seed), SEEDS) for name in MODELS},
    }


def _transformer(seed: int) -> Model:
    return toy.build(seed, num_layers=2)


def _recurrent(seed: int) -> Model:
    torch.manual_seed(seed)
    # About as many parameters as the Transformer.
    config = RecurrentConfig.model_validate({"embedding_size": 64, "hidden_size": 96, "dropout": 0.0})
    return config.build(tokens(toy.VOCAB_SIZE), tokens(toy.VOCAB_SIZE), next_token(toy.VOCAB_SIZE))


def _convolutional(seed: int) -> Model:
    mixer = {"kind": "convolution", "kernel": 3}
    stacks = {side: {"num_layers": 2, "self_attention": mixer} for side in ("encoder", "decoder")}
    return toy.build(seed, num_layers=2, d_ff=64, **stacks)  # about as many parameters as the Transformer


MODELS = {
    "transformer": _transformer,
    "gru with attention": _recurrent,
    "convolutions with attention": _convolutional,
}


def _losses(name: str, seed: int) -> list[float]:
    return [_loss_on_unseen(MODELS[name](seed), size, seed) for size in SIZES]


def _loss_on_unseen(model: Model, size: int, seed: int) -> float:
    seen = toy.draw(torch.Generator().manual_seed(100 + seed), size)

    def batch(generator: torch.Generator) -> tuple[Tensor, Tensor]:
        rows = torch.randint(size, (toy.BATCH_SIZE,), generator=generator)
        return seen[0][rows], seen[1][rows]

    toy.train(model, steps=STEPS, rate=RATE, warmup=100, batch=batch)
    with torch.no_grad():
        return float(toy.mean_loss(model, *toy.draw(torch.Generator().manual_seed(7), UNSEEN)))
