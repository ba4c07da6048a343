"""Training speed of a recurrent translator with attention compared with JoeyNMT's of equal shape, on the same batches.

    make bench-recurrent                         two minutes on two cores; reads Multi30k under REGARDANT_DATA
    make bench-recurrent BENCH="--passes 1"      a quick try, written to runs/scratch

A bidirectional LSTM encodes, an LSTM with Luong's attention and input feeding decodes; JoeyNMT's are `nn.LSTM`.
Ratios are between rows of equal precision, passes are taken in turn, and all programs have the same allocator settings.
Written to benchmarks/results/recurrent_speed.json.
"""

import json
from collections.abc import Iterator
from typing import Any

from . import multi30k, training
from .shared_batches import SHAPE
from .side_by_side import SideBySide, ending
from .training import OURS
from .workers import KEEP_FREED_MEMORY

PASSES = 5
LSTM = {
    "cell": "lstm",
    "embedding_size": SHAPE["d_model"],
    "hidden_size": SHAPE["d_model"],
    "num_layers": 1,
    "vocab_size": SHAPE["vocab_size"],
    "dropout": 0.2,
    "max_length": SHAPE["max_length"],
}
JOEYNMT = "JoeyNMT's model"
CONTENDERS = [one for one in training.CONTENDERS if one.name in (OURS, JOEYNMT)]


def table(result: dict[str, Any]) -> Iterator[str]:
    """Format a result for the terminal."""
    yield f"{'training':54}{training.HEADINGS}"
    for row in result["rows"]:
        yield f"{row['name'] + ', ' + row['precision']:54}{training.ratios(row)}"
    yield ""
    yield from ending(result)


def main() -> None:
    measurement = SideBySide("recurrent", __doc__, PASSES)
    path = training.FOLDER / "recurrent" / "batches.json"
    data = multi30k.write_batches(path)
    del data["megaflops_a_target_token"]  # of the Transformer
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | {"shape": LSTM}), encoding="utf-8")
    measured = training.measure(KEEP_FREED_MEMORY, path, measurement.passes, CONTENDERS)
    training.compare(measured)
    measurement.finish({"shape": LSTM, "data": data, **measured, "bars": []}, table)


if __name__ == "__main__":
    main()
