"""Rooms import downwards, foreign libraries enter by one door, and commands that need no torch do not import it."""

import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest

import regardant

ROOT = Path(__file__).parents[2]
PACKAGE = Path(regardant.__file__).parent
PROGRAMS = Path(sys.executable).parent
DOORS = {
    "sacrebleu": "evaluation",
    "jiwer": "evaluation",
    "lightning_fabric": "training",
    "typer": "cli",
    "ctranslate2": "interop",
    "fastapi": "studio server",
    "uvicorn": "studio server",
    "plotly": "studio",
    "prometheus_client": "server",
    "PIL": "modalities",
    "sklearn": "data",
    "soundfile": "data",
    "networkx": "data",
}
ASSETS = {"recipes"}
"""Folders of the package that hold no code."""


def contracts() -> list[dict[str, Any]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = settings["tool"]["importlinter"]["contracts"]
    return found


def rooms() -> set[str]:
    found = {path.stem for path in PACKAGE.iterdir() if path.is_dir() or path.suffix == ".py"}
    return {name for name in found if not name.startswith("_")} - ASSETS


def test_every_import_contract_is_kept():
    done = subprocess.run(
        [PROGRAMS / "lint-imports", "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout
    assert f"Contracts: {len(contracts())} kept, 0 broken." in done.stdout


def test_every_folder_of_code_is_a_package():
    """The import checker skips folders without an __init__.py."""
    folders = {module.parent for module in PACKAGE.rglob("*.py")}
    assert {str(folder) for folder in folders if not (folder / "__init__.py").is_file()} == set()


def test_every_room_has_its_place_in_the_order():
    order = next(contract for contract in contracts() if contract["type"] == "layers")
    assert order["exhaustive"]
    assert sorted(room.strip() for layer in order["layers"] for room in layer.split("|")) == sorted(rooms())


@pytest.mark.parametrize(("library", "door"), DOORS.items())
def test_a_foreign_library_is_forbidden_in_every_room_but_its_doors(library, door):
    (contract,) = (one for one in contracts() if one.get("forbidden_modules") == [library])
    closed = {name.removeprefix("regardant.") for name in contract["source_modules"]}
    assert closed >= rooms() - {*door.split(), "errors"}
    assert closed.isdisjoint(door.split())


@pytest.mark.parametrize(
    ("statement", "heavy"),
    [
        ("import regardant", []),
        ("import regardant.cli", []),
        ("main('--help')", []),
        ("main('--version')", ["pydantic"]),  # typer reads options with it
        ("main('translate', '--help')", ["pydantic"]),
        ("main('verify', '--help')", ["pydantic"]),
        ("main('compare', '--help')", ["pydantic"]),
        ("main('recipes')", ["pydantic"]),
        ("main('train', 'no-such-recipe')", ["pydantic"]),
    ],
)
def test_what_needs_no_heavy_library_imports_none(statement, heavy):
    watched = {"torch", "pydantic", "numpy", "datasets", "pyarrow", "lightning_fabric", "sacrebleu", "tokenizers"}
    program = f"""
import atexit, sys
atexit.register(lambda: print(*sorted({watched} & set(sys.modules)), file=sys.stderr))

def main(*arguments):
    from regardant import cli
    sys.argv = ["regardant", *arguments]
    cli.main()

{statement}
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].split() == heavy


def test_using_a_run_waits_for_no_library_of_training_alone():
    libraries = {"lightning_fabric", "datasets", "pandas", "scipy", "torch"}
    program = f"import regardant.run, sys; print(*sorted({libraries} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["torch"], done.stderr


def test_help_answers_at_once():
    """Help takes under 0.3 s on an idle machine; the best of three is tested, since this machine may be busy."""
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        subprocess.run([PROGRAMS / "regardant", "--help"], check=True, capture_output=True, timeout=60)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 1.0
