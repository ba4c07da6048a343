"""Translation speed on an accelerator, compared with `generate` of transformers.

    make bench-accelerator-translation                          reads Multi30k under REGARDANT_DATA
    make bench-accelerator-translation BENCH="--passes 1"       a quick try, written to runs/scratch

Prints a line and ends if there is no accelerator. Weights are those of bench-decoding, sentences a subset of its
sentences. Passes are taken in turn. CTranslate2 is left out: its wheels are built for another version of CUDA than
PyTorch's.
Written to benchmarks/results/accelerator-translation_speed.json.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import torch

from regardant.data.tokenizers import Tokenizers

from . import decoding
from .accelerator_training import peer
from .bars import bar, shown
from .decoding import REGARDANT, TRANSFORMERS, Case, label
from .side_by_side import SideBySide, ending
from .workers import Peer, one_torch, versions_of

PASSES = 3
PRECISION = "bfloat16"
CASES = (Case("beam 5, batch 32", 5, 32, 4), Case("greedy, batch 32", 1, 32, 4), Case("beam 5, batch 1", 5, 1, 10))
CHOICES = {"cache": ("dynamic",), "attention": ("sdpa",)}
"""transformers' settings. A static cache, for which `generate` compiles the model on an accelerator, is not tried."""
ENGINES = ((REGARDANT, "regardant_decoding", None), (TRANSFORMERS, "marian_decoding", "transformers"))
"""Engines, the programs of their peers, and the library of a peer's environment, if it is not the driver's."""


def translate(passes: int) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Time both engines in turn. Return the rows of all cases, and the versions of libraries."""
    decoding.train()
    sentences, lengths = decoding.write_sentences(Tokenizers.load(decoding.RUN / "tokenizer.json"))
    given = [str(decoding.RUN), str(sentences), PRECISION]
    with ExitStack() as stack:
        peers: dict[str, Peer] = {
            label(engine, PRECISION): peer(stack, program, *given, library=library)
            for engine, program, library in ENGINES
        }
        one_torch(peers.values())
        # Kernels are selected at each new shape, so an untimed pass over all batches comes first.
        found = [decoding.measure(case, peers, lengths, passes, warm_up=None, choices=CHOICES) for case in CASES]
        versions = versions_of(peers.values())
    return [{"case": one["case"], "rows": decoding.as_dicts(one["rows"])} for one in found], versions


def bars(cases: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the goals."""
    for one in cases:
        times = next(row["regardant_is_times_as_fast"] for row in one["rows"] if row["engine"] == TRANSFORMERS)
        yield bar(f"{one['case']}, {PRECISION}: times transformers", times, 1.0, at_least=True, goal=True)


def table(result: dict[str, Any]) -> Iterator[str]:
    """Format a result for the terminal."""
    for measured in result["cases"]:
        yield f"{measured['case']:40}{'sentences/s':>12}{'tokens/s':>11}{'regardant / row':>16}"
        for row in measured["rows"]:
            numbers = f"{shown(row['sentences_per_second']):>12}{row['tokens_per_second']:>11,.0f}"
            entry = label(row["engine"], row["precision"])
            yield f"{entry:40}{numbers}{shown(row['regardant_is_times_as_fast']):>16}"
        yield ""
    yield from ending(result)


def main() -> None:
    if not torch.cuda.is_available():
        print("no accelerator here: nothing is measured")
        return
    measurement = SideBySide("accelerator-translation", __doc__, PASSES)
    cases, versions = translate(measurement.passes)
    measurement.finish({"cases": cases, "versions": versions, "bars": list(bars(cases))}, table)


if __name__ == "__main__":
    main()
