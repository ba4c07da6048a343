"""A server under many clients: seconds to an answer, answers a second, statuses and memory, beside batches of one text.

    make bench-serving
    make bench-serving BENCH="--seconds 120 --clients 200 --run runs/demo"

A real server process on a free port, and clients in this one. Each client asks for the translation of one sentence,
waits for the answer and asks again. Sentences are those of the run's validation data. Without --run the recipe `demo`
is trained first (two minutes). Written to benchmarks/results/serving.json.
"""

import asyncio
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from statistics import mean, quantiles
from typing import Any

from .bars import bar, conclude, lines, rounded
from .records import ROOT, Measurement, arguments

RUN = ROOT / "runs" / "bench-serving"
SENTENCES = 500
PARTS = 5
"""Parts of the time, of which memory is compared between the second and the last: the first one fills caches."""

SERVERS = {"batches of up to 32": [], "batches of one": ["--max-batch", "1"]}
"""Options of the servers that are compared."""

TIMES_ONE, TIMES_MEMORY = 3.0, 1.05
"""Least answers a second in batches, times those in batches of one. Most memory in the last part, times the second."""

PROMISED = {"200", "429", "503"}
"""Statuses that clients may see."""


@dataclass
class Seen:
    """What the clients of one server saw."""

    seconds: list[float] = field(default_factory=list)
    """Of answers with status 200 that came in time."""
    statuses: Counter[int] = field(default_factory=Counter)
    memory: list[float] = field(default_factory=list)
    """Resident GiB of the server, each second."""

    def as_dict(self, took: float) -> dict[str, Any]:
        """Return what the result file holds."""
        cuts = quantiles(self.seconds, n=100)
        part = max(1, len(self.memory) // PARTS)
        return {
            "answers_per_second": rounded(len(self.seconds) / took),
            "p50_seconds": rounded(cuts[49]),
            "p99_seconds": rounded(cuts[98]),
            "statuses": {str(status): number for status, number in sorted(self.statuses.items())},
            "second_gib": rounded(mean(self.memory[part : 2 * part] or self.memory)),
            "last_gib": rounded(mean(self.memory[-part:])),
        }


def main(given: Sequence[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=300, help="time of each server (300)")
    parser.add_argument("--clients", type=int, default=200, help="clients that ask at once (200)")
    parser.add_argument("--run", type=Path, help="run of a translator. Left out: the recipe demo, trained first")
    asked = parser.parse_args(given)
    measurement = Measurement(scratch=asked.scratch)
    run = asked.run or trained()
    texts = sentences(run)
    found = {name: measured(run, texts, options, asked) for name, options in SERVERS.items()}
    batched, single = found.values()
    other = {status for one in found.values() for status in one["statuses"]} - PROMISED
    times = batched["answers_per_second"] / single["answers_per_second"]
    bars = [
        bar("answers a second in batches of up to 32, times batches of one", times, TIMES_ONE, at_least=True),
        bar(f"statuses other than {', '.join(sorted(PROMISED))}", len(other), 0),
        *(
            bar(f"memory in the last fifth / the second, {name}", one["last_gib"] / one["second_gib"], TIMES_MEMORY)
            for name, one in found.items()
        ),
    ]
    for name, one in found.items():
        print(
            f"{name:22}{one['answers_per_second']:8.1f} answers a second, p50 {one['p50_seconds']:.3f} s, "
            f"p99 {one['p99_seconds']:.3f} s, {one['second_gib']:.3f} to {one['last_gib']:.3f} GiB, {one['statuses']}"
        )
    print(*lines(bars), sep="\n")
    result = {"command": "make bench-serving", "clients": asked.clients, "seconds": asked.seconds}
    measurement.keep("serving", {**result, "servers": found, "bars": bars})
    conclude(bars)


def trained() -> Path:
    """Return the run of the recipe `demo`, trained if it is not there."""
    if not (RUN / "model.safetensors").is_file():
        subprocess.run([sys.executable, "-m", "regardant", "train", "demo", "--out", RUN], check=True)
    return RUN


def sentences(run: Path) -> list[str]:
    """Return source sentences of a run's validation data."""
    import regardant

    with tempfile.TemporaryDirectory() as folder:
        return [one.item for one in regardant.load(run).trained.examples(SENTENCES, Path(folder))]


def measured(run: Path, texts: Sequence[str], options: Sequence[str], asked: Any) -> dict[str, Any]:
    """Return what the clients of a server saw."""
    with server(run, options) as (process, port):
        asyncio.run(ask(port, texts, min(5.0, asked.seconds), asked.clients, process.pid))  # warm up
        return asyncio.run(ask(port, texts, asked.seconds, asked.clients, process.pid)).as_dict(asked.seconds)


@contextmanager
def server(run: Path, options: Sequence[str]) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Run a server, and give its process and its port."""
    command = [sys.executable, "-m", "regardant", "serve", str(run), "--port", "0", *options]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("w") as opened, subprocess.Popen(command, stderr=opened) as process:
            try:
                while not (found := re.search(r"http://127\.0\.0\.1:(\d+)", log.read_text(encoding="utf-8"))):
                    if process.poll() is not None:
                        sys.exit(f"the server ended: {log.read_text(encoding='utf-8')}")
                    time.sleep(0.1)
                yield process, int(found[1])
            finally:
                process.terminate()


async def ask(port: int, texts: Sequence[str], seconds: float, clients: int, process: int) -> Seen:
    """Have clients ask for so many seconds."""
    seen, end, number = Seen(), time.monotonic() + seconds, count()

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.monotonic() < end:
            began = time.monotonic()
            status = await _translate(reader, writer, port, texts[next(number) % len(texts)])
            seen.statuses[status] += 1
            if status == 200 and time.monotonic() < end:
                seen.seconds.append(time.monotonic() - began)
        writer.close()

    async def watch() -> None:
        while time.monotonic() < end:
            seen.memory.append(resident(process))
            await asyncio.sleep(1)

    await asyncio.gather(watch(), *(client() for _ in range(clients)))
    return seen


async def _translate(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, text: str) -> int:
    """Return the status of the answer."""
    body = json.dumps({"texts": [text]})
    head = f"POST /v1/translate HTTP/1.1\r\nhost: localhost:{port}\r\ncontent-type: application/json\r\n"
    writer.write(f"{head}content-length: {len(body)}\r\n\r\n{body}".encode())
    answer = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    await reader.readexactly(int(re.search(r"content-length: (\d+)", answer)[1]))  # type: ignore[index]
    return int(answer.split()[1])


def resident(process: int) -> float:
    """Return the resident GiB of a process."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 2**20  # type: ignore[index]


if __name__ == "__main__":
    main()
