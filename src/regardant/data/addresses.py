"""Addresses of shards: local files, folders and globs, or remote storage such as s3://bucket/folder.

fsspec opens them. S3 is read through pyarrow unless s3fs is installed; keys, region and AWS_ENDPOINT_URL are taken from
the environment.
"""

import importlib.util
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from regardant.data.text_files import place
from regardant.errors import DataError, first_line

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

KINDS = {".parquet": "parquet", ".jsonl": "json", ".json": "json", ".txt": "text", ".tsv": "text"}
"""Builders of the `datasets` library by shard suffix. Text shards may also end in .gz or .zst."""

COMPRESSED = (".gz", ".zst")

HIDDEN = ("_", ".")
"""Name prefixes of files and folders that hold no rows."""

MANIFEST = "_work.json"
"""File that bulk work writes first into its output folder."""


class Shard(NamedTuple):
    """A file of a corpus."""

    address: str
    size: int
    """Size in bytes."""

    @property
    def kind(self) -> str | None:
        """Builder that reads the file. None if no builder reads files with its suffix."""
        return KINDS.get(_suffix(self.address))


def find_shards(addresses: str | Sequence[str], root: str = "") -> list[Shard]:
    """Return the shards of files, globs and folders, sorted by address within each.

    Files whose names begin with _ or . are left out, and so is the content of subfolders with such names. Output of
    bulk work below a folder is left out if the folder has other shards. Relative paths start from `root`. Raises
    DataError if an address has no shards, or if the shards are of different kinds.
    """
    given = [addresses] if isinstance(addresses, str) else addresses
    shards = [
        shard for address in given for shard in _under(address if "://" in address else str(place(root, address)))
    ]
    if len({shard.kind for shard in shards}) > 1:
        raise DataError(f"{', '.join(given)} has several kinds of shards: give one kind, such as FOLDER/*.parquet")
    return shards


def fingerprint(shards: Iterable[Shard]) -> str:
    """Return the SHA-256 of the names and sizes of shards, without the folder they are in."""
    return sha256(repr([(shard.address.rpartition("/")[2], shard.size) for shard in shards]).encode()).hexdigest()


def storage(address: str) -> tuple["AbstractFileSystem", str]:
    """Return the file system of an address, and the path in it. Raises DataError."""
    from fsspec.core import url_to_fs

    if address.startswith(("s3:", "s3a:")) and importlib.util.find_spec("s3fs") is None:
        _read_s3_through_pyarrow()
    try:
        found: tuple[AbstractFileSystem, str] = url_to_fs(address)
        return found
    except (ValueError, ImportError, OSError) as error:
        raise DataError(
            f"{address} cannot be opened ({first_line(error)}): give a path or an address such as s3://..."
        ) from (error)


def read_zstd_through_pyarrow() -> None:
    """Let fsspec read and write .zst files through pyarrow, which needs no further package, continues across frames and
    raises OSError for a truncated file; zstandard does neither."""
    import pyarrow as pa
    from fsspec.compression import register_compression

    def opened(file: Any, mode: str = "rb", **options: Any) -> Any:
        stream = pa.PythonFile(file)
        if "r" in mode:
            return io.BufferedReader(pa.CompressedInputStream(stream, "zstd"))
        return pa.CompressedOutputStream(stream, "zstd")

    register_compression("zstd", opened, "zst", force=True)


def write_whole(address: str, write: Any) -> None:
    """Write a binary file through `write` under a temporary name, then move it to its address. Raises DataError."""
    files, path = storage(address)
    folder, _, name = path.rpartition("/")
    try:
        files.makedirs(folder, exist_ok=True)
        with _removed_on_error(files, f"{folder}/.{name}.{uuid4().hex}.part") as beside:
            with files.open(beside, "wb") as file:
                write(file)
            if files.exists(path):  # from an earlier worker, with the same content
                files.rm(path)
            files.mv(beside, path)
    except OSError as error:
        raise DataError(
            f"{address} cannot be written ({first_line(error)}): check free space and permissions"
        ) from error


@contextmanager
def _removed_on_error(files: "AbstractFileSystem", path: str) -> Iterator[str]:
    """Yield the path of a file that is removed if the block raises an error."""
    try:
        yield path
    except BaseException:
        with suppress(OSError):  # the file may not exist yet
            files.rm(path)
        raise


def _under(address: str) -> list[Shard]:
    files, path = storage(address)
    try:
        if not _has_wildcard(path) and files.isdir(path):
            found = _rows_below(path, files.find(path, detail=True))
        elif _has_wildcard(path):
            found = files.glob(path, detail=True)
        else:
            found = {path: files.info(path)}
    except FileNotFoundError:
        found = {}
    except OSError as error:
        raise DataError(f"{address} cannot be listed ({first_line(error)}): check the address and the keys") from error
    shards = [
        Shard(files.unstrip_protocol(name) if "://" in address else name, info["size"] or 0)
        for name, info in sorted(found.items())
        if info["type"] == "file" and not name.rpartition("/")[2].startswith(HIDDEN)
    ]
    if not shards:
        raise DataError(f"{address} has no file: give a folder, a glob such as FOLDER/*.parquet, or a file")
    if strange := next((shard for shard in shards if shard.kind is None), None):
        raise DataError(
            f"{strange.address} is not a shard: give files that end in {', '.join(KINDS)}, or text with .gz or .zst"
        )
    return shards


def _rows_below(folder: str, found: dict[str, Any]) -> dict[str, Any]:
    """Return the files below a folder that are not hidden, without output of bulk work if there are other files."""
    below = {name: name.strip("/").removeprefix(folder.strip("/")).strip("/") for name in found}
    shown = [name for name in found if not any(part.startswith(HIDDEN) for part in below[name].split("/"))]
    # The --out folder of bulk work may be inside its corpus. A resumed command must not read its own output.
    answers = tuple(one.removesuffix(MANIFEST) for one in below.values() if one.endswith(f"/{MANIFEST}"))
    others = [name for name in shown if not below[name].startswith(answers)]
    return {name: found[name] for name in others or shown}


def _has_wildcard(path: str) -> bool:
    return any(mark in path for mark in "*?[")


def _suffix(address: str) -> str:
    stem, suffix = os.path.splitext(address)
    return os.path.splitext(stem)[1] if suffix in COMPRESSED else suffix


def _read_s3_through_pyarrow() -> None:
    import fsspec
    from fsspec.implementations.arrow import ArrowFSWrapper
    from pyarrow.fs import S3FileSystem

    class ArrowS3(ArrowFSWrapper):  # type: ignore[misc]
        def __init__(self, **options: Any) -> None:
            super().__init__(S3FileSystem(endpoint_override=os.environ.get("AWS_ENDPOINT_URL") or None))

    fsspec.register_implementation("s3", ArrowS3, clobber=True)
