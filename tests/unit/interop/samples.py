"""Samples of exports, run as their users run them."""

import os
import subprocess
import sys


def sample(folder, lines):
    """Return the answers of an export's sample, in a process that cannot import this program."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    code = "import runpy, sys; sys.modules['regardant'] = None; runpy.run_path(sys.argv[1], run_name='__main__')"
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(folder / "sample.py")],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    return found.stdout.split("\n")[:-1]
