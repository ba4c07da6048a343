"""The pages of the repository in a folder of their own, each at the path that it has in the repository."""

import shutil
from pathlib import Path

from .links import follow

PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    "docs/*.md",
    "docs/decisions/*.md",
    "docs/reference/*.md",
    "docs/tutorials/*.md",
]
"""Patterns of the pages in the repository."""


def stage(root: Path, folder: Path) -> None:
    """Copy all pages, and the files and folders that they link to, into a folder.

    A linked folder gets a page that lists its files. Raises BrokenLinkError for a link to nothing.
    """
    folders = set()

    def bring(path: Path) -> None:
        if path.is_dir():
            folders.add(path)
        elif path.suffix != ".md":
            _copy(path, folder / path.relative_to(root))

    for page in (page for pattern in PAGES for page in sorted(root.glob(pattern))):
        write(folder / page.relative_to(root), follow(page, root, bring))
    for linked in sorted(folders):
        write(folder / linked.relative_to(root) / "index.md", _listing(linked, root, folder))


def title(page: Path) -> str:
    """Return the first heading of a page."""
    return next(
        line.removeprefix("# ") for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("# ")
    )


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _listing(linked: Path, root: Path, folder: Path) -> str:
    lines = [f"# {linked.relative_to(root)}", ""]
    for path in sorted(path for path in linked.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
        name = path.relative_to(linked).as_posix()
        if path.suffix == ".md":
            lines.append(f"- [{title(path)}]({name})")
        else:
            _copy(path, folder / path.relative_to(root))
            lines.append(f"- [`{name}`]({name})")
    return "\n".join([*lines, ""])


def _copy(path: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, to)
