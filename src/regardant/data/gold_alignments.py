"""Gold word alignments of a corpus, kept beside its text.

FOLDER/../links/NAME.links    the links of a set, a line per pair in Pharaoh format: 0-0 1-2
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

Link = tuple[int, int]
"""(source word, target word), counted from 0."""

LINKS_FOLDER = "links"


def write_gold_links(folder: Path, sets: Mapping[str, Iterable[Iterable[Link]]]) -> None:
    """Write the links of every pair of the named sets beside the corpus in `folder`."""
    links = folder.with_name(LINKS_FOLDER)
    links.mkdir(parents=True, exist_ok=True)
    for name, pairs in sets.items():
        lines = (" ".join(f"{source}-{target}" for source, target in sorted(pair)) for pair in pairs)
        (links / f"{name}.links").write_text("".join(line + "\n" for line in lines), encoding="ascii")


def gold_links(folder: Path, name: str) -> list[str] | None:
    """Return the links of a set of the corpus in `folder`, a line per pair. None if the corpus has none."""
    path = folder.with_name(LINKS_FOLDER) / f"{name}.links"
    return path.read_text(encoding="ascii").splitlines() if path.exists() else None
