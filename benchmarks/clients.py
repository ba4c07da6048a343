"""HTTP/1.1 clients of a server, any number in one thread, and measurements of the answers that they get."""

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

from .bars import rounded
from .watched import memory_of

PARTS = 5
"""Number of parts of the time. Memory in the last is compared with that in the second: caches fill in the first."""

LOST = 0
"""Status of a request that got no answer."""

REFUSED = 503


@dataclass
class Seen:
    """Measurements of the clients of one server."""

    seconds: list[float] = field(default_factory=list)
    """Seconds to each answer with status 200 that came in time."""
    statuses: Counter[int] = field(default_factory=Counter)
    memory: list[float] = field(default_factory=list)
    """Resident GiB of the server, each second."""
    pages: list[float] = field(default_factory=list)
    """Seconds to each answer with a page that needs no model, requested by another process at the same time."""

    def as_dict(self, took: float) -> dict[str, Any]:
        """Return the numbers that result files hold. `took` is the measured time in seconds."""
        cuts = quantiles(self.seconds, n=100, method="inclusive")
        part = max(1, len(self.memory) // PARTS)
        return {
            "answers_per_second": rounded(len(self.seconds) / took),
            "p50_seconds": rounded(cuts[49]),
            "p99_seconds": rounded(cuts[98]),
            "statuses": {str(status): number for status, number in sorted(self.statuses.items())},
            "second_gib": rounded(mean(self.memory[part : 2 * part] or self.memory)),
            "last_gib": rounded(mean(self.memory[-part:])),
            **({"page": times(self.pages)} if self.pages else {}),
        }


def times(seconds: Sequence[float]) -> dict[str, float | None]:
    """Return the median, the 99th percentile and the largest of some seconds."""
    cuts = quantiles(seconds, n=100, method="inclusive") if len(seconds) > 1 else [*seconds] * 99
    return {"p50": rounded(cuts[49]), "p99": rounded(cuts[98]), "most": rounded(max(seconds))}


@contextmanager
def server(
    run: Path, options: Sequence[str] = (), verb: str = "serve", port: int = 0
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Run a server and yield its process and port. Exits if the server does not start."""
    command = [sys.executable, "-m", "regardant", verb, str(run), "--port", str(port), *options]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("w") as opened, subprocess.Popen(command, stdout=opened, stderr=opened) as process:
            try:
                while not (found := re.search(r"http://127\.0\.0\.1:(\d+)", log.read_text(encoding="utf-8"))):
                    if process.poll() is not None:
                        sys.exit(f"the server ended: {log.read_text(encoding='utf-8')}")
                    time.sleep(0.1)
                yield process, int(found[1])
            finally:
                process.terminate()


async def ask(
    port: int, texts: Sequence[str], seconds: float, clients: int, process: int, *, key: str = "", page: str = ""
) -> Seen:
    """Have clients send requests for `seconds`, and another process request a page meanwhile. A client stops at 503,
    which asks it to go elsewhere."""
    seen, end, number = Seen(), time.monotonic() + seconds, count()

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.monotonic() < end:
            began = time.monotonic()
            body = json.dumps({"texts": [texts[next(number) % len(texts)]]}).encode()
            try:
                status, _ = await post(reader, writer, port, "/v1/translate", body, key)
            except (ConnectionError, asyncio.IncompleteReadError):
                status = LOST
            seen.statuses[status] += 1
            if status == 200 and time.monotonic() < end:
                seen.seconds.append(time.monotonic() - began)
            if status in (LOST, REFUSED):
                break
        writer.close()

    async def watch() -> None:
        while time.monotonic() < end and (memory := memory_of(process)) is not None:
            seen.memory.append(memory / 2**30)
            await asyncio.sleep(1)

    async def look() -> None:
        if page:
            seen.pages += await watched_page(port, page, seconds)

    await asyncio.gather(watch(), look(), *(client() for _ in range(clients)))
    return seen


async def watched_page(port: int, page: str, seconds: float) -> list[float]:
    """Return the seconds to each answer of a page, asked twice a second by a process of its own.

    Raises RuntimeError if an answer is missing or has another status than 200.
    """
    words = [sys.executable, "-m", "benchmarks.clients", str(port), page, str(seconds)]
    asking = await asyncio.create_subprocess_exec(*words, stdout=subprocess.PIPE)
    found, _ = await asking.communicate()
    if asking.returncode:
        raise RuntimeError(f"{page} was not answered: its process ended with exit code {asking.returncode}")
    return [float(one) for one in found.split()]


async def post(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, path: str, body: bytes, key: str = ""
) -> tuple[int, bytes]:
    """Send a POST request and return the status and the body of the answer."""
    lines = [f"POST {path} HTTP/1.1", f"host: localhost:{port}", "content-type: application/json"]
    lines += [f"authorization: Bearer {key}"] if key else []
    writer.write("\r\n".join([*lines, f"content-length: {len(body)}", "", ""]).encode() + body)
    answer = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = re.search(r"content-length: (\d+)", answer)
    content = await reader.readexactly(int(length[1])) if length else b""
    return int(answer.split()[1]), content


def main(words: Sequence[str]) -> None:
    """Ask for a page for some seconds, and print the seconds to each answer."""
    import http.client

    port, path, seconds = int(words[0]), words[1], float(words[2])
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", path, headers={"host": f"localhost:{port}"})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        assert answer.status == 200, answer.status
        print(time.monotonic() - began, flush=True)
        time.sleep(0.5)


if __name__ == "__main__":
    main(sys.argv[1:])
