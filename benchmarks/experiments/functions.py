"""Which functions of sequences does attention fit? Yun et al. 2020, https://arxiv.org/abs/1912.10077.

The theorem is of continuous functions on a compact domain: permutation-equivariant ones without positions, any with
them. It says that weights exist, not that training finds them. Here: small models, functions of numbers in [0, 1].
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from regardant.models.encoder_decoder import EncoderDecoderConfig
from regardant.models.stacks import Encoder
from regardant.models.vectors import Vectors
from regardant.positions.sinusoidal import sinusoids

from . import reader

LENGTH, STEPS, RATE, SEEDS, SIZE = 6, 600, 2e-3, 3, 64

FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "mean of all (equivariant)": lambda x: x.mean(1, keepdim=True).expand_as(x),
    "largest of all (equivariant)": lambda x: x.amax(1, keepdim=True).expand_as(x),
    "the one before (needs positions)": lambda x: x.roll(1, 1),
    "sorted (needs positions)": lambda x: x.sort(1).values,
    "step at one half (not continuous)": lambda x: (x > 0.5).float(),
}


def measure() -> dict[str, Any]:
    """Return the root mean squared error over the standard deviation of the function's values; their mean has 1."""
    return {
        "claim": "Transformers approximate any sequence-to-sequence function",
        "x": list(range(len(FUNCTIONS))),
        "names": list(FUNCTIONS),
        "steps": STEPS,
        "seeds": SEEDS,
        "series": {
            name: reader.spread(lambda seed, placed=placed: _errors(seed, placed=placed), SEEDS)
            for name, placed in (("with positions", True), ("without", False))
        },
    }


def _errors(seed: int, *, placed: bool) -> list[float]:
    return [_error(function, seed, placed=placed) for function in FUNCTIONS.values()]


def _error(function: Callable[[Tensor], Tensor], seed: int, *, placed: bool) -> float:
    torch.manual_seed(seed)
    config = EncoderDecoderConfig.model_validate(
        {"preset": None, "d_model": SIZE, "num_heads": 4, "d_ff": 128, "dropout": 0.0, "positions": {"kind": "none"}}
    )
    encoder = Encoder(config, config.encoder, config.build_positions(LENGTH, causal=False), LENGTH)
    model = nn.ModuleList([nn.Linear(1, SIZE), encoder, nn.Linear(SIZE, 1)])
    codes = sinusoids(torch.arange(LENGTH), SIZE) if placed else torch.zeros(LENGTH, SIZE)

    def answer(x: Tensor) -> Tensor:
        found: Tensor = model[2](encoder(Vectors(model[0](x[..., None]) + codes)).values)[..., 0]
        return found

    optimizer, generator = torch.optim.Adam(model.parameters(), lr=RATE), torch.Generator().manual_seed(1)
    for _ in range(STEPS):
        x = torch.rand(64, LENGTH, generator=generator)
        loss = (answer(x) - function(x)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        x = torch.rand(1000, LENGTH, generator=torch.Generator().manual_seed(9))
        wanted = function(x)
        return float((answer(x) - wanted).square().mean().sqrt() / wanted.std())
