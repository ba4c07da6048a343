"""Every loader of files that a user or another machine may have written, fed with changed files.

A case is a good file with a few random changes of bytes, a part of another one, or random bytes. It has to end in a
value or in an error of the package, in one line, soon, and without writing anything.
"""

import contextlib
import faulthandler
import os
import sys
import time
import wave
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from regardant.config import read_yaml
from regardant.data.labelled_graphs import read_graphs
from regardant.data.recordings import read_recording
from regardant.data.series import read_series
from regardant.data.tables import read_columns
from regardant.data.text_files import read_lines, read_text
from regardant.data.tokenizers import Tokenizers
from regardant.data.treebank import read_treebank
from regardant.errors import RegardantError
from regardant.modalities.pixels import as_pixels
from regardant.run.folder import Record
from regardant.tasks import load_recipe
from regardant.training.checkpoints import latest_checkpoint, load_checkpoint, load_weights
from regardant.training.events import read_events

HERE = Path(__file__).parent
GOLDEN = HERE.parent / "golden" / "format-2"
RECIPES = HERE.parents[1] / "src" / "regardant" / "recipes"

MOST_SECONDS = 10.0
"""Seconds after which an answer is a hang."""

CONLLU = "# text = The cat sees.\n1\tThe\tthe\tDET\tDT\t_\t2\tdet\t_\t_\n2\tcat\tcat\tNOUN\tNN\t_\t0\troot\t_\t_\n\n"
GRAPH = '{"nodes": [[1, 2], [3, 4]], "edges": [[0, 1]], "label": "a"}\n'
SERIES = "date,a,b\n2026-01-01 00:00,1,2\n2026-01-01 01:00,2.5,-3\n2026-01-01 02:00,3,4\n"
TABLE = {"text": ["the cat", "a dog"], "label": ["a", "b"]}
"""Small good files."""


@dataclass(frozen=True)
class Loader:
    """A loader of files of one kind."""

    name: str
    """Name of the file that it reads."""
    read: Callable[[Path], object]
    good: Sequence[bytes]


def _sound() -> bytes:
    written = BytesIO()
    with wave.open(written, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(Random(1).randbytes(400))
    return written.getvalue()


def _picture() -> bytes:
    written = BytesIO()
    Image.new("L", (8, 8), 90).save(written, "PNG")
    return written.getvalue()


def _parquet() -> bytes:
    written = BytesIO()
    pq.write_table(pa.table(TABLE), written)
    return written.getvalue()


def _stored(pattern: str) -> list[bytes]:
    found = [path.read_bytes() for path in sorted(GOLDEN.glob(pattern))]
    assert found, pattern
    return found


def _table(path: Path) -> object:
    return list(read_columns(path, ["text", "label"]))


def _checkpoint(path: Path) -> object:
    with contextlib.suppress(RegardantError):
        load_checkpoint(path)
    return latest_checkpoint(path.parents[1])


def loaders() -> dict[str, Loader]:
    """Return all loaders by name."""
    recipes = [
        (RECIPES / f"{name}.yaml").read_bytes() for name in ("demo", "copy", "digits-vit", "in-context", "cora-graph")
    ]
    return {
        "recipe": Loader("a.yaml", lambda path: load_recipe(read_yaml(path)), recipes),
        "run.yaml": Loader("run.yaml", lambda path: Record.read(path.parent), _stored("*/run.yaml")),
        "metrics": Loader("metrics.jsonl", read_events, _stored("*/metrics.jsonl")),
        "weights": Loader("model.safetensors", load_weights, _stored("*/model.safetensors")),
        "checkpoint": Loader("checkpoints/update-00000001.pt", _checkpoint, _stored("language*/checkpoints/*.pt")),
        "tokenizer": Loader("tokenizer.json", Tokenizers.load, _stored("*/tokenizer.json")),
        "lines": Loader("a.txt", lambda path: list(read_lines(path)), [b"the cat\na dog\n", "é ü\n\n漢字\n".encode()]),
        "text": Loader("a.txt", lambda path: list(read_text(path)), [b"the cat\na dog\n", "é ü\n\n漢字\n".encode()]),
        "csv": Loader("a.csv", _table, [b'text,label\n"the, cat",a\na dog,b\n']),
        "tsv": Loader("a.tsv", _table, [b"text\tlabel\nthe cat\ta\na dog\tb\n"]),
        "jsonl": Loader("a.jsonl", _table, [b'{"text": "the cat", "label": "a"}\n{"text": "a dog", "label": "b"}\n']),
        "parquet": Loader("a.parquet", _table, [_parquet()]),
        "series": Loader("a.csv", read_series, [SERIES.encode()]),
        "treebank": Loader("a.conllu", lambda path: list(read_treebank(path)), [CONLLU.encode()]),
        "graphs": Loader("a.jsonl", lambda path: list(read_graphs(path)), [GRAPH.encode()]),
        "recording": Loader("a.wav", read_recording, [_sound()]),
        "picture": Loader("a.png", lambda path: as_pixels(path, path.name), [_picture()]),
    }


def changed(good: Sequence[bytes], random: Random) -> bytes:
    """Return a good file with random changes, or random bytes."""
    if random.random() < 0.02:
        return random.randbytes(random.randrange(200))
    content = bytearray(random.choice(good))
    for _ in range(random.choice((1, 1, 2, 4, 8))):
        at = random.randrange(len(content) + 1)
        length = random.choice((1, 1, 2, 4, 16, 64))
        kind = random.randrange(7)
        if kind == 0 and at < len(content):
            content[at] ^= 1 << random.randrange(8)
        elif kind == 1:
            content[at : at + length] = random.randbytes(length)
        elif kind == 2:
            del content[at : at + length]
        elif kind == 3:
            content[at:at] = content[at : at + length] * random.choice((1, 2, 50))
        elif kind == 4:
            content[at:at] = random.choice(ODD)
        elif kind == 5:
            other = random.choice(good)
            start = random.randrange(len(other) + 1)
            content[at : at + length] = other[start : start + length]
        elif random.random() < 0.2:
            del content[at:]
    return bytes(content)


ODD = (
    *(
        b"\0",
        b"\xff",
        b"\r",
        b"\n",
        b'"',
        b"{",
        b"[" * 500,
        b"[" * 5000,
        b"]",
        b",",
        b"\t",
        b": ",
        b"- ",
        b"&a ",
        b"*a",
        b"!!bool ",
    ),
    *(b"null", b"NaN", b"-1", b"1e999", b"9" * 400, b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xf0\x9f\x98\x80", b"a" * 5000),
)
"""Texts that break readers."""


def fuzz(loader: Loader, folder: Path, cases: int, seed: int) -> list[str]:
    """Read so many changed files. Return what went wrong, with the number of the case."""
    random, wrong, path = Random(seed), [], folder / loader.name
    path.parent.mkdir(parents=True, exist_ok=True)
    faulthandler.dump_traceback_later(60 + cases, exit=True)
    for number in range(cases):
        content = changed(loader.good, random)
        path.write_bytes(content)
        began = time.process_time()
        try:
            with written_files() as written:
                loader.read(path)
        except RegardantError as error:
            if "Traceback" in str(error) or not str(error):
                wrong.append(f"case {number}: {error}")
        except BaseException as error:  # also a panic of a library in Rust
            wrong.append(f"case {number}: {type(error).__name__}: {str(error)[:200]}: {content[:60]!r}")
        if (took := time.process_time() - began) > MOST_SECONDS:
            wrong.append(f"case {number}: {took:.0f} s")
        wrong += [f"case {number}: wrote {one}" for one in written]
    faulthandler.cancel_dump_traceback_later()
    return wrong


_WRITTEN: list[str] | None = None


@contextlib.contextmanager
def written_files() -> Iterator[list[str]]:
    """Collect the paths that this process writes, moves, makes or removes while the block runs."""
    global _WRITTEN
    _install()
    found: list[str] = []
    _WRITTEN = found
    try:
        yield found
    finally:
        _WRITTEN = None


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if _WRITTEN is None:
        return
    if event == "open":
        path, mode, flags = arguments
        writes = any(letter in mode for letter in "wax+") if mode else flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if writes and not str(path).startswith("/dev/"):
            _WRITTEN.append(str(path))
    elif event in ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.symlink", "subprocess.Popen", "os.system"):
        _WRITTEN.append(f"{event} {arguments[0]}")


def _install() -> None:
    if not getattr(sys, "_regardant_watched", False):
        sys.addaudithook(_watch)
        sys._regardant_watched = True  # type: ignore[attr-defined]
