"""Do efficient attentions keep quality? One layer of each looks for a symbol at the distance that the last token gives.

Exact attention finds the symbol at any distance (`varying_distance`). The accuracy of an efficient attention by
distance shows where it leaves out or approximates keys.
"""

from functools import partial
from typing import Any

from . import reader, varying_distance

LENGTH, STEPS, SEEDS = 32, 1000, 3
DISTANCES = [1, 2, 4, 8, 16, 31]
KINDS: dict[str, dict[str, Any]] = {
    "scaled_dot_product": {},
    "window": {"window": 4},
    "sparse": {"window": 2, "stride": 8, "num_strides": 4},
    "linear": {},
    "performer": {"num_features": 32},
    "linformer": {"rank": 8, "max_length": LENGTH},
    "lsh": {"num_buckets": 4, "reach": 8},
    "top_k": {"k": 4},
    "entmax": {},
}
"""Settings by kind. Of 32 keys the last query reads 5 with window, 7 with sparse, 4 with top_k, up to 14 on average
with lsh (two rounds of four buckets leave 7/16 of random keys), and all with the other kinds."""


def measure() -> dict[str, Any]:
    """Return the accuracy by distance for one layer of each kind."""
    return {
        "claim": "efficient variants keep quality",
        "x": DISTANCES,
        "length": LENGTH,
        "steps": STEPS,
        "seeds": SEEDS,
        "chance": 1 / varying_distance.SYMBOLS,
        "series": {
            kind: reader.spread(
                partial(varying_distance.accuracies, {"kind": kind, **settings}, LENGTH, DISTANCES, STEPS), SEEDS
            )
            for kind, settings in KINDS.items()
        },
    }
