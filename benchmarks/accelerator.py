"""What an accelerator gets done: training `base` and `big`, and translating, beside transformers on the same one.

    make bench-accelerator                          reads Multi30k under REGARDANT_DATA
    make bench-accelerator BENCH="--passes 1"       a quick try, kept in runs/bench-accelerator.json

Says so and ends where there is none. Training in bfloat16 on batches of 25,000 target tokens (Vaswani et al. 2017),
held to the rate of the accelerator's own products in the same run; translating with the weights and the sentences of
bench-decoding. Passes are taken in turn. Lands in benchmarks/results/accelerator_speed.json.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from statistics import median
from typing import Any

import torch

from regardant.data.tokenizers import Tokenizers

from . import decoding, multi30k
from .bars import bar, rounded, shown
from .records import ROOT
from .shared_batches import BATCHES, SHAPE
from .side_by_side import Measurement, ending
from .training import MARIAN, OURS
from .workers import Peer, Row, interleave, one_torch, progress, versions_of

FOLDER = ROOT / "runs" / "bench-accelerator"
PASSES = 5
WARM_UP = 2
"""Passes before the first that counts."""
BATCH_TOKENS = 25_000

SHAPES = {
    "base": SHAPE | {"d_model": 512, "num_layers": 6, "num_heads": 8, "d_ff": 2048, "vocab_size": 32_000},
    "big": SHAPE | {"d_model": 1024, "num_layers": 6, "num_heads": 16, "d_ff": 4096, "vocab_size": 32_000},
}
"""Of the paper. The text has 8,000 words of them."""


def peer(stack: ExitStack, program: str, *arguments: str, library: str | None = None) -> Peer:
    """One that sees the accelerator, until the stack closes."""
    progress(f"starting {program}")
    return stack.enter_context(Peer(program, arguments, folder=FOLDER, library=library, accelerator=True))


def train(shape: dict[str, Any], passes: int) -> dict[str, Any]:
    """Both in turn on the same batches, and the accelerator's products."""
    path = FOLDER / "batches.json"
    data = multi30k.write_batches(path, shape, BATCH_TOKENS)
    with ExitStack() as stack:
        asked = {"updates": BATCHES, "precision": "bfloat16"}
        peak = Row("matmul", peer(stack, "matmul_peak"), {})
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
            "rows": [
                {
                    "name": row.name,
                    "tokens_per_second": rounded(row.tokens_per_second),
                    "readings": [rounded(one["tokens"] / one["seconds"]) for one in row.readings],
                    "share_of_peak": rounded(row.tokens_per_second * needed / gigaflops),
                    "ours_is_times_as_fast": rounded(ours.tokens_per_second / row.tokens_per_second),
                }
                for row in rows
            ],
            "versions": versions_of([ours.peer, marian.peer]),
        }


def translate(passes: int) -> list[dict[str, Any]]:
    """All cases of bench-decoding by ours, in both precisions, and by `generate`."""
    decoding.train()
    sentences, lengths = decoding.write_sentences(Tokenizers.load(decoding.RUN / "tokenizer.json"))
    given = [str(decoding.RUN), str(sentences)]
    with ExitStack() as stack:
        peers = {
            decoding.OURS: peer(stack, "regardant_decoding", *given),
            decoding.OURS_ROUNDED: peer(stack, "regardant_decoding", *given, "bfloat16"),
            decoding.TRANSFORMERS: peer(stack, "marian_decoding", *given, library="transformers"),
        }
        found = [decoding.measure(case, peers, lengths, passes) for case in decoding.CASES]
    return [
        {"case": one["case"], "rows": [decoding.as_dict(row, one["rows"][0]) for row in one["rows"]]} for one in found
    ]


def bars(trained: dict[str, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What was hoped for."""
    for name, measured in trained.items():
        share = next(row["share_of_peak"] for row in measured["rows"] if row["name"] == OURS)
        yield bar(f"{name}: of the matmul peak", share, 0.5, at_least=True, goal=True)


def table(result: dict[str, Any]) -> Iterator[str]:
    """For people."""
    for name, measured in result["training"].items():
        yield f"{'training ' + name:40}{'tokens/s':>12}{'ours / it':>11}{'of peak':>9}"
        for row in measured["rows"]:
            times = shown(row["ours_is_times_as_fast"])
            yield f"{row['name']:40}{row['tokens_per_second']:>12,.0f}{times:>11}{row['share_of_peak']:>9.0%}"
        yield ""
    for measured in result["translating"]:
        yield f"{measured['case']:40}{'sentences/s':>12}{'tokens/s':>11}{'ours / it':>11}"
        for row in measured["rows"]:
            numbers = f"{shown(row['sentences_per_second']):>12}{row['tokens_per_second']:>11,.0f}"
            yield f"{row['engine']:40}{numbers}{shown(row['ours_is_times_as_fast']):>11}"
        yield ""
    yield from ending(result)


def main() -> None:
    measurement = Measurement("accelerator", __doc__, PASSES)
    if not torch.cuda.is_available():
        print("no accelerator here: nothing is measured")
        return
    trained = {name: train(shape, measurement.passes) for name, shape in SHAPES.items()}
    versions: dict[str, str] = {}
    for measured in trained.values():
        versions |= measured.pop("versions")
    result = {"training": trained, "translating": translate(measurement.passes), "versions": versions}
    measurement.keep(result | {"bars": list(bars(trained))}, table)


if __name__ == "__main__":
    main()
