"""Links of a page, which decide which files are staged with it."""

import re
from collections.abc import Callable
from pathlib import Path

LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
"""Pattern of a Markdown link, with groups for its start, the target without the anchor, and the rest."""


class BrokenLinkError(ValueError):
    """A link to a file that is not in the repository."""


def local_links(text: str) -> list[tuple[int, str]]:
    """Return line number and target of every link to a file, outside fenced code."""
    found = []
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            found += [(number, match[2]) for match in LINK.finditer(line) if not _is_address(match[2])]
    return found


def follow(page: Path, root: Path, linked: Callable[[Path], None]) -> str:
    """Return the text of a page with `index.md` added to the links to folders; call `linked` for each linked path.

    Raises BrokenLinkError for a link to nothing, or to a place outside the root.
    """
    text = page.read_text(encoding="utf-8")
    folders = set()
    for number, target in local_links(text):
        path = (page.parent / target).resolve()
        if not path.exists() or not path.is_relative_to(root):
            raise BrokenLinkError(
                f"{page.relative_to(root)}:{number}: links to {target}, which is not in the repository"
            )
        if path.is_dir():
            folders.add(target)
        linked(path)
    return LINK.sub(lambda match: _with_index(match, folders), text)


def _with_index(match: re.Match[str], folders: set[str]) -> str:
    target = f"{match[2].rstrip('/')}/index.md" if match[2] in folders else match[2]
    return match[1] + target + match[3]


def _is_address(target: str) -> bool:
    return "://" in target or target.startswith("mailto:")
