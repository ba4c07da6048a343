"""Exports of a translator of Multi30k compared with the run, on test2016: identical translations, BLEU, size and speed.

    make bench-exports                        some minutes on two cores; reads Multi30k under REGARDANT_DATA

The model is that of bench-decoding, trained here unless its run exists. Each row is the output of `regardant export`.
Written to benchmarks/results/exports.json.
"""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import regardant
from regardant.interop.parity import BOUNDS

from . import multi30k
from .bars import bar, conclude, lines, rounded
from .decoding import RUN, train
from .records import Measurement, arguments, versions
from .workers import progress

EXPORTS = (("ctranslate2", "float32"), ("ctranslate2", "int8"), ("onnx", "float32"), ("onnx", "int8"))
"""Formats, each with the type of its stored weights."""


def measured(run: regardant.Run, form: str, stored: str, folder: Path) -> dict[str, Any]:
    """Export a run and return the comparison of the export with the run."""
    exported = run.export(form, folder, stored, data=[multi30k.folder() / f"test2016.{one}.gz" for one in ("en", "de")])
    assert exported.parity is not None
    parity = exported.parity
    return {
        "format": form,
        "weights": stored,
        "texts": parity.texts,
        "identical": rounded(parity.identical),
        "largest_difference": rounded(parity.largest_difference),
        "bleu": {"run": parity.run.score, "export": parity.export.score},
        "bytes": {"run": parity.run.bytes, "export": parity.export.bytes},
        "tokens_per_second": {
            "run": rounded(parity.run.tokens_per_second),
            "export": rounded(parity.export.tokens_per_second),
        },
        "failures": list(exported.failures),
    }


def bars(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the bars of all rows."""
    for row in rows:
        name, exact = f"{row['format']} in {row['weights']}", row["weights"] == "float32"
        bounds = BOUNDS["float32" if exact else "narrow"]
        if exact:
            yield bar(f"{name}: identical translations", row["identical"], bounds.identical, at_least=True)
        lost = abs(row["bleu"]["export"] - row["bleu"]["run"])
        yield bar(f"{name}: difference in BLEU", lost, bounds.score)


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Format the table of rows, as docs/interop.md shows it. The first row is the run."""
    yield "| | BLEU | identical | largest difference of an output | MB | tokens a second |"
    yield "|---|---|---|---|---|---|"
    run = rows[0]
    yield f"| run | {run['bleu']['run']:.2f} | | | {_size_and_speed(run, 'run')} |"
    for row in rows:
        name, bleu = f"{row['format']}, {row['weights']}", row["bleu"]["export"]
        same, difference = f"{row['identical']:.1%}".replace("%", " %"), f"{row['largest_difference']:.2g}"
        yield f"| {name} | {bleu:.2f} | {same} | {difference} | {_size_and_speed(row, 'export')} |"


def _size_and_speed(row: dict[str, Any], side: str) -> str:
    return f"{row['bytes'][side] / 1e6:.1f} | {row['tokens_per_second'][side]:,.0f}"


def main() -> None:
    measurement = Measurement(scratch=arguments(__doc__).parse_args().scratch)
    train()
    run, rows = regardant.load(Path(RUN)), []
    with TemporaryDirectory() as folder:
        for form, stored in EXPORTS:
            progress(f"{form} {stored}")
            rows.append(measured(run, form, stored, Path(folder) / f"{form}-{stored}"))
    result: dict[str, Any] = {
        "command": "make bench-exports",
        "versions": versions("ctranslate2", "onnxruntime"),
        "rows": rows,
        "bars": list(bars(rows)),
    }
    print(*table(rows), sep="\n")
    print(*lines(result["bars"]), sep="\n")
    measurement.keep("exports", result)
    conclude(result["bars"])


if __name__ == "__main__":
    main()
