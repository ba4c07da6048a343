"""Training speed of models of one shape on the same batches: Regardant compared with other libraries.

    make bench-training                          under half an hour on two cores; reads Multi30k under REGARDANT_DATA
    make bench-training BENCH="--passes 1"       a quick try, written to runs/scratch

Every row names its precision, and ratios are between rows of equal precision; "best of each" is between Regardant's
fastest row and that of the other program, whatever their precision. Every peer is a process that keeps its
model; passes over the same six batches are taken in turn, once with the allocator's default settings and once with one
setting of it for all. A library with more than one kind of attention gets the one that is faster in a short probe,
since Regardant times its own. JoeyNMT's own trainer takes batches of its own. Written to
benchmarks/results/training_speed.json.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from . import multi30k
from .bars import bar, rounded, shown
from .records import ROOT, precisions
from .shared_batches import BATCHES, SHAPE
from .side_by_side import SideBySide, Speeds, best_of_each, ending
from .workers import KEEP_FREED_MEMORY, Peer, Row, fastest, interleave, one_torch, progress, settings, versions_of

FOLDER = ROOT / "runs" / "bench-training"
PASSES = 5
WARM_UP = 2
"""Updates before the first pass."""

OURS = "regardant"
MARIAN = "transformers Marian"
JOEYS_TRAINER = "JoeyNMT's trainer, its own batches"

ATTENTIONS = {"attention": ("sdpa", "matmul")}
"""Settings of a peer: torch's fused kernel, or products of matrices."""


class Contender(NamedTuple):
    """A way to train, implemented by a program of benchmarks/peers."""

    name: str
    program: str
    library: str | None = None
    arguments: tuple[str, ...] = ()
    precisions: tuple[str, ...] = ("float32", "bfloat16")
    choices: Mapping[str, Sequence[str]] = {}
    """Values of fields of its requests, of which it gets the fastest."""


CONTENDERS = (
    Contender(OURS, "regardant_training", arguments=("float32",), precisions=("float32",)),
    Contender(OURS, "regardant_training", arguments=("bfloat16",), precisions=("bfloat16",)),
    Contender(MARIAN, "marian_training", "transformers", choices=ATTENTIONS),
    Contender("torch.nn.Transformer", "torch_training", choices=ATTENTIONS),
    Contender("torch.nn.Transformer, attention dropout too", "torch_training", arguments=("--attention-dropout",)),
    Contender("x-transformers", "x_transformers_training", "x-transformers", choices=ATTENTIONS),
    Contender("JoeyNMT's model", "joeynmt_training", "joeynmt"),
    Contender(JOEYS_TRAINER, "joeynmt_trainer", "joeynmt", precisions=("float32",)),
)

ALLOCATORS: dict[str, Mapping[str, str]] = {
    "as it comes": {},
    "same allocator settings": KEEP_FREED_MEMORY,
}
"""Environment variables of every program, by setting of the allocator."""


def measure(
    variables: Mapping[str, str], batches: Path, passes: int, contenders: Sequence[Contender] = CONTENDERS
) -> dict[str, Any]:
    """Time contenders in turn under one setting of the allocator."""
    with ExitStack() as stack:

        def start(program: str, arguments: tuple[str, ...], library: str | None) -> Peer:
            progress(f"starting {program} {' '.join(arguments)}")
            given = [str(batches), *arguments]
            return stack.enter_context(Peer(program, given, folder=FOLDER, library=library, variables=variables))

        rows, peers, probed = [], [], {}
        peak = Row("matmul", start("matmul_peak", (), None), {"precisions": precisions()})
        for one in contenders:
            measured = [precision for precision in one.precisions if precision in precisions()]
            if measured:
                peers.append(start(one.program, one.arguments, one.library))
            for precision in measured:
                asked = {"updates": BATCHES, "precision": precision}
                candidates = settings(f"{one.name}, {precision}", peers[-1], asked, one.choices)
                best, speeds = fastest(candidates, {"updates": WARM_UP}, {})
                rows.append(best)
                probed |= {name: rounded(speed) for name, speed in speeds.items()}
        one_torch([peak.peer, *peers])
        for row in rows:
            row.peer.ask(**row.request | {"updates": WARM_UP})
        interleave([peak, *rows], passes)
        return {
            "rows": [as_dict(row) for row in rows],
            "peak_gflops": {
                precision: rounded(median(reading[precision] for reading in peak.readings))
                for precision in precisions()
            },
            "versions": versions_of(peers),
            "decided": [peer.about["decided"] for peer in peers if "decided" in peer.about],
            "probe_tokens_per_second": probed,
        }


def as_dict(row: Row) -> dict[str, Any]:
    """Return a row as result files hold it."""
    precision = row.request["precision"]
    name, _, setting = row.name.partition(f", {precision}")
    return {
        "name": name,
        "precision": precision,
        **({"setting": setting.removeprefix(", ")} if setting else {}),
        "tokens_per_second": rounded(row.tokens_per_second),
        "readings": [rounded(speed) for speed in row.speeds],
        "kernel_share": rounded(median(one["system_seconds"] / one["seconds"] for one in row.readings)),
        "parameters": row.peer.about["parameters"],
        "threads": row.peer.about["threads"],
    }


def compare(measured: dict[str, Any]) -> None:
    """Add to each row the ratio of Regardant's speed in the same precision, and that of the best of each."""
    speeds = speeds_of(measured)
    best = best_of_each(speeds, OURS)
    for row in measured["rows"]:
        row["regardant_is_times_as_fast"] = rounded(speeds[OURS][row["precision"]] / row["tokens_per_second"])
        row["best_of_each"] = rounded(best[row["name"]])


def complete(measured: dict[str, Any], megaflops_a_token: float) -> None:
    """Add to each row the ratios of Regardant's speed, and the arithmetic done a second."""
    compare(measured)
    for row in measured["rows"]:
        gflops = row["tokens_per_second"] * megaflops_a_token / 1000
        row["gflops"] = rounded(gflops)
        row["share_of_peak"] = rounded(gflops / measured["peak_gflops"][row["precision"]])


def speeds_of(measured: dict[str, Any]) -> Speeds:
    """Return the target tokens a second of a result by contender and precision."""
    found: dict[str, dict[str, float]] = {}
    for row in measured["rows"]:
        found.setdefault(row["name"], {})[row["precision"]] = row["tokens_per_second"]
    return found


def bars(measured: dict[str, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the bars, each of equal precision."""
    as_it_comes = measured["as it comes"]
    speeds, alike = speeds_of(as_it_comes), speeds_of(measured["same allocator settings"])
    marian = {precision: over_fastest(speeds, precision, [MARIAN]) for precision in ("float32", "bfloat16")}
    trainer = over_fastest(speeds, "float32", [JOEYS_TRAINER])
    yield bar("bfloat16: times transformers Marian", marian["bfloat16"], 1.85, at_least=True)
    yield bar("bfloat16: times the fastest peer", over_fastest(speeds, "bfloat16"), 1.35, at_least=True)
    yield bar("float32: times transformers Marian", marian["float32"], 2.3, at_least=True)
    yield bar("float32: times JoeyNMT's own trainer on its own batches", trainer, 5.0, at_least=True)
    times = over_fastest(alike, "bfloat16")
    yield bar("bfloat16: times the fastest peer, same allocator settings", times, 1.3, at_least=True)
    yield bar("bfloat16: times transformers Marian", marian["bfloat16"], 2.1, at_least=True, goal=True)
    share = {row["precision"]: row["share_of_peak"] for row in as_it_comes["rows"] if row["name"] == OURS}
    yield bar("bfloat16: share of the matmul peak", share.get("bfloat16"), 0.58, at_least=True, goal=True)


def over_fastest(speeds: Speeds, precision: str, names: Iterable[str] | None = None) -> float | None:
    """Return Regardant's speed over that of the fastest of the named programs, by default of all others.

    None if the precision was not measured.
    """
    if precision not in speeds[OURS]:
        return None
    others = speeds.keys() - {OURS} if names is None else names
    return speeds[OURS][precision] / max(speeds[name][precision] for name in others if precision in speeds[name])


def table(result: dict[str, Any]) -> Iterator[str]:
    """Format a result for the terminal."""
    for allocator, measured in result["allocators"].items():
        yield from rows(measured, allocator)
    yield from ending(result)


HEADINGS = f"{'tokens/s':>10}{'regardant / row':>16}{'best of each':>14}"


def ratios(row: dict[str, Any]) -> str:
    """Format the columns of HEADINGS."""
    numbers = (shown(row[name]) for name in ("regardant_is_times_as_fast", "best_of_each"))
    return "{:>10,.0f}{:>16}{:>14}".format(row["tokens_per_second"], *numbers)


def rows(measured: dict[str, Any], title: str = "training") -> Iterator[str]:
    """Format the rows of contenders under a title, and the peak."""
    yield f"{title:54}{HEADINGS}{'GFLOP/s':>9}{'of peak':>9}{'kernel':>8}"
    for row in measured["rows"]:
        numbers = f"{shown(row['gflops']):>9}{row['share_of_peak']:>9.0%}{row['kernel_share']:>8.0%}"
        yield f"{row['name'] + ', ' + row['precision']:54}{ratios(row)}{numbers}"
    peaks = ", ".join(f"{precision} {shown(value)}" for precision, value in measured["peak_gflops"].items())
    yield f"matmul peak in the same run, GFLOP/s: {peaks}"
    yield ""


def main() -> None:
    measurement = SideBySide("training", __doc__, PASSES)
    batches = FOLDER / "batches.json"
    data = multi30k.write_batches(batches)
    measured, versions = {}, {}
    for allocator, variables in ALLOCATORS.items():
        measured[allocator] = measure(variables, batches, measurement.passes)
        versions = measured[allocator].pop("versions")
        complete(measured[allocator], data["megaflops_a_target_token"])
    result = {
        "shape": SHAPE,
        "data": data,
        "versions": versions,
        "allocators": measured,
        "bars": list(bars(measured)),
    }
    measurement.finish(result, table)


if __name__ == "__main__":
    main()
