"""Labelled items in files of their own, such as images and recordings, in a folder or a .zip archive."""

import re
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Literal, Self

from pydantic import field_validator

from regardant.data.item_files import content_key, list_item_files, shown_name
from regardant.data.labelled import Labelled, LabelledConfig, Sets
from regardant.data.text_files import HALF_PAIR, place
from regardant.errors import DataError

SPLITS = {"train": "train", "test": "test", "validation": "validation", "valid": "validation", "val": "validation"}
"""Splits by the names of folders."""

SHOWN = 3
"""Number of folders that a log line names."""


class LabelledFilesConfig(LabelledConfig):
    """Base of sources that read files with an item each: a folder for each label, or labels in the names.

    Regular expressions must match the whole path of a file in the source, or its end from any folder on.
    """

    source: str
    """The folder or .zip archive."""

    root: str = ""
    """The folder that relative paths start from; the current one if empty."""

    label: str | None = None
    r"""Regular expression for the names of files, the label in parentheses: `(\d)_.*`. Files without a match are left
    out. Empty: the label is the name of the folder that holds the file."""

    validation: str | None = None
    """Regular expression for the files to validate on. Empty: a share of the training items."""

    test: str | None = None
    r"""Regular expression for the files to test on: `test/.*`, `.*_[0-4]\.wav`. Empty: tests are on the validation
    items."""

    @field_validator("label", "validation", "test")
    @classmethod
    def is_regular_expression(cls, pattern: str | None) -> str | None:
        """Refuse an invalid regular expression."""
        if pattern is not None:
            compiled(pattern)
        return pattern

    @field_validator("label")
    @classmethod
    def marks_the_label(cls, pattern: str | None) -> str | None:
        """Refuse a pattern of labels without exactly one pair of parentheses."""
        if pattern is not None and compiled(pattern).groups != 1:
            raise ValueError(r"needs one pair of parentheses, around the label, as in (\d)_.*")
        return pattern

    def chosen(self, log: Callable[[str], None]) -> Self:
        """Return the configuration with patterns for folders named test, validation, valid or val beside train, if the
        labels are folders in them and no pattern is given."""
        if self.label:
            return self
        labelled, unlabelled = self._files(place(self.root, self.source))
        if unlabelled:
            log(
                f"{self.source}: files directly in a folder of a split have no label and are left out: "
                f"{len(unlabelled):,}, such as {shown_name(unlabelled[0])}"
            )
        splits = {_split_folder(name) for name in labelled} - {""}
        if self.test or self.validation or "train" not in splits:
            return self
        if others := sorted(splits - SPLITS.keys()):
            found = ", ".join(sorted(splits & SPLITS.keys()))
            log(
                f"{self.source}: no splits by folder ({found}), because {', '.join(others[:SHOWN])} beside them also "
                f"{'has' if len(others) == 1 else 'have'} folders of labels: move these out, or set data.test and "
                "data.validation"
            )
            return self
        log(f"{self.source}: splits by folder, {', '.join(sorted(splits))}")
        patterns: dict[str, str] = {}
        for folder in sorted(splits - {"train"}):
            purpose = SPLITS[folder]
            patterns[purpose] = "|".join(filter(None, [patterns.get(purpose), rf"{folder}/[^/]*/[^/]*"]))
        return self.model_copy(update=patterns)

    def read(self, seed: int) -> Sets:
        sets: Sets = {"train": [], "validation": [], "test": []}
        for name, item in self.items(place(self.root, self.source)).items():
            sets[self._split_of(name)].append(item)
        for split, pattern in (("test", self.test), ("validation", self.validation)):
            if pattern is not None and not sets[split]:
                raise DataError(
                    f"data.{split}: no labelled file of {self.source} matches {pattern}: correct the pattern"
                )
        if not sets["train"]:
            raise DataError(f"{self.source} leaves no files to train on: correct data.validation or data.test")
        if self.validation is None:
            sets |= self.split_off(sets["train"], seed)
        return {split: items for split, items in sets.items() if items}

    def group_of(self, labelled: Labelled) -> Hashable:
        return content_key(labelled[0])

    def given(self, data: Path) -> list[Labelled]:
        """Return the labelled files of a folder or archive that `test` matches; all of them if it matches none."""
        items = self.items(data)
        tests = [item for name, item in items.items() if self._split_of(name) == "test"]
        return tests or list(items.values())

    def items(self, source: Path) -> dict[str, Labelled]:
        """Return the labelled files of a folder or archive by their paths inside it. Raises DataError."""
        return self._files(source)[0]

    def _files(self, source: Path) -> tuple[dict[str, Labelled], list[str]]:
        """Return the labelled files by their paths, and the paths of files that lie directly in a folder of a split.

        These have no label: they are lists of the other files, or items whose labels are not published. Raises
        DataError.
        """
        files = list_item_files(source)
        labelled = {name: (file, self._label_of(name)) for name, file in files.items()}
        found = {name: (file, label) for name, (file, label) in labelled.items() if label}
        if not found:
            wanted = "in a folder, whose name is the label" if self.label is None else f"that matches {self.label}"
            example = f" (the first is {shown_name(next(iter(files)))})" if files else ""
            raise DataError(
                f"{source} has {len(files):,} files{example}, none {wanted}: correct data.source or data.label"
            )
        if self.label is not None or not any(_split_folder(name) == "train" for name in found):
            return found, []
        unlabelled = [name for name in found if _lies_in_split(name)]
        return {name: one for name, one in found.items() if not _lies_in_split(name)}, unlabelled

    def _label_of(self, name: str) -> str:
        """Return the label of a file, empty if it has none. Raises DataError for one that is not UTF-8."""
        if self.label is None:
            label = Path(name).parent.name
        else:
            match = _matched(self.label, name)
            label = (match[1] or "").strip() if match else ""
        if HALF_PAIR.search(label):
            raise DataError(f"{shown_name(name)}: the label is not UTF-8: rename the file or its folder in UTF-8")
        return label

    def _split_of(self, name: str) -> str:
        for split, pattern in (("test", self.test), ("validation", self.validation)):
            if pattern is not None and _matched(pattern, name):
                return split
        return "train"


class FoldersConfig(LabelledFilesConfig):
    """Files with an item each, in a folder or a .zip archive."""

    kind: Literal["folders"] = "folders"

    def validates_on_share(self) -> bool:
        return self.validation is None


def compiled(pattern: str) -> re.Pattern[str]:
    """Return a compiled regular expression. Raises ValueError for an invalid one."""
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:  # the last two: huge repetitions, deeply nested groups
        raise ValueError(f"is not a regular expression: {error}") from error


def _split_folder(name: str) -> str:
    """Return the name of the folder that holds the folder of the label. Empty if there is none."""
    return Path(name).parent.parent.name


def _lies_in_split(name: str) -> bool:
    """Return whether a file lies directly in the folder of a split, not in a folder of a label in it."""
    return Path(name).parent.name in SPLITS and _split_folder(name) not in SPLITS


def _matched(pattern: str, name: str) -> re.Match[str] | None:
    """Match a path from its start, or from any of its folders on, to its end."""
    starts = [0, *(slash.end() for slash in re.finditer("/", name))]
    matches = (re.compile(pattern).fullmatch(name, start) for start in starts)
    return next((match for match in matches if match), None)
