"""The first idea of neural translation: a recurrent network with one output per input token. It fails on word order."""

from typing import Any

import torch
from torch import Tensor

from regardant.models import next_token, tokens
from regardant.models.one_to_one import OneToOneConfig

from . import reader, toy

STEPS, RATE, SEEDS = 400, 3e-3, 3
TASKS = ("the same order", "the reverse order")


def measure() -> dict[str, Any]:
    """Return the loss in nats a token over the last updates, where targets have the order of sources or the reverse."""
    return {
        "claim": "a one-to-one network fails where word order or length differs",
        "x": [0, 1],
        "names": list(TASKS),
        "steps": STEPS,
        "seeds": SEEDS,
        "chance": round(toy.CHANCE, 3),
        "series": {
            "one to one": reader.spread(lambda seed: [_loss(_one_to_one(seed), task) for task in TASKS], SEEDS),
            "Transformer": reader.spread(
                lambda seed: [_loss(toy.build(seed, num_layers=1), task) for task in TASKS], SEEDS
            ),
        },
    }


def _one_to_one(seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    config = OneToOneConfig(embedding_size=64, hidden_size=96, dropout=0.0)
    return config.build(tokens(toy.VOCAB_SIZE), tokens(toy.VOCAB_SIZE), next_token(toy.VOCAB_SIZE))


def _loss(model: torch.nn.Module, task: str) -> float:
    def batch(generator: torch.Generator) -> tuple[Tensor, Tensor]:
        source, target = toy.draw(generator)
        return (source.flip(1), target) if task == TASKS[0] else (source, target)

    return toy.train(model, steps=STEPS, rate=RATE, warmup=50, batch=batch)[-1]
