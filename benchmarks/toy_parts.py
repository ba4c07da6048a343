"""What fails on the toy tasks: each trained briefly as it is, without positions, and with a convolution for attention.

    .venv/bin/python -m benchmarks.toy_parts

All have the sizes of the recipe `sort` and 400 updates. Sequences have at most eight symbols, or three pairs or digits.
Scores are shares of exact answers on validation sequences.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from regardant import config, run
from regardant.tasks import load_recipe
from regardant.training.reporting import read_events

from .records import Measurement, arguments

DATA = {
    "copy": {"kind": "copy", "max_length": 8},
    "reverse": {"kind": "reverse", "max_length": 8},
    "sort": {"kind": "sort", "max_length": 8},
    "recall": {"kind": "recall", "symbols": 6, "max_length": 3},
    "addition": {"kind": "addition", "max_length": 3},
    "variable-distance": {"kind": "variable_distance", "max_length": 8},
}

PARTS = {
    "attention": ["model.positions.kind=shaw"],
    "no positions": ["model.positions.kind=none"],
    "convolution": [
        "model.encoder.self_attention={kind: convolution, kernel: 3}",
        "model.decoder.self_attention={kind: convolution, kernel: 3}",
    ],
}
"""Changes of the model. The decoder always attends to the source."""

UPDATES = 400

TRAINING = [
    f"training.max_updates={UPDATES}",
    f"training.validate_every={UPDATES}",
    "training.batch_tokens=1024",
    "training.precision=float32",
    "training.attention_kernel=sdpa",
    "training.processes=1",
]


def exact_match(task: str, part: str, *more: str) -> float:
    """Return the share of exact answers on validation sequences at the end of a training, with more overrides."""
    sizes = {"validation_size": 300, "test_size": 1}
    recipe = load_recipe({**config.recipe("sort"), "data": DATA[task] | sizes}, [*PARTS[part], *TRAINING, *more])
    with tempfile.TemporaryDirectory() as folder:
        run.train(recipe, Path(folder) / "run", lambda line: None)
        events = read_events(Path(folder) / "run" / "metrics.jsonl")
    return [float(event["exact_match"]) for event in events if event["event"] == "validation"][-1]


def table(found: dict[str, dict[str, float]]) -> str:
    """Return the scores as a table for docs/using.md."""
    lines = [f"| recipe | {' | '.join(PARTS)} |", "|---|" + "--:|" * len(PARTS)]
    for task, scores in found.items():
        lines.append(f"| `{task}` | {' | '.join(f'{scores[part]:.3f}' for part in PARTS)} |")
    return "\n".join(lines)


def main(given: Sequence[str] | None = None) -> None:
    measurement = Measurement(scratch=arguments(__doc__).parse_args(given).scratch)
    found: dict[str, dict[str, float]] = {}
    for task in DATA:
        found[task] = {part: exact_match(task, part) for part in PARTS}
        print(table({task: found[task]}).splitlines()[-1], flush=True)
    print(table(found))
    measurement.keep("toy-parts", {"updates": UPDATES, "exact_match": found})


if __name__ == "__main__":
    main()
