"""Conversion of request items to the form that a run reads. Files are sent in the request: no path in a request is
ever opened.
"""

import base64
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from regardant.errors import RegardantError
from regardant.modalities.pixels import shape_of
from regardant.run import Run
from regardant.server.limits import Limits, Refusal
from regardant.server.worker import Worker
from regardant.tasks.base import TaskConfig

COMPRESSED = frozenset({".gz", ".zst", ".flac"})
"""Suffixes of compressed files, which are refused: their content may be far larger than the file."""

PICTURES = frozenset({".png", ".jpg", ".jpeg"})
"""Suffixes of compressed images, whose number of pixels is in the header of the file."""

WAV, RIFF = ".wav", b"RIFF"
"""Suffix of uncompressed sound, and its first bytes. Readers go by the first bytes, and would accept FLAC, too."""

LONGEST_NAME = 255
"""Maximum length of a file name [bytes in UTF-8], the limit of file systems."""


def suffixes_of(suffixes: Sequence[str]) -> list[str]:
    """Return the suffixes of files that a request may hold."""
    return [suffix for suffix in suffixes if suffix not in COMPRESSED]


@contextmanager
def given(
    worker: Worker[Run], items: Sequence[Any], limits: Limits, place: str = "items[{}]"
) -> Iterator[tuple[list[str], str]]:
    """Yield items in the form that the run reads, and the folder of their files, which is removed after the block.

    Error messages name files as the request does, and an item by its `place` in the request, with its number in braces.
    """
    with TemporaryDirectory(prefix="regardant-") as folder:
        try:
            yield read_items(worker.run.config, items, Path(folder), limits, place), f"{folder}/"
        except RegardantError as error:
            if isinstance(error, Refusal) or folder not in str(error):
                raise
            raise Refusal(str(error).replace(f"{folder}/", "")) from error


def read_items(config: TaskConfig, items: Sequence[Any], folder: Path, limits: Limits, place: str) -> list[str]:
    """Return items as arguments of a command line. Files are written to `folder`.

    Raises Refusal for an item that is too long, blank, or not of the kind that the run reads.
    """
    limits.require_rows("items", items)
    parts = getattr(config.modality, "parts", None)
    found = []
    for number, item in enumerate(items):
        name, own = place.format(number), folder / str(number)
        if parts is None:
            found.append(_argument(item, config.suffixes, own, limits, name))
        elif not isinstance(item, dict) or set(item) != set(parts):
            raise Refusal(f"{name} is no item of the parts {', '.join(parts)}: give an object with these fields")
        else:
            read = {
                part: _argument(item[part], kind.suffixes, own / part, limits, f"{name}.{part}")
                for part, kind in parts.items()
            }
            found.append(json.dumps(read, ensure_ascii=False))
    return found


def _argument(item: Any, suffixes: Sequence[str], folder: Path, limits: Limits, place: str) -> str:
    if suffixes:
        path = _written(item, suffixes_of(suffixes), folder, place)
        if path.suffix.lower() in PICTURES:
            limits.require_picture(place, shape_of(path, path.name))
        return str(path)
    argument = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
    limits.require_text(place, argument)
    if not argument.strip():
        raise Refusal(f"{place} is blank: give a text")
    return argument


def _written(item: Any, suffixes: Sequence[str], folder: Path, place: str) -> Path:
    """Write a file of a request into a folder of its own, and return its path."""
    try:
        name, content = Path(item["name"]).name, base64.b64decode("".join(item["content"].split()), validate=True)
    except (TypeError, KeyError, AttributeError, ValueError):
        name, content = "", b""
    suffix = Path(name).suffix.lower()
    is_sound = suffix != WAV or content.startswith(RIFF)
    if suffix not in suffixes or not is_sound or "\0" in name:
        raise Refusal(
            f"{place} is no file: give an object with a `name` that ends in {', '.join(suffixes)}, and as `content` "
            "the bytes of the file in base64"
        )
    require_file_name(name, place)
    folder.mkdir(parents=True)
    (folder / name).write_bytes(content)
    return folder / name


def require_file_name(name: str, place: str) -> None:
    """Raise Refusal for a name that no file can have."""
    try:
        length = len(name.encode())
    except UnicodeEncodeError as error:
        raise Refusal(f"the name of {place} has half of a character (a lone surrogate): give another name") from error
    if length > LONGEST_NAME:
        raise Refusal(f"the name of {place} has {length:,} bytes, allowed are {LONGEST_NAME}: shorten it")
