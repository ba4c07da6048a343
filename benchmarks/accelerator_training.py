"""Training speed of `base` and `big` on an accelerator, compared with transformers and with the speed that is planned.

    make bench-accelerator-training                         reads Multi30k under REGARDANT_DATA
    make bench-accelerator-training BENCH="--passes 1"      a quick try, written to runs/scratch

Prints a line and ends if there is no accelerator. Training is in bfloat16 on batches of 25,000 target tokens (Vaswani
et al. 2017), compared with the accelerator's own matmul rate in the same run. Both trainers get batches of Regardant's:
the batches of other benchmarks are sorted by targets alone, and a third of so large a source block would be padding.
Passes are taken in turn.
Written to benchmarks/results/accelerator-training_speed.json.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from statistics import median
from typing import Any

import numpy as np
import torch

from regardant import config as configuration
from regardant.data.batching import plan_batches
from regardant.planning.scale import DEVICES, cost, workload
from regardant.tasks.translation.config import TranslationConfig

from . import multi30k
from .bars import bar, rounded, shown
from .decoding import label
from .records import ROOT
from .shared_batches import BATCHES, SHAPE, Lengths
from .side_by_side import SideBySide, ending
from .training import MARIAN, OURS
from .workers import Peer, Row, interleave, one_torch, progress, versions_of

FOLDER = ROOT / "runs" / "bench-accelerator"
PASSES = 5
WARM_UP = 2
"""Passes before the first timed one; Triton compiles in them."""
BATCH_TOKENS = 25_000

SHAPES = {
    "base": SHAPE | {"d_model": 512, "num_layers": 6, "num_heads": 8, "d_ff": 2048, "vocab_size": 32_000},
    "big": SHAPE | {"d_model": 1024, "num_layers": 6, "num_heads": 16, "d_ff": 4096, "vocab_size": 32_000},
}
"""Sizes of the paper. Regardant is pre-norm and transformers post-norm. The text uses 8,000 of the 32,000 tokens."""

SPEED_OFF_BY = 0.25
"""Largest relative difference between the speed of a plan and that measured."""


def peer(stack: ExitStack, program: str, *arguments: str, library: str | None = None) -> Peer:
    """Start a peer that sees the accelerator; it ends when the stack closes."""
    progress(f"starting {program}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    return stack.enter_context(Peer(program, arguments, folder=FOLDER, library=library, accelerator=True))


def train(name: str, passes: int) -> dict[str, Any]:
    """Time both trainers in turn on the same batches, and the accelerator's matmul rate."""
    path, shape = FOLDER / "batches.json", SHAPES[name]
    data = multi30k.write_batches(path, shape, BATCH_TOKENS, cut=planned_batches)
    with ExitStack() as stack:
        asked = {"updates": BATCHES, "precision": "bfloat16"}
        peak = Row("matmul", peer(stack, "matmul_peak"), {"precisions": ["bfloat16"]})
        ours = Row(OURS, peer(stack, "regardant_training", str(path), "bfloat16"), asked)
        marian = Row(MARIAN, peer(stack, "marian_training", str(path), library="transformers"), asked)
        rows = [ours, marian]
        one_torch(row.peer for row in (peak, *rows))
        for row in rows * WARM_UP:
            row.read()
        interleave([peak, *rows], passes)
        gigaflops = median(reading["bfloat16"] for reading in peak.readings)
        needed = data["megaflops_a_target_token"] / 1000
        return {
            "shape": shape,
            "data": data,
            "peak_gflops": rounded(gigaflops),
            "planned_tokens_per_second": planned(name, data),
            "rows": [
                {
                    "name": row.name,
                    "tokens_per_second": rounded(row.tokens_per_second),
                    "readings": [rounded(one["tokens"] / one["seconds"]) for one in row.readings],
                    "share_of_peak": rounded(row.tokens_per_second * needed / gigaflops),
                    "peak_gibibytes": round(max(one["peak_bytes"] for one in row.readings) / 2**30, 2),
                    "precision": "bfloat16",
                    "regardant_is_times_as_fast": rounded(ours.tokens_per_second / row.tokens_per_second),
                }
                for row in rows
            ],
            "versions": versions_of([ours.peer, marian.peer]),
        }


def planned_batches(source_lengths: Lengths, target_lengths: Lengths, batch_tokens: int) -> list[list[int]]:
    """Return the batches of an epoch as Regardant's trainer plans them, those of short targets first."""
    sources, targets = np.array(source_lengths), np.array(target_lengths)
    batches = plan_batches(sources, targets, batch_tokens=batch_tokens, seed=1, epoch=0)
    return sorted((batch.tolist() for batch in batches), key=lambda batch: max(targets[batch]))


def planned(name: str, data: dict[str, Any]) -> float | None:
    """Return the target tokens a second that `plan --devices 1` predicts for these batches, or None if it does not know
    the accelerator."""
    known = [device for kind, device in DEVICES.items() if kind.upper() in torch.cuda.get_device_name()]
    if not known:
        return None
    sizes = f"model={{preset: {name}, norm: pre, max_length: {SHAPE['max_length']}}}"
    given = [*multi30k.settings(), sizes, f"training.batch_tokens={BATCH_TOKENS}"]
    config = configuration.load(TranslationConfig, configuration.recipe("translation"), given, origin="translation")
    load = workload(config, SHAPES[name]["vocab_size"], round(data["target_tokens"] / data["pairs"]))
    return rounded(cost(load, known[0], 1, "ddp").tokens_per_second)


def bars(trained: dict[str, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the goals of the measured speed and the bars of the planned speed."""
    for name, measured in trained.items():
        ours = next(row for row in measured["rows"] if row["name"] == OURS)
        share = ours["share_of_peak"]
        yield bar(f"{name}, bfloat16: share of the matmul peak", share, 0.5, at_least=True, goal=True)
        planned = measured["planned_tokens_per_second"]
        off = None if planned is None else abs(planned / ours["tokens_per_second"] - 1)
        yield bar(f"{name}, bfloat16: relative error of the planned speed", off, SPEED_OFF_BY)


def table(result: dict[str, Any]) -> Iterator[str]:
    """Format a result for the terminal."""
    for name, measured in result["training"].items():
        yield f"{'training ' + name:40}{'tokens/s':>12}{'regardant / row':>16}{'of peak':>9}{'GiB':>7}"
        for row in measured["rows"]:
            times, entry = shown(row["regardant_is_times_as_fast"]), label(row["name"], row["precision"])
            numbers = f"{row['tokens_per_second']:>12,.0f}{times:>16}{row['share_of_peak']:>9.0%}"
            yield f"{entry:40}{numbers}{row['peak_gibibytes']:>7.1f}"
        yield ""
    yield from ending(result)


def main() -> None:
    if not torch.cuda.is_available():
        print("no accelerator here: nothing is measured")
        return
    measurement = SideBySide("accelerator-training", __doc__, PASSES)
    trained = {name: train(name, measurement.passes) for name in SHAPES}
    versions: dict[str, str] = {}
    for measured in trained.values():
        versions |= measured.pop("versions")
    measurement.finish({"training": trained, "versions": versions, "bars": list(bars(trained))}, table)


if __name__ == "__main__":
    main()
