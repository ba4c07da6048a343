"""The list of planted bugs: small changes of the package, each with the test that has to fail.

A bug is a text that occurs exactly once in the package, and the text in its place. The test is named by its function;
by `FILE::FUNCTION` if several test files define that function, and with `[CASE]` if one case is enough. No folder is
named, so the list stays valid when code and tests move.
"""

import re
import tomllib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PACKAGE = ROOT / "src" / "regardant"


@dataclass(frozen=True)
class Mutant:
    """One planted bug."""

    room: str
    """Name of the file that lists it: the room of the package, such as `attention`."""
    bug: str
    """Behaviour of the changed package, in a sentence."""
    old: str
    """Text that occurs exactly once in the package."""
    new: str
    """Text in its place."""
    test: str
    """The test that fails with the bug planted: `[FILE::]FUNCTION[[CASE]]`."""

    @property
    def node(self) -> str:
        """The test as FILE::FUNCTION[CASE], relative to the repository root. Raises ValueError unless it is unique."""
        test, bracket, case = self.test.partition("[")
        file, _, function = test.rpartition("::")
        files = [path for path in defining_files().get(function, []) if file in ("", path.name)]
        if len(files) != 1:
            raise ValueError(f"{len(files)} test files define {test}: name one as FILE::FUNCTION")
        return f"{files[0]}::{function}{bracket}{case}"

    def files(self, sources: Mapping[Path, str]) -> list[Path]:
        """Return the files whose text holds `old`, each as often as it does."""
        return [path for path, text in sources.items() for _ in range(text.count(self.old))]

    def plant(self, package: Path) -> Path:
        """Change this copy of the package; return the changed file. Raises ValueError unless `old` occurs once."""
        sources = read_sources(package)
        files = self.files(sources)
        if len(files) != 1:
            raise ValueError(f"the text to replace occurs {len(files)} times: {self.old!r}")
        (path,) = files
        path.write_text(sources[path].replace(self.old, self.new), "utf-8")
        return path


def read_sources(package: Path) -> Mapping[Path, str]:
    """Return the texts of a package's Python files."""
    return {path: path.read_text("utf-8") for path in sorted(package.rglob("*.py"))}


def read_mutants() -> Sequence[Mutant]:
    """Return all planted bugs, room by room."""
    return [
        Mutant(room=path.stem, **entry)
        for path in sorted(HERE.glob("*.toml"))
        for entry in tomllib.loads(path.read_text("utf-8"))["mutant"]
    ]


@cache
def defining_files() -> Mapping[str, Sequence[Path]]:
    """Return the files, relative to the repository root, that define each test function."""
    found: dict[str, list[Path]] = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for function in re.findall(r"^def (test_\w+)", path.read_text("utf-8"), re.MULTILINE):
            found[function].append(path.relative_to(ROOT))
    return found
