"""Reversing sequences of eight symbols, the task of the small experiments."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from regardant.models import next_token, tokens
from regardant.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig

VOCAB_SIZE, FIRST_SYMBOL, LENGTH, BATCH_SIZE, SOS = 12, 5, 8, 32, 1
CHANCE = math.log(VOCAB_SIZE - FIRST_SYMBOL)
"""Loss in nats a token of a uniform guess among the symbols."""

EVERY = 20
"""Updates between two numbers of a curve."""


def build(seed: int, *, num_layers: int, **settings: object) -> EncoderDecoder:
    """Return a small Transformer without dropout, from the seed."""
    torch.manual_seed(seed)
    sizes: dict[str, object] = {"preset": None, "d_model": 64, "num_heads": 4, "d_ff": 128, "dropout": 0.0}
    stacks = {"encoder": {"num_layers": num_layers}, "decoder": {"num_layers": num_layers}}
    config = EncoderDecoderConfig.model_validate({**sizes, **stacks, **settings})
    return config.build(tokens(VOCAB_SIZE), tokens(VOCAB_SIZE), next_token(VOCAB_SIZE))


def draw(generator: torch.Generator, size: int = BATCH_SIZE) -> tuple[Tensor, Tensor]:
    """Return sources [size, LENGTH] and targets [size, 1 + LENGTH]."""
    source = torch.randint(FIRST_SYMBOL, VOCAB_SIZE, (size, LENGTH), generator=generator)
    return source, torch.cat([torch.full((size, 1), SOS), source.flip(1)], 1)


def mean_loss(model: torch.nn.Module, source: Tensor, target: Tensor) -> Tensor:
    """Return the mean loss in nats a token."""
    total: Tensor = model(source=source, target=target[:, :-1], targets=target[:, 1:]).total
    return total / target[:, 1:].numel()


def train(
    model: torch.nn.Module,
    *,
    steps: int,
    rate: float,
    warmup: int = 0,
    clip: float | None = None,
    batch: Callable[[torch.Generator], tuple[Tensor, Tensor]] = draw,
    watch: Callable[[], float] | None = None,
) -> list[float]:
    """Train with Adam. Return the mean loss of every EVERY updates, or `watch()` before them and after every EVERY."""
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    generator = torch.Generator().manual_seed(1)
    curve, losses = [watch()] if watch else [], []
    for step in range(1, steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = rate * (min(1.0, step / warmup) if warmup else 1.0)
        loss = mean_loss(model, *batch(generator))
        optimizer.zero_grad()
        loss.backward()
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        losses.append(loss.item())
        if step % EVERY == 0:
            curve.append(watch() if watch else sum(losses) / len(losses))
            losses = []
    return [float(f"{value:.3g}") for value in curve]


def updates(steps: int) -> list[int]:
    """Return the updates after which a curve has a number."""
    return list(range(EVERY, steps + 1, EVERY))
