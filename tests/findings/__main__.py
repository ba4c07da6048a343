"""Run the tests of findings on an earlier commit, where each has to fail: `python -m tests.findings 23efb56`.

The commit's package is unpacked beside the tests of today. Exit status 1 if a test passes.
"""

import os
import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).parents[2]


def main(commit: str, *options: str) -> int:
    """Return the exit status."""
    archive = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, check=True, capture_output=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=BytesIO(archive)) as opened:
            opened.extractall(folder, filter="data")
        command = [sys.executable, "-m", "pytest", "--noconftest", "-q", "-rA", "--tb=no", "-p", "no:cacheprovider"]
        environment = os.environ | {"PYTHONPATH": f"{folder}/src:{ROOT}"}
        tests = ["tests/findings", *options]
        done = subprocess.run([*command, *tests], cwd=ROOT, env=environment, text=True, capture_output=True)
    lines = done.stdout.splitlines()
    failed = [line for line in lines if line.startswith("FAILED")]
    green = [line for line in lines if line.startswith(("PASSED", "ERROR"))]
    print(*failed, *green, f"{len(failed)} findings fail at {commit}, {len(green)} do not", sep="\n")
    return 1 if green or not failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
