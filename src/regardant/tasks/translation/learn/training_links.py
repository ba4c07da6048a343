"""Word alignments of the training pairs for alignment guidance, kept in the run folder, one line per pair.

Links of the embedded grammar are gold and count the words of `data.words`. Links of a file are those of an aligner and
count words between white space.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from regardant.config import Config
from regardant.data.gold_alignments import LINKS_FOLDER
from regardant.data.parallel import PairsConfig, Splits
from regardant.errors import DataError
from regardant.evaluation.alignment import CharacterSpan, Link, parse_links
from regardant.files import write_atomically
from regardant.tasks.translation.look.alignment import spans_of_words


@dataclass(frozen=True)
class TrainingLinks:
    """Word alignments of the training pairs, one line per pair in the order of the split."""

    lines: list[str]
    """`0-0 1-2`, source first."""
    spans: Callable[[str], list[CharacterSpan]]
    """Function that returns the spans of the words that the links count."""

    def of(self, index: int) -> set[Link]:
        """Return the links of one pair."""
        return parse_links(self.lines[index])


def read_links(data: Config, splits: Splits, text: Path) -> TrainingLinks:
    """Return the links of the corpus that was read into the folder `text`. Raises DataError if they do not fit the
    pairs."""
    path = text.with_name(LINKS_FOLDER) / "train.links"
    given = isinstance(data, PairsConfig)
    spans = spans_between_white_space if given else spans_of_words
    if isinstance(data, PairsConfig) and not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, "".join(f"{line}\n" for line in _checked(data, splits, spans)))
    return TrainingLinks(path.read_text(encoding="utf-8").split("\n")[:-1], spans)


def spans_between_white_space(text: str) -> list[CharacterSpan]:
    """Return the spans of an aligner's words, which are divided by white space."""
    return [match.span() for match in re.finditer(r"\S+", text)]


def _checked(data: PairsConfig, splits: Splits, spans: Callable[[str], list[CharacterSpan]]) -> Iterator[str]:
    for (source, target), line in zip(_pairs(splits), data.training_links(_pairs(splits)), strict=True):
        sizes = len(spans(source)), len(spans(target))
        for link in parse_links(line):
            if link[0] >= sizes[0] or link[1] >= sizes[1]:
                raise DataError(
                    f"{data.links}: link {link[0]}-{link[1]} of a pair of {sizes[0]} and {sizes[1]} words "
                    f"({source[:40]!r}): count from 0, source first, the words between white space"
                )
        yield line


def _pairs(splits: Splits) -> Iterator[tuple[str, str]]:
    for chunk in splits.train.iter(batch_size=10_000):
        yield from zip(chunk["source"], chunk["target"], strict=True)
