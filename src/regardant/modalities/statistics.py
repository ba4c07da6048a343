"""Files of a run with the statistics of its training items, by which a codec normalises all items."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regardant.errors import RunError
from regardant.files import write_atomically

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def save_statistics(path: Path, statistics: "DataclassInstance") -> None:
    """Write statistics to a file."""
    write_atomically(path, json.dumps(asdict(statistics), ensure_ascii=False) + "\n")


@contextmanager
def saved_statistics(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the fields of the statistics in a file.

    Raises RunError for a damaged file, also where the block raises ValueError or TypeError for its content.
    """
    try:
        yield json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError) as error:
        raise RunError(f"{path} is damaged ({error}): restore it or train again") from error
