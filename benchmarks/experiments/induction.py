"""Induction heads: a head that finds the earlier occurrence of a token and attends to the token after it.

Olsson et al. 2022, https://arxiv.org/abs/2209.11895. Sequences are random and then repeat, each with a period of its
own, so only the repetition can be predicted, and no head finds it at a fixed distance. The best head is ablated to
measure its effect.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regardant.inspection import ScaleHead, capture, intervene
from regardant.inspection.induction import induction_scores
from regardant.models import next_token, tokens
from regardant.models.decoder_only import DecoderOnlyConfig

SYMBOLS, HALF, STEPS, RATE, SEEDS, LAYERS = 24, 16, 800, 2e-3, 3, 2


def measure() -> dict[str, Any]:
    """Return the best induction score, the loss on the second half and that without the head, by number of layers."""
    return {
        "claim": "attention heads form circuits: induction needs two layers",
        "x": [1, 2],
        "steps": STEPS,
        "seeds": SEEDS,
        "chance": float(torch.tensor(SYMBOLS).log()),
        "series": {
            name: _over_seeds(number)
            for number, name in enumerate(("best induction score", "loss", "loss without that head"))
        },
    }


def _over_seeds(number: int) -> dict[str, list[float]]:
    from .reader import spread

    return spread(lambda seed: [_trained(seed, layers)[number] for layers in (1, LAYERS)], SEEDS)


_FOUND: dict[tuple[int, int], tuple[float, float, float]] = {}


def draw(generator: torch.Generator, size: int = 32) -> Tensor:
    """Return sequences [B, 2 HALF] that repeat after HALF / 2 to HALF tokens: no fixed distance finds the token."""
    periods = torch.randint(HALF // 2, HALF + 1, (size, 1), generator=generator)
    first = torch.randint(SYMBOLS, (size, HALF), generator=generator)
    return first.gather(1, torch.arange(2 * HALF)[None] % periods)


def _trained(seed: int, layers: int) -> tuple[float, float, float]:
    if (seed, layers) in _FOUND:
        return _FOUND[seed, layers]
    torch.manual_seed(seed)
    config = DecoderOnlyConfig.model_validate(
        {
            "d_model": 64,
            "num_heads": 4,
            "d_ff": 128,
            "num_layers": layers,
            "max_length": 64,
            "positions": {"kind": "rotary"},
        }
    )
    model = config.build(tokens(SYMBOLS), next_token(SYMBOLS))
    optimizer, generator = torch.optim.Adam(model.parameters(), lr=RATE), torch.Generator().manual_seed(1)
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1.0, (step + 1) / 50)
        loss = second_half_loss(model, draw(generator))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    test = draw(torch.Generator().manual_seed(9), 100)
    with torch.no_grad():
        with capture(model, "*self_attention.weights") as records:
            loss = float(second_half_loss(model, test))
        scores = {
            place: induction_scores(records[place][0], test)
            for place in records
            if place.endswith("self_attention.weights")
        }
        place = max(scores, key=lambda one: float(scores[one].max()))
        head = int(scores[place].argmax())
        with intervene(model, ScaleHead(place.removesuffix(".weights"), head=head)):
            without = float(second_half_loss(model, test))
    _FOUND[seed, layers] = float(scores[place].max()), loss, without
    return _FOUND[seed, layers]


def second_half_loss(model: torch.nn.Module, text: Tensor) -> Tensor:
    """Return the loss in nats a token of the second half, whose tokens repeat earlier ones."""
    logits = model.scores(text[:, :-1])
    return F.cross_entropy(logits[:, HALF:].flatten(0, 1), text[:, HALF + 1 :].flatten())
