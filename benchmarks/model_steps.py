"""Training speed of single-stack models compared with transformers: language models at two contexts, BERT and ViT.
Language models are also compared with litgpt, and with nanoGPT if a checkout of it is given.

    make bench-models NANOGPT=/path/to/nanoGPT    some 14 minutes on two cores
    make bench-models BENCH="--passes 1"          a quick try, written to runs/scratch

All libraries train models of the same sizes on the same random batches, without dropout, each in a process that keeps
its model and has the same allocator settings; passes over them are taken in turn. The other libraries get the kind of
attention that is faster in a short probe, since Regardant times its own. Ratios are between rows of equal precision;
"best of each" is between the fastest precisions of Regardant and of the fastest other library. Written to
benchmarks/results/models_speed.json.
"""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from .bars import bar, rounded, shown
from .records import ROOT, commit_of, precisions
from .side_by_side import SideBySide, best_of_each, ending
from .training import ATTENTIONS
from .workers import Peer, Row, fastest, interleave, one_torch, progress, settings, versions_of

FOLDER = ROOT / "runs" / "bench-models"
PASSES = 5
UPDATES, WARM_UP = 4, 2

OURS, THEIRS = "regardant", "transformers"
LIBRARIES = (OURS, THEIRS, "litgpt", "nanoGPT")

SMALL = {"d_model": 384, "num_layers": 6, "d_ff": 1536, "vocab_size": 8000, "dropout": 0.0}

SHAPES: dict[str, dict[str, Any]] = {
    "GPT-2, context 256": {"kind": "language model", "length": 256, "rows": 16, "num_heads": 6, **SMALL},
    "GPT-2, context 1,024": {"kind": "language model", "length": 1024, "rows": 4, "num_heads": 6, **SMALL},
    "BERT, 128 tokens": {"kind": "masked", "length": 128, "rows": 32, "num_heads": 12, **SMALL},
    "ViT, 64 patches": {
        **{"kind": "image", "length": 64, "rows": 64, "num_heads": 3, "patch_size": 8},
        **{"d_model": 192, "num_layers": 6, "d_ff": 768, "dropout": 0.0},
    },
}
"""Models by name: their sizes, and a batch of `rows` sequences of `length` elements."""

LEAST = {name: 1.3 if name.startswith("GPT-2") else 1.2 for name in SHAPES}
"""Least ratio of Regardant's speed to that of the fastest other library, in equal precision."""


def measure(name: str, passes: int) -> dict[str, Any]:
    """Time all libraries on a model in the precisions of this processor."""
    path = FOLDER / f"{SHAPES[name]['kind'].replace(' ', '-')}-{SHAPES[name]['length']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(SHAPES[name]), encoding="utf-8")
    with ExitStack() as stack:
        progress(name)
        theirs = {library: stack.enter_context(peer) for library, peer in others(SHAPES[name]["kind"], path)}
        ours = {
            precision: stack.enter_context(Peer("regardant_models", [str(path), precision], folder=FOLDER))
            for precision in precisions()
        }
        one_torch([*theirs.values(), *ours.values()])
        rows, probed = {}, {}
        for precision in ours:
            asked = {"updates": UPDATES, "precision": precision}
            rows[OURS, precision] = Row(f"{OURS}, {precision}", ours[precision], asked)
            for library, peer in theirs.items():
                candidates = settings(f"{library}, {precision}", peer, asked, ATTENTIONS)
                rows[library, precision], speeds = fastest(candidates, {"updates": WARM_UP}, {})
                probed |= {setting: rounded(speed) for setting, speed in speeds.items()}
        for row in rows.values():
            row.peer.ask(**row.request | {"updates": WARM_UP})
        interleave(rows.values(), passes)
        return {
            "shape": SHAPES[name],
            "parameters": {
                library: peer.about["parameters"] for library, peer in {OURS: ours["float32"], **theirs}.items()
            },
            "targets_per_second": {
                precision: {library: rounded(rows[library, precision].tokens_per_second) for library in (OURS, *theirs)}
                for precision in ours
            },
            "readings": {row.name: [rounded(speed) for speed in row.speeds] for row in rows.values()},
            "probe_targets_per_second": probed,
            "versions": versions_of([*theirs.values(), *ours.values()]),
        }


def others(kind: str, shape: Path) -> Iterator[tuple[str, Peer]]:
    """Start the other libraries that have models of a kind."""
    yield THEIRS, Peer("transformers_models", [str(shape)], folder=FOLDER, library=THEIRS)
    if kind == "language model":
        yield "litgpt", Peer("litgpt_models", [str(shape)], folder=FOLDER, library="litgpt")
        if checkout := os.environ.get("NANOGPT"):
            yield "nanoGPT", Peer("nanogpt_models", [str(shape), checkout], folder=FOLDER)


def bars(models: dict[str, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the bars, each of equal precision."""
    for name, found in models.items():
        for precision, speeds in found["targets_per_second"].items():
            fastest, speed = fastest_other(speeds)
            yield bar(f"{name}, {precision}: times {fastest}", speeds[OURS] / speed, LEAST[name], at_least=True)


def fastest_other(speeds: dict[str, float]) -> tuple[str, float]:
    """Return the fastest other library and its speed."""
    return max(((library, speed) for library, speed in speeds.items() if library != OURS), key=lambda one: one[1])


def best_over_others(found: dict[str, dict[str, float]]) -> float:
    """Return the speed of Regardant in its fastest precision over that of the fastest other library in its own, given
    speeds by precision and library."""
    by_library: dict[str, dict[str, float]] = {}
    for precision, speeds in found.items():
        for library, speed in speeds.items():
            by_library.setdefault(library, {})[precision] = speed
    return min(ratio for library, ratio in best_of_each(by_library, OURS).items() if library != OURS)


def cells(speeds: dict[str, float]) -> list[str]:
    """Format the speeds of all libraries, a dash for one without such a model."""
    return [f"{speeds[library]:,.0f}" if library in speeds else "–" for library in LIBRARIES]


def table(result: dict[str, Any]) -> Iterator[str]:
    """Format a result for the terminal."""
    yield f"{'targets a second':36}{''.join(f'{library:>14}' for library in LIBRARIES)}{'ratio':>8}{'best of each':>14}"
    for name, found in result["models"].items():
        best = shown(best_over_others(found["targets_per_second"]))
        for precision, speeds in found["targets_per_second"].items():
            ratio = shown(speeds[OURS] / fastest_other(speeds)[1])
            yield f"{f'{name}, {precision}':36}{''.join(f'{cell:>14}' for cell in cells(speeds))}{ratio:>8}{best:>14}"
    yield from ending(result)


def main() -> None:
    checkout = os.environ.get("NANOGPT")
    measurement = SideBySide("models", __doc__, PASSES, "NANOGPT=/path/to/nanoGPT" if checkout else "")
    models = {name: measure(name, measurement.passes) for name in SHAPES}
    versions = {name: version for one in models.values() for name, version in one.pop("versions").items()}
    if checkout:
        versions["nanoGPT"] = commit_of(Path(checkout))
    measurement.finish({"versions": versions, "models": models, "bars": list(bars(models))}, table)


if __name__ == "__main__":
    main()
