"""Commands in a shell: run to their end, or until the page ends."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.pages.commands import ROOT, Command

SECONDS = 300
"""Longest time of one command."""


def variables(data: Path) -> dict[str, str]:
    """Return the variables of the shell: the program in front, the data of recipes, one thread."""
    programs = [str(Path(sys.executable).parent), os.environ["PATH"]]
    modules = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {
        "PATH": os.pathsep.join(programs),
        "PYTHONPATH": os.pathsep.join(modules),
        "REGARDANT_DATA": str(data),
        "OMP_NUM_THREADS": "1",
    }


def run(command: Command, text: str, folder: Path, environment: Mapping[str, str]) -> None:
    """Run a command to its end. Raises AssertionError if it fails."""
    shell = ["bash", "-o", "pipefail", "-c", text]
    done = subprocess.run(
        shell, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0 and "Traceback" not in said, f"{command}\nstatus {done.returncode}\n{said[-3000:]}"


@contextlib.contextmanager
def served(command: Command, text: str, folder: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """Run a server until the block ends, then end it by Ctrl-C. Returns its address."""
    log = folder / "server.log"
    with log.open("w") as out:
        shell = ["bash", "-c", f"exec {text}"]
        server = subprocess.Popen(shell, cwd=folder, env=environment, stdout=out, stderr=subprocess.STDOUT)
    try:
        end = time.monotonic() + SECONDS
        while not (found := re.search(r"https?://[\w.]+:\d+", log.read_text())):
            assert server.poll() is None and time.monotonic() < end, f"{command}\n{log.read_text()}"
            time.sleep(0.1)
        yield found[0]
        server.send_signal(signal.SIGINT)
        assert server.wait(60) in (0, 130) and "Traceback" not in log.read_text(), f"{command}\n{log.read_text()}"
    finally:
        server.kill()
