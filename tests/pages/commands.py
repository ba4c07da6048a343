"""The commands that a page shows, in order, and the files that it shows.

A block without a language is typed into a shell, line by line. Blocks of Python and YAML are files where their first
line names one. Within a sentence, a call of the program with arguments is a command if no word of it is a placeholder
in capitals. Blocks of `bash` stand in tutorials alone, whose code `tests/unit/docs/test_site.py` runs.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
}

BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<block>.*?)^```|`(?P<inline>regardant [^`]+)`", re.MULTILINE | re.DOTALL)
PLACEHOLDER = re.compile(r"\b[A-Z]{3,}\b|\.\.\.")
NAME = re.compile(r"(?:# |%%writefile )(\S+\.(?:yaml|py))\n")
"""First line of a block that is a file."""


@dataclass(frozen=True)
class Command:
    """A command of a page."""

    page: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.text}"


def commands(page: str) -> Iterator[Command]:
    """Yield the commands of a page, each once."""
    seen = set()
    for found in BLOCK.finditer(PAGES[page]):
        line = PAGES[page].count("\n", 0, found.start()) + 1
        for text in _typed(found):
            if text not in seen:
                seen.add(text)
                yield Command(page, line, text)


def _typed(found: re.Match[str]) -> list[str]:
    if inline := found["inline"]:
        text = re.sub(r"\s+", " ", inline)
        return [text] if " " in text.removeprefix("regardant ") and not PLACEHOLDER.search(text) else []
    if found["language"]:
        return []
    lines = re.sub(r"\\\n\s*", "", found["block"]).splitlines()
    return [text for line in lines if (text := re.sub(r"(^|\s+)# .*$", "", line).strip())]


def given_files(page: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the content of each file that a page shows."""
    for found in BLOCK.finditer(PAGES[page]):
        if found["language"] in ("yaml", "python") and (name := NAME.match(found["block"])):
            yield name[1], found["block"].removeprefix(name[0])
