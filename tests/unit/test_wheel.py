"""The wheel in an environment of its own: every recipe loads, and the demo trains."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from regardant import config

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

LOAD_ALL = """
import regardant
from regardant import config
from regardant.errors import ConfigError
from regardant.tasks import load_recipe
assert "site-packages" in regardant.__file__, regardant.__file__
for name in config.recipes():
    try:
        load_recipe(config.recipe(name), origin=name)
    except ConfigError as error:
        assert " missing;" in str(error), error  # the user's own file
print(*config.recipes())
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder of programs of an environment with the wheel alone."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)], check=True)
    (wheel,) = folder.glob("regardant-*.whl")
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    programs = folder / "venv" / "bin"
    constraints = os.environ | {"PIP_CONSTRAINT": str(ROOT / "constraints.txt")}
    subprocess.run([programs / "pip", "install", "--quiet", wheel], check=True, env=constraints)
    return programs


def run(program, *arguments, folder):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment.setdefault("REGARDANT_DATA", str(folder))
    return subprocess.run(
        [program, *map(str, arguments)], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_every_recipe_loads_from_the_wheel(installed, tmp_path):
    done = run(installed / "python", "-c", LOAD_ALL, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == list(config.recipes())


def test_the_demo_runs_from_the_wheel(installed, tmp_path):
    done = run(
        installed / "regardant", "train", "demo", "--set", "training.max_minutes=0.3", "--out", "d", folder=tmp_path
    )
    assert done.returncode == 0, done.stderr
    done = run(installed / "regardant", "translate", "d", "the cat sleeps .", folder=tmp_path)
    assert done.returncode == 0 and done.stdout.strip(), done.stderr


def test_what_an_extra_brings_is_asked_for_in_one_line(installed, tmp_path):
    done = run(installed / "regardant", "serve", "none", folder=tmp_path)
    assert done.returncode == 2 and "Traceback" not in done.stderr
