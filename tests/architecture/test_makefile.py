"""`make setup` finds a Python that is new enough."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAKE = shutil.which("make")
pytestmark = pytest.mark.skipif(MAKE is None, reason="make is not installed")


def dry_setup(folder: Path, pythons: dict[str, bool], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `make --dry-run` of the setup with only these programs on the PATH; True marks one that is new enough."""
    for name, is_new in pythons.items():
        (folder / name).write_text(f"#!/bin/sh\nexit {0 if is_new else 1}\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    command = [str(MAKE), "--dry-run", "--always-make", ".venv/ready", *arguments]
    return subprocess.run(command, cwd=ROOT, env={"PATH": str(folder)}, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("pythons", "found"),
    [
        ({"python3.11": True, "python3.13": True}, "python3.13"),
        ({"python3.11": True}, "python3.11"),
        ({"python3": True}, "python3"),
        ({"python3.14": False, "python3.12": True, "python3": True}, "python3.12"),
    ],
)
def test_the_newest_python_that_will_do_is_taken(tmp_path, pythons, found):
    done = dry_setup(tmp_path, pythons)
    assert done.returncode == 0, done.stderr
    assert f"{found} -m venv .venv\n" in done.stdout


@pytest.mark.parametrize("pythons", [{}, {"python3": False}])
def test_without_one_a_line_says_what_to_install(tmp_path, pythons):
    done = dry_setup(tmp_path, pythons)
    assert done.returncode == 2
    assert "no Python 3.11 or newer: install one" in done.stderr and len(done.stderr.splitlines()) == 1


def test_a_python_that_is_given_is_taken(tmp_path):
    done = dry_setup(tmp_path, {"python3.13": True}, "PYTHON=/opt/mine")
    assert "/opt/mine -m venv .venv\n" in done.stdout


@pytest.mark.parametrize("target", ["docs", "test-slow"])
def test_the_libraries_of_the_site_are_installed_where_it_is_built(target):
    command = [str(MAKE), "--dry-run", "--always-make", target, "PYTHON=/opt/mine"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert "PIP_CONSTRAINT=constraints.txt .venv/bin/pip install" in done.stdout and "'.[docs]'" in done.stdout


def test_the_demo_prints_how_long_installing_took():
    command = [str(MAKE), "--no-print-directory", "--dry-run", "demo"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert "installed in " in done.stdout and done.stdout.rstrip().endswith(".venv/bin/regardant demo")
