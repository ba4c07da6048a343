"""The program as its users start it: by the command line alone, so that these tests also run on earlier commits."""

import contextlib
import json
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

START = [sys.executable, "-c", "from regardant.cli import main; main()"]

SMALL = [
    *(f"model.{one}" for one in ("preset=null", "d_model=16", "num_heads=2", "d_ff=32", "max_length=32")),
    *("model.encoder.num_layers=1", "model.decoder.num_layers=1"),
    *("data.train_size=300", "data.validation_size=20", "data.test_size=20"),
    *("training.max_minutes=null", "training.max_updates=20", "training.precision=float32"),
]


@dataclass(frozen=True)
class Ended:
    """A command that has ended, or was ended after its time."""

    code: int | None
    """Exit status. None: its time was over."""
    out: str
    err: str
    gigabytes: float
    """Most memory that a command of this test process has taken so far."""

    @property
    def is_one_line(self) -> bool:
        """Whether it was refused in a line, without a traceback."""
        said = [line for line in self.err.splitlines() if line.startswith("regardant: ")]
        return self.code == 2 and len(said) == 1 and "Traceback" not in self.err and self.gigabytes < 1.5


def sets(*overrides: str) -> list[str]:
    """Return overrides as words of a command."""
    return [word for override in overrides for word in ("--set", override)]


def told(*words: object, seconds: float = 300.0, stdin: bytes = b"", shell: str = "") -> Ended:
    """Run a command to its end; `shell` redirects its streams."""
    command = [*START, *map(str, words)]
    if shell:
        command = ["sh", "-c", f'exec "$@" {shell}', "sh", *command]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(command, input=stdin, capture_output=True, timeout=seconds, env=environment)
    except subprocess.TimeoutExpired as error:
        return Ended(None, _text(error.stdout), _text(error.stderr), 0.0)
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    return Ended(done.returncode, _text(done.stdout), _text(done.stderr), most)


def _text(raw: bytes | str | None) -> str:
    return raw.decode(errors="replace") if isinstance(raw, bytes) else raw or ""


@contextlib.contextmanager
def running(*words: object) -> Iterator[subprocess.Popen[str]]:
    """Run a command until the block ends."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [*START, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def port_of(process: subprocess.Popen[str]) -> int:
    """Return the port that a server announces."""
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.search(r"http://[\w.\[\]:]+:(\d+)", line):
            return int(found[1])
    raise AssertionError("it announced no port")


def until(condition: object, seconds: float = 120.0) -> None:
    """Wait until a function returns true."""
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def family(process: int) -> list[int]:
    """Return a process and those that it has started."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii").split()
    return [process, *(one for child in children for one in family(int(child)))]


def listening(processes: Sequence[int]) -> set[str]:
    """Return the addresses on which processes listen, as in /proc/net/tcp."""
    sockets = set()
    for process in processes:
        for link in Path(f"/proc/{process}/fd").iterdir():
            with contextlib.suppress(OSError):
                sockets.add(os.readlink(link))
    rows = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{name}").read_text(encoding="ascii").splitlines()[1:]
    ]
    return {row[1].split(":")[0] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets}


LOOPBACK = {"0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F"}


def edited(path: Path, change: object) -> None:
    """Change a JSON document in place."""
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)  # type: ignore[operator]
    path.write_text(json.dumps(content), encoding="utf-8")
