"""Items to train, to validate and to test on."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from random import Random
from typing import Any, TypeVar

from regardant.config import Config
from regardant.errors import DataError

Item = TypeVar("Item")

PURPOSES = {"train": "train on", "validation": "validate on", "test": "test on"}
"""The use of a split, for messages."""


class FilesConfig(Config):
    """Base of sources that read files: one to train on and, if they are given, one to validate and one to test on."""

    source: str
    """The file to train on."""

    validation: str | None = None
    """The file to validate on. Empty: a share of the training items."""

    test: str | None = None
    """The file to test on. Empty: tests are on the validation items."""

    root: str = ""
    """The folder that relative paths start from; the current one if empty."""

    def validates_on_share(self) -> bool:
        """Return whether a random share of the training items is validated on."""
        return self.validation is None

    def sets(
        self, items: Callable[[str], Iterable[Item]], key: Callable[[Item], Hashable], share: float, seed: int
    ) -> dict[str, list[Item]]:
        """Return the items of all splits; `items` reads those of a file.

        Without a validation file, a random share of the training items is validated on, and items of one `key` are in
        one split. Raises DataError if a split is empty.
        """
        return read_sets(items, [self.source], key, validation=self.validation, test=self.test, share=share, seed=seed)


def read_sets(
    read: Callable[[str], Iterable[Item]],
    train: Sequence[str],
    key: Callable[[Item], Hashable],
    *,
    validation: str | None,
    test: str | None,
    share: float,
    seed: int,
) -> dict[str, list[Item]]:
    """Read the items of all splits from files.

    Without a validation file, a random `share` of the training items is validated on: a share of the groups of items
    that have one `key`, such as equal texts. No group is in two splits. Raises DataError if a split is empty.
    """
    files = {name: file for name, file in (("validation", validation), ("test", test)) if file is not None}
    items = [item for file in train for item in read(file)]
    sets = {"train": items}
    if validation is None:
        sets = split_at_random(items, key, share, seed)
    sets |= {name: list(read(file)) for name, file in files.items()}
    require_items(sets, files, ", ".join(train))
    return sets


def split_at_random(
    items: Iterable[Item], key: Callable[[Item], Hashable], share: float, seed: int
) -> dict[str, list[Item]]:
    """Return a random `share` of the groups of items that have one `key` to validate on, the others to train on."""
    groups = grouped(items, key)
    Random(seed).shuffle(groups)
    count = max(1, round(share * len(groups)))
    parts = {"train": groups[count:], "validation": groups[:count]}
    return {name: [item for group in part for item in group] for name, part in parts.items()}


def require_items(sets: Mapping[str, Sequence[Any]], files: Mapping[str, str | None], source: str) -> None:
    """Raise DataError if a split is empty. `files` has the files of splits by name; the others are of `source`."""
    for name, found in sets.items():
        if not found:
            raise DataError(f"nothing to {PURPOSES[name]} is left of {files.get(name) or source}: give more")


def grouped(items: Iterable[Item], key: Callable[[Item], Hashable]) -> list[list[Item]]:
    """Return the items of each key, in the order of their first items."""
    groups: dict[Hashable, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return list(groups.values())
