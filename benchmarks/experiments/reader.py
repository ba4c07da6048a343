"""A small encoder that classifies every position, trained by the experiments on relations between tokens."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regardant.inspection import capture
from regardant.layers.recurrent import RecurrentEncoder
from regardant.models.encoder_decoder import EncoderDecoderConfig
from regardant.models.stacks import Encoder
from regardant.models.transformer import initialise
from regardant.models.vectors import Vectors

Batch = Callable[[torch.Generator], tuple[Tensor, Tensor]]
"""Function that returns tokens [B, T] and answers [B, T]; positions with answer -1 are not predicted."""


class Reader(nn.Module):
    """Embeddings with positions, an encoder, and a linear classifier of each position."""

    def __init__(self, seed: int, *, vocab_size: int, classes: int, max_length: int, **settings: Any) -> None:
        super().__init__()
        torch.manual_seed(seed)
        sizes: dict[str, Any] = {"preset": None, "d_model": 64, "num_heads": 4, "d_ff": 128, "dropout": 0.0}
        config = EncoderDecoderConfig.model_validate(
            {**sizes, "max_length": max_length, "tie_embeddings": "none", **settings}
        )
        self.positions = config.build_positions(max_length, causal=False)
        self.embedding = nn.Embedding(vocab_size, config.d_model - self.positions.concatenated)
        self.encoder = Encoder(config, config.encoder, self.positions, max_length)
        self.answer = nn.Linear(config.d_model, classes)
        initialise(self)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits [B, T, C]."""
        scores: Tensor = self.answer(self.read(tokens))
        return scores

    def read(self, tokens: Tensor) -> Tensor:
        """Return the vectors of the encoder [B, T, M]."""
        x = self.embedding(tokens)
        if self.positions.acts_on == "input":
            self.positions.reach(tokens.shape[1])
            codes = self.positions.embed(torch.arange(tokens.shape[1]))
            x = torch.cat([x, codes.expand(len(x), -1, -1)], -1) if self.positions.concatenated else x + codes
        return self.encoder(Vectors(x)).values


class RecurrentReader(nn.Module):
    """A bidirectional GRU in place of the encoder."""

    def __init__(self, seed: int, *, vocab_size: int, classes: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.embedding = nn.Embedding(vocab_size, 64)
        self.encoder = RecurrentEncoder("gru", 64, 64, 1, 0.0, bidirectional=True, combine="concatenate")
        self.answer = nn.Linear(64, classes)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits [B, T, C]."""
        scores: Tensor = self.answer(self.read(tokens))
        return scores

    def read(self, tokens: Tensor) -> Tensor:
        """Return the states of both directions [B, T, M]."""
        states: Tensor = self.encoder.read(self.embedding(tokens), None)[0]
        return states


def fit(model: nn.Module, batch: Batch, *, steps: int, rate: float, warmup: int = 50) -> None:
    """Train with Adam and linear warm-up on fresh batches."""
    optimizer, generator = torch.optim.Adam(model.parameters(), lr=rate), torch.Generator().manual_seed(1)
    for step in range(1, steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, step / warmup)
        tokens, answers = batch(generator)
        loss = F.cross_entropy(model(tokens).flatten(0, 1), answers.flatten(), ignore_index=-1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def accuracy(model: nn.Module, tokens: Tensor, answers: Tensor) -> float:
    """Return the share of right answers among the positions with one."""
    asked = answers >= 0
    return float((model(tokens).argmax(-1) == answers)[asked].float().mean())


@torch.no_grad()
def attention_weights(model: Reader, tokens: Tensor) -> Tensor:
    """Return the weights of all layers' self-attention, [L, B, H, T, T]."""
    with capture(model, "*self_attention.weights") as records:
        model(tokens)
    return torch.stack([records[place][0] for place in records])


def spread(measure: Callable[[int], list[float]], seeds: int) -> dict[str, list[float]]:
    """Return median, least and largest value over seeds, point by point."""
    return _summary([measure(seed) for seed in range(seeds)])


def spreads(measure: Callable[[int], dict[str, list[float]]], seeds: int) -> dict[str, dict[str, list[float]]]:
    """Return the spread of each series that `measure` returns for a seed. Each seed is measured once."""
    found = [measure(seed) for seed in range(seeds)]
    return {name: _summary([series[name] for series in found]) for name in found[0]}


def _summary(values: list[list[float]]) -> dict[str, list[float]]:
    found = torch.tensor(values, dtype=torch.float64)
    # torch.median returns the lower of two middle values; quantile returns their mean.
    parts = {"median": found.quantile(0.5, dim=0), "least": found.amin(0), "largest": found.amax(0)}
    return {name: [float(f"{value:.4g}") for value in points.tolist()] for name, points in parts.items()}
