"""Training and translation of sentences of some hundred tokens: lines of Multi30k, seven joined to one.

    make bench-long                          35 minutes on two cores; reads Multi30k under REGARDANT_DATA
    make bench-long BENCH="--passes 1"       a quick try, written to runs/scratch

The shape is that of bench-training. The model that translates has the layout of bench-decoding; it is trained here and
kept in runs/bench-long. Ratios are between rows of equal precision, passes are taken in turn, and all programs have
the same allocator settings. Written to benchmarks/results/long_speed.json.
"""

import gzip
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from regardant.data.tokenizers import Tokenizers

from . import decoding, multi30k, training
from .decoding import Case
from .records import ROOT
from .shared_batches import SHAPE
from .side_by_side import SideBySide, ending
from .training import MARIAN, OURS
from .workers import KEEP_FREED_MEMORY, one_torch, versions_of

RUN = ROOT / "runs" / "bench-long"
TEXT = ROOT / "runs" / "bench-long-text"
PASSES = 5
JOINED = 7
MOST_TOKENS = 160

CONTENDERS = [one for one in training.CONTENDERS if one.name in (OURS, MARIAN, "torch.nn.Transformer")]
CASES = (Case("beam 5, batch 32", 5, 32, 1), Case("greedy, batch 32", 1, 32, 1), Case("beam 5, batch 1", 5, 1, 8))


def join_lines(folder: Path) -> None:
    """Write the text into a folder under its own names, JOINED lines to one."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in ("train", "val", "test2016"):
        for language in ("en", "de"):
            name = f"{part}.{language}"
            lines = multi30k.lines(name)
            groups = [lines[first : first + JOINED] for first in range(0, len(lines), JOINED)]
            with gzip.open(folder / f"{name}.gz", "wt", encoding="utf-8") as joined:
                joined.writelines(" ".join(group) + "\n" for group in groups)


def train(passes: int) -> dict[str, Any]:
    """Time trainers in turn on the same batches."""
    batches = training.FOLDER / "long" / "batches.json"
    data = multi30k.write_batches(batches, root=TEXT)
    measured = training.measure(KEEP_FREED_MEMORY, batches, passes, CONTENDERS)
    training.complete(measured, data["megaflops_a_target_token"])
    return measured | {"data": data}


def translate(passes: int) -> dict[str, Any]:
    """Time engines in turn on the same sentences."""
    decoding.train(RUN, [*decoding.MODEL, "training.max_epochs=12"], TEXT)
    tokenizers = Tokenizers.load(RUN / "tokenizer.json")
    sentences, lengths = decoding.write_sentences(tokenizers, "long", MOST_TOKENS, TEXT)
    with ExitStack() as stack:
        peers, left_out = decoding.start(stack, str(sentences), RUN)
        one_torch(peers.values())
        found = [decoding.measure(case, peers, lengths, passes) for case in CASES]
        versions = versions_of(peers.values())
    return {
        "sentences": len(lengths),
        "source_tokens": sum(lengths),
        "cases": [{**one, "rows": decoding.as_dicts(one["rows"])} for one in found],
        "left_out": left_out,
        "versions": versions,
    }


def table(result: dict[str, Any]) -> Iterator[str]:
    """Format a result for the terminal."""
    yield from training.rows(result["training"])
    yield from decoding.rows(result["translation"])
    yield from ending(result)


def main() -> None:
    measurement = SideBySide("long", __doc__, PASSES)
    join_lines(TEXT)
    trained, translated = train(measurement.passes), translate(measurement.passes)
    versions = trained.pop("versions") | translated.pop("versions")
    result = {"shape": SHAPE, "training": trained, "translation": translated, "versions": versions, "bars": []}
    measurement.finish(result, table)


if __name__ == "__main__":
    main()
