"""Attacks on a server and terminations of its process, while other clients are served.

Each trial returns a list of faults, which should be empty.
"""

import asyncio
import http.client
import json
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from .clients import LOST, ask, post, server, watched_page

KEY = "0123456789abcdef0123456789abcdef"
SLOW = 500
"""Number of connections that send a byte each second."""

WITHIN = 20.0
"""Seconds within which the server must close them; a request has 10."""

GAUGES = ("regardant_queue_rows", "regardant_active_requests")
"""Metrics that are 0 when no request is left."""

POLL_SECONDS = 0.2
"""Seconds between two readings of the gauges."""

PATH = "/v1/translate"
PAGE = "/look"
"""Page of the studio that needs no model."""

MALFORMED: dict[str, tuple[bytes, tuple[int, ...]]] = {
    "no JSON": (b"{", (400, 422)),
    "no object": (b"[]", (422,)),
    "depth": (b"[" * 100_000, (400, 422)),
    "no UTF-8": (b'{"texts": ["\xff"]}', (400, 422)),
    "half of a character": (b'{"texts": ["\\ud800"]}', (422,)),
    "unknown field": (b'{"texts": ["a"], "path": "/etc/passwd"}', (422,)),
    "many texts": (json.dumps({"texts": ["a"] * 1000}).encode(), (422,)),
    "a long text": (json.dumps({"texts": ["a " * 5000]}).encode(), (422,)),
    "many beams": (b'{"texts": ["a"], "beam_size": 10000000000}', (422,)),
    "too large": (b" " * (4 * 2**20 + 1), (413,)),
}
"""Malformed bodies, each with the statuses that may refuse it."""


def besieged(run: Path, texts: Sequence[str], seconds: float, clients: int) -> dict[str, list[str]]:
    """Return the faults by trial of a server that is attacked while other clients use it."""
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder) / "key"
        key.write_text(KEY, encoding="ascii")
        with server(run, ["--api-key-file", str(key)]) as (process, port):
            return asyncio.run(_besiege(port, process.pid, texts, seconds, clients))


async def _besiege(port: int, process: int, texts: Sequence[str], seconds: float, clients: int) -> dict[str, list[str]]:
    served, slow, malformed, keys, _ = await asyncio.gather(
        ask(port, texts, max(seconds, WITHIN), clients, process, key=KEY),
        _slow_loris(port),
        _malformed(port),
        _wrong_keys(port),
        _disconnects(port, seconds),
    )
    other = {status: number for status, number in served.statuses.items() if status not in (200, 429)}
    unharmed = [f"{number} answers with status {status}" for status, number in other.items()]
    if not served.seconds:
        unharmed.append("nobody was answered")
    left = await asyncio.to_thread(left_over, port)  # after the others, whose requests count too
    return {"slow-loris": slow, "malformed": malformed, "wrong keys": keys, "disconnects": left, "others": unharmed}


async def _slow_loris(port: int) -> list[str]:
    """Open SLOW connections that send a byte each second. Return a fault if the server has not closed all in time."""
    opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(SLOW)]
    for _, writer in opened:
        writer.write(f"POST {PATH} HTTP/1.1\r\nhost: localhost:{port}\r\nx: ".encode())
    end = time.monotonic() + WITHIN
    closed = 0

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal closed
        while time.monotonic() < end:
            try:
                writer.write(b"y")
                if not await asyncio.wait_for(reader.read(100), 1):
                    break
            except TimeoutError:
                continue
            except ConnectionError:
                break
        else:
            return
        closed += 1

    await asyncio.gather(*(drip(*one) for one in opened))
    for _, writer in opened:
        writer.close()
    return [] if closed == SLOW else [f"{SLOW - closed} of {SLOW} slow connections were still open after {WITHIN:g} s"]


async def _malformed(port: int) -> list[str]:
    wrong = []
    for name, (body, expected) in MALFORMED.items():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            status, answer = await post(reader, writer, port, PATH, body, KEY)
            if status not in expected or list(json.loads(answer)) != ["error"]:
                wrong.append(f"{name}: {status} {answer[:100]!r}")
        except (ConnectionError, asyncio.IncompleteReadError) as error:
            if 413 not in expected:  # the server stops reading, and may close before its answer is read
                wrong.append(f"{name}: {error!r}")
        writer.close()
    return wrong


async def _wrong_keys(port: int) -> list[str]:
    wrong = []
    for key in ("", "x", KEY[:-1], KEY + "0", KEY.upper(), "Bearer"):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        status, _ = await post(reader, writer, port, PATH, b'{"texts": ["a"]}', key)
        if status != 401:
            wrong.append(f"the key {key!r} got {status}")
        writer.close()
    return wrong


async def _disconnects(port: int, seconds: float) -> None:
    """Send requests and leave before the answer."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        sending = asyncio.ensure_future(post(reader, writer, port, PATH, b'{"texts": ["a b c d"]}', KEY))
        await asyncio.sleep(0.005)
        sending.cancel()
        writer.transport.abort()
        await asyncio.sleep(0.05)


def left_over(port: int, within: float = WITHIN) -> list[str]:
    """Return a fault for each of the GAUGES that is missing or not 0 after `within` seconds without requests."""
    end = time.monotonic() + within
    while (wrong := _not_zero(port)) and time.monotonic() < end:
        time.sleep(POLL_SECONDS)
    return [f"{one} {within:g} s after the last client" for one in wrong]


def _not_zero(port: int) -> list[str]:
    """Return the faults of the GAUGES of a server: values other than 0, and missing gauges."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/metrics", headers={"host": f"localhost:{port}", "authorization": f"Bearer {KEY}"})
    text = connection.getresponse().read().decode()
    connection.close()
    wrong = []
    for name in GAUGES:
        values = re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.MULTILINE)
        wrong += [f"{name} is {value}" for value in values if float(value)] if values else [f"there is no {name}"]
    return wrong


def ended_under_load(run: Path, texts: Sequence[str], clients: int) -> dict[str, list[str]]:
    """Return the faults of a server that is terminated under load, and of one that is killed and started again."""
    found: dict[str, list[str]] = {}
    with server(run) as (process, port):

        async def terminate() -> list[str]:
            asking = asyncio.ensure_future(ask(port, texts, 60, clients, process.pid))
            await asyncio.sleep(5)
            process.send_signal(signal.SIGTERM)
            seen = await asking
            wrong = [f"{seen.statuses[LOST]} requests got no answer"] if seen.statuses[LOST] else []
            wrong += [f"{n} of status {one}" for one, n in seen.statuses.items() if one not in (200, 429, 503, LOST)]
            return wrong if seen.statuses[200] else [*wrong, "nobody was answered"]

        found["SIGTERM under load"] = asyncio.run(terminate())
        if (code := _code(process)) != 0:
            found["SIGTERM under load"].append(f"exit status {code}")
    with server(run) as (process, port):
        process.kill()
        process.wait()
    with server(run, port=port) as (process, again):
        seen = asyncio.run(ask(again, texts, 3, 4, process.pid))
        found["killed and started again"] = [] if set(seen.statuses) == {200} else [f"statuses {seen.statuses}"]
    return found


def _code(process: subprocess.Popen[bytes]) -> int | None:
    try:
        return process.wait(60)
    except subprocess.TimeoutExpired:
        return None


def studio_under_load(run: Path, seconds: float, clients: int) -> tuple[list[float], dict[str, int]]:
    """Return the seconds to a static page of the studio while clients ask its model, and the statuses they saw."""
    statuses: dict[str, int] = {}

    async def load(port: int) -> list[float]:
        end = time.monotonic() + seconds

        async def client() -> None:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            while time.monotonic() < end:
                body = json.dumps({"run": run.as_posix(), "text": "The old judge sees the small cat."}).encode()
                status, _ = await post(reader, writer, port, "/api/look", body)
                statuses[str(status)] = statuses.get(str(status), 0) + 1
                await asyncio.sleep(0.2)
            writer.close()

        pages, *_ = await asyncio.gather(watched_page(port, PAGE, seconds), *(client() for _ in range(clients)))
        return pages

    with server(run, verb="studio") as (_, port):
        return asyncio.run(load(port)), statuses
