"""Do efficient attentions keep quality? Encoders with each of them, after equal updates on the same toy."""

from typing import Any

from . import reader, toy

STEPS, RATE, SEEDS = 400, 2e-3, 3
KINDS: dict[str, dict[str, Any]] = {
    "scaled_dot_product": {},
    "window": {"window": 2},
    "sparse": {},
    "linear": {},
    "performer": {},
    "linformer": {},
    "lsh": {},
    "top_k": {"k": 4},
    "entmax": {},
}


def measure() -> dict[str, Any]:
    """Loss in nats a token over the last updates, with each kind in the encoder."""
    return {
        "claim": "efficient variants keep quality",
        "x": list(range(len(KINDS))),
        "names": list(KINDS),
        "steps": STEPS,
        "seeds": SEEDS,
        "chance": round(toy.CHANCE, 3),
        "series": {"loss": reader.spread(_losses, SEEDS)},
    }


def _losses(seed: int) -> list[float]:
    found = []
    for kind, settings in KINDS.items():
        encoder = {"num_layers": 1, "self_attention": {"kind": kind, **settings}}
        model = toy.build(seed, num_layers=1, max_length=32, encoder=encoder)
        found.append(toy.train(model, steps=STEPS, rate=RATE, warmup=50)[-1])
    return found
