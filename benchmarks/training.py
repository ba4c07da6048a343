"""How fast models of one shape train, side by side: ours, and those of other libraries, on the same batches.

    make bench-training                          under half an hour on two cores; reads Multi30k under REGARDANT_DATA
    make bench-training BENCH="--passes 1"       a quick try, kept in runs/bench-training.json

Every peer is a process that keeps its model; passes over the same six batches are taken in turn, once with the
allocator as each comes, once with one setting of it for all. JoeyNMT's own trainer takes batches of its own. Lands in
benchmarks/results/training_speed.json.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from . import multi30k
from .bars import bar, rounded, shown
from .records import ROOT
from .shared_batches import BATCHES, SHAPE
from .side_by_side import Measurement, ending
from .workers import Peer, Row, interleave, one_torch, progress, versions_of

FOLDER = ROOT / "runs" / "bench-training"
PASSES = 5
WARM_UP = 2
"""Updates before the first pass."""

OURS = "regardant"
MARIAN = "transformers Marian"
JOEYS_TRAINER = "JoeyNMT's trainer, its own batches"


class Contender(NamedTuple):
    """A library's way to train, as a program of benchmarks/peers."""

    name: str
    program: str
    library: str | None = None
    arguments: tuple[str, ...] = ()
    precisions: tuple[str, ...] = ("float32", "bfloat16")


CONTENDERS = (
    Contender(OURS, "regardant_training", arguments=("float32",), precisions=("float32",)),
    Contender(OURS, "regardant_training", arguments=("bfloat16",), precisions=("bfloat16",)),
    Contender(MARIAN, "marian_training", "transformers"),
    Contender("torch.nn.Transformer", "torch_training"),
    Contender("torch.nn.Transformer, attention dropout too", "torch_training", arguments=("--attention-dropout",)),
    Contender("x-transformers", "x_transformers_training", "x-transformers"),
    Contender("JoeyNMT's model", "joeynmt_training", "joeynmt"),
    Contender(JOEYS_TRAINER, "joeynmt_trainer", "joeynmt", precisions=("float32",)),
)

ALLOCATORS = {
    "as it comes": {},
    "same allocator settings": {
        "GLIBC_TUNABLES": ":".join(
            [
                "glibc.malloc.mmap_threshold=4294967296",
                "glibc.malloc.trim_threshold=17179869184",
                "glibc.malloc.top_pad=268435456",
            ]
        )
    },
}
"""glibc gives large blocks back to the system after each use; the second keeps them in every process."""

Speeds = dict[str, dict[str, float]]
"""Target tokens a second by contender and precision."""


def measure(variables: dict[str, str], batches: Path, passes: int) -> dict[str, Any]:
    """All contenders in turn under one setting of the allocator."""
    with ExitStack() as stack:

        def start(program: str, arguments: tuple[str, ...], library: str | None) -> Peer:
            progress(f"starting {program} {' '.join(arguments)}")
            given = [str(batches), *arguments]
            return stack.enter_context(Peer(program, given, folder=FOLDER, library=library, variables=variables))

        rows, peers = [], []
        peak = Row("matmul", start("matmul_peak", (), None), {})
        for one in CONTENDERS:
            peers.append(start(one.program, one.arguments, one.library))
            asked = [{"updates": BATCHES, "precision": precision} for precision in one.precisions]
            rows += [Row(f"{one.name}, {request['precision']}", peers[-1], request) for request in asked]
        one_torch([peak.peer, *peers])
        for row in rows:
            row.peer.ask(**row.request | {"updates": WARM_UP})
        interleave([peak, *rows], passes)
        return {
            "rows": [as_dict(row) for row in rows],
            "peak_gflops": {
                precision: rounded(median(reading[precision] for reading in peak.readings))
                for precision in ("float32", "bfloat16")
            },
            "versions": versions_of(peers),
            "decided": [peer.about["decided"] for peer in peers if "decided" in peer.about],
        }


def as_dict(row: Row) -> dict[str, Any]:
    name, _, precision = row.name.rpartition(", ")
    return {
        "name": name,
        "precision": precision,
        "tokens_per_second": rounded(row.tokens_per_second),
        "readings": [rounded(one["tokens"] / one["seconds"]) for one in row.readings],
        "kernel_share": rounded(median(one["system_seconds"] / one["seconds"] for one in row.readings)),
        "parameters": row.peer.about["parameters"],
        "threads": row.peer.about["threads"],
    }


def complete(measured: dict[str, Any], megaflops_a_token: float) -> None:
    """Add to each row how many times as fast ours is, and the arithmetic that it gets done."""
    ours = fastest_of(speeds_of(measured)[OURS])
    for row in measured["rows"]:
        gflops = row["tokens_per_second"] * megaflops_a_token / 1000
        row["ours_is_times_as_fast"] = rounded(ours / row["tokens_per_second"])
        row["gflops"] = rounded(gflops)
        row["share_of_peak"] = rounded(gflops / measured["peak_gflops"][row["precision"]])


def speeds_of(measured: dict[str, Any]) -> Speeds:
    found: Speeds = {}
    for row in measured["rows"]:
        found.setdefault(row["name"], {})[row["precision"]] = row["tokens_per_second"]
    return found


def fastest_of(speeds: dict[str, float]) -> float:
    return max(speeds.values())


def bars(measured: dict[str, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What was promised, and whether it is kept. Ours is in the precision that it would choose: the faster one."""
    as_it_comes = measured["as it comes"]
    speeds = speeds_of(as_it_comes)
    ours, marian = fastest_of(speeds[OURS]), speeds[MARIAN]
    yield bar("times transformers Marian in bfloat16, as it comes", ours / marian["bfloat16"], 1.5, at_least=True)
    yield bar("times the fastest peer, as it comes", ours / fastest_peer(speeds), 1.35, at_least=True)
    yield bar("times transformers Marian in float32, as it comes", ours / marian["float32"], 2.3, at_least=True)
    trainer = speeds[JOEYS_TRAINER]["float32"]
    yield bar("times JoeyNMT's own trainer on its own batches", ours / trainer, 5.0, at_least=True)
    alike = speeds_of(measured["same allocator settings"])
    times = fastest_of(alike[OURS]) / fastest_peer(alike)
    yield bar("times the fastest peer, same allocator settings", times, 1.25, at_least=True)
    yield bar("times transformers Marian in bfloat16", ours / marian["bfloat16"], 1.7, at_least=True, goal=True)
    share = {row["precision"]: row["share_of_peak"] for row in as_it_comes["rows"] if row["name"] == OURS}
    yield bar("of the bfloat16 matmul peak", share["bfloat16"], 0.58, at_least=True, goal=True)


def fastest_peer(speeds: Speeds) -> float:
    return max(fastest_of(of_one) for name, of_one in speeds.items() if name != OURS)


def table(result: dict[str, Any]) -> Iterator[str]:
    """For people."""
    for allocator, measured in result["allocators"].items():
        yield f"{allocator:54}{'tokens/s':>10}{'ours / it':>11}{'GFLOP/s':>9}{'of peak':>9}{'kernel':>8}"
        for row in measured["rows"]:
            numbers = f"{row['tokens_per_second']:>10,.0f}{shown(row['ours_is_times_as_fast']):>11}"
            numbers += f"{shown(row['gflops']):>9}{row['share_of_peak']:>9.0%}{row['kernel_share']:>8.0%}"
            yield f"{row['name'] + ', ' + row['precision']:54}{numbers}"
        peaks = ", ".join(f"{precision} {shown(value)}" for precision, value in measured["peak_gflops"].items())
        yield f"matmul peak in the same run, GFLOP/s: {peaks}"
        yield ""
    yield from ending(result)


def main() -> None:
    measurement = Measurement("training", __doc__, PASSES)
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
    measurement.keep(result, table)


if __name__ == "__main__":
    main()
