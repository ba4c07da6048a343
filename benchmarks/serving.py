"""A server under many clients: seconds to an answer, answers a second, statuses and memory, compared with batches of
one text; and a server under attack.

    make bench-serving
    make bench-serving BENCH="--seconds 20 --clients 50 --run runs/demo"    a quick try, written to runs/scratch

A real server process on a free port, and clients in this one, while another process asks for a page that needs no
model. Each client asks for the translation of one sentence, waits for the answer and asks again. Sentences are those of
the run's validation data. Then the studio under load, and servers that are attacked, told to end under load, killed and
started again. Without --run the recipe `demo` is trained first (two minutes). Written to
benchmarks/results/serving.json; with another time, number of clients or run to runs/scratch alone.
"""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .bars import bar, conclude, lines
from .clients import ask, server, times
from .hostile import besieged, ended_under_load, studio_under_load
from .records import Measurement, arguments
from .startup import train_demo

SENTENCES = 500
SECONDS, CLIENTS = 300.0, 200
"""Time of each server and number of clients of a kept result."""

BATCHES = {"batches of up to 32": [], "batches of one": ["--max-batch", "1"]}

ENGINES = {"": ["--engine", "ctranslate2-int8"], " of torch": ["--engine", "torch"]}
"""Engines: the fastest, whether or not the run's parity check chose it, and the slowest, beside which HTTP takes little
time."""

SERVERS = {
    batch + engine: [*of_engine, *of_batch]
    for engine, of_engine in ENGINES.items()
    for batch, of_batch in BATCHES.items()
}
"""Options of the servers that are compared."""

TIMES_ONE, TIMES_MEMORY, PAGE = 3.0, 1.05, 0.1
"""Least answers a second in batches, times those in batches of one. Most memory in the last part, times the second.
Largest 99th percentile of the seconds to a page that needs no model."""

PROMISED = {"200", "429", "503"}
"""Statuses that clients may see."""

STUDIO_CLIENTS, STUDIO_SECONDS, SIEGE_CLIENTS = 50, 30.0, 20


def main(given: Sequence[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"time of each server ({SECONDS:g})")
    parser.add_argument("--clients", type=int, default=CLIENTS, help=f"clients that ask at once ({CLIENTS})")
    parser.add_argument("--run", type=Path, help="run of a translator. Left out: the recipe demo, trained first")
    asked = parser.parse_args(given)
    whole = (asked.seconds, asked.clients, asked.run) == (SECONDS, CLIENTS, None)
    measurement = Measurement(scratch=asked.scratch or not whole)
    run = asked.run or train_demo()
    texts = sentences(run)
    found = {name: measured(run, texts, options, asked) for name, options in SERVERS.items()}
    seconds = min(STUDIO_SECONDS, asked.seconds)
    pages, statuses = studio_under_load(run, seconds, STUDIO_CLIENTS)
    studio = {"page": times(pages), "statuses": statuses}
    wrong = besieged(run, texts, seconds, SIEGE_CLIENTS) | ended_under_load(run, texts, asked.clients)
    bars = judged(found, studio, wrong)
    for name, one in found.items():
        print(
            f"{name:30}{one['answers_per_second']:8.1f} answers a second, p50 {one['p50_seconds']:.3f} s, "
            f"p99 {one['p99_seconds']:.3f} s, {one['second_gib']:.3f} to {one['last_gib']:.3f} GiB, {one['statuses']}"
        )
    print(studio, *(f"{name}: {'; '.join(what) or 'nothing went wrong'}" for name, what in wrong.items()), sep="\n")
    print(*lines(bars), sep="\n")
    result = {"command": "make bench-serving", "clients": asked.clients, "seconds": asked.seconds}
    measurement.keep("serving", {**result, "servers": found, "studio": studio, "trials": wrong, "bars": bars})
    conclude(bars)


def judged(found: dict[str, Any], studio: dict[str, Any], wrong: dict[str, list[str]]) -> list[dict[str, Any]]:
    """Return the bars."""
    seen = [*(one["statuses"] for one in found.values()), studio["statuses"]]
    other = {status for statuses in seen for status in statuses} - PROMISED
    speed = {name: one["answers_per_second"] for name, one in found.items()}
    return [
        *(
            bar(
                f"answers a second in batches of up to 32{engine}, times batches of one",
                speed[f"batches of up to 32{engine}"] / speed[f"batches of one{engine}"],
                TIMES_ONE,
                at_least=True,
            )
            for engine in ENGINES
        ),
        bar(f"statuses other than {', '.join(sorted(PROMISED))}", len(other), 0),
        *(
            bar(f"memory in the last fifth / the second, {name}", one["last_gib"] / one["second_gib"], TIMES_MEMORY)
            for name, one in found.items()
        ),
        bar("p99 of a page meanwhile in s", max(one["page"]["p99"] for one in found.values()), PAGE),
        bar("p99 of a page of the studio under load in s", studio["page"]["p99"], PAGE),
        *(bar(f"faults in the trial: {name}", len(what), 0) for name, what in wrong.items()),
    ]


def sentences(run: Path) -> list[str]:
    """Return up to SENTENCES source sentences of a run's validation data."""
    import regardant

    with tempfile.TemporaryDirectory() as folder:
        return [one.item for one in regardant.load(run).trained.examples(SENTENCES, Path(folder))]


def measured(run: Path, texts: Sequence[str], options: Sequence[str], asked: Any) -> dict[str, Any]:
    """Return the measurements of the clients of a server."""
    with server(run, options) as (process, port):
        asyncio.run(ask(port, texts, min(5.0, asked.seconds), asked.clients, process.pid))  # warm up
        seen = asyncio.run(ask(port, texts, asked.seconds, asked.clients, process.pid, page="/openapi.json"))
        return seen.as_dict(asked.seconds)


if __name__ == "__main__":
    main()
