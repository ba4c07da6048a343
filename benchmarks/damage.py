"""Damage to the files of a run: single bits that are flipped, and edits of entries, lines, tensors and blocks.

A damaged run must be refused by a line that names the file, or answer as before.
"""

import hashlib
import io
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import torch
import yaml
from safetensors.torch import load, save

import regardant
from regardant.errors import RegardantError, RunError
from regardant.run.comparing import compare
from regardant.training.checkpoints import latest_checkpoint, load_checkpoint

UNREAD = ("tensorboard", "measures", "report.html", "attention.svg")
"""Files and folders that the package never reads again: logs, tables and pages for people."""

DIAGNOSED = ("metrics.jsonl", "run.yaml")
"""Files that the doctor reads beside those of the model and the data."""

APART = ("checkpoints", "engines", "evaluation")
"""Folders read by a resumed training, an engine and a comparison, which the answers of the model do not depend on."""

DECODED = 4
"""Number of validation items that a damaged export translates."""

Change = Callable[[bytes], bytes]


def outputs(folder: Path, items: Sequence[str], *, doctor: bool = True) -> Any:
    """Return a run's predictions for items, and its scores without times. `doctor`: diagnose the run, too."""
    run = regardant.load(folder)
    predicted = [one.as_dict() for one in run.predict(items)]
    scores = {
        name: {key: value for key, value in numbers.items() if "second" not in key}
        for name, numbers in run.evaluate().items()
    }
    if doctor:
        run.doctor()
    return json.loads(json.dumps([predicted, scores], default=str))


def outputs_of(file: Path, run: Path, folder: Path, items: Sequence[str]) -> Any:
    """Return the outputs that depend on a file. `folder` is a copy of `run`, with this file damaged or as it was."""
    kind = file.parts[0]
    if kind == "checkpoints":
        return resumed_state(folder)
    if kind == "engines":
        opened = regardant.load(folder)
        try:
            opened.trained.export_differences(DECODED)  # which `check` compares
        except RunError as error:  # `translate` makes the export again
            if str(folder / file.parent) not in str(error):
                raise
        found = opened.translate(items, engine=file.parts[1])
        return [(one.text, round(one.score, 4)) for one in found]
    if kind == "evaluation":
        return json.loads(json.dumps(compare([run, folder]).as_dict(), default=str))
    return outputs(folder, items, doctor=file.name in DIAGNOSED)


def resumed_state(folder: Path) -> str:
    """Return the SHA-256 of the weights that a resumed training starts from."""
    path = latest_checkpoint(folder)
    assert path is not None
    digest = hashlib.sha256()
    for tensor in load_checkpoint(path)["model"].values():
        digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()


def files_of(folder: Path) -> list[Path]:
    """Return the files of a run to damage, relative to its folder."""
    found = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return [path for path in found if path.parts[0] not in UNREAD and not path.name.startswith(".")]


def flips(random: Random, count: int) -> Iterator[tuple[str, Change]]:
    """Yield `count` flips of a random bit of a file."""
    for _ in range(count):
        share, bit = random.random(), 1 << random.randrange(8)

        def flip(content: bytes, share: float = share, bit: int = bit) -> bytes:
            changed = bytearray(content)
            if changed:
                changed[int(share * len(changed))] ^= bit
            return bytes(changed)

        yield f"bit {bit} at {share:.6f}", flip


def edits(path: Path, random: Random, count: int) -> list[tuple[str, Change]]:
    """Return `count` edits of a file: those of its format in any order, then of its entries, lines or blocks."""
    known = [*ANY.items(), *FORMATS.get(path.suffix, {}).items()]
    random.shuffle(known)
    kinds = [*GENERATED.get(path.suffix, ()), *BLOCKS]
    for number in range(len(known), count):
        kind = kinds[number % len(kinds)]
        known.append((f"{kind.__name__} {number}", partial(kind, seed=random.random())))
    return known[:count]


class Damage:
    """A run, its expected outputs, and copies of it with a damaged file."""

    def __init__(self, run: Path, items: Sequence[str]) -> None:
        self.run, self.items = run, items
        self.copy = run.with_name(f"{run.name}-damaged")
        self.expected: dict[str, Any] = {}
        """Right outputs, by the folder in APART of the damaged file; those of all other files have the empty key."""

    def verdict(self, file: Path, change: Change) -> str:
        """Return "refused" or "same" for a damaged copy, or a fault that begins with a word in capitals."""
        right = self._right(file)
        self._make_copy(file)
        try:
            (self.copy / file).write_bytes(change((self.run / file).read_bytes()))
            found = outputs_of(file, self.run, self.copy, self.items)
        except RegardantError as error:
            named = file.name in str(error) or (len(file.parts) > 1 and str(file.parent) in str(error))
            return "refused" if named and "\n" not in str(error) else f"UNNAMED {error}"
        except (Exception, MemoryError) as error:
            return f"TRACEBACK {type(error).__name__}: {error}"
        finally:
            shutil.rmtree(self.copy, ignore_errors=True)
        return "same" if found in right else "DIFFERENT"

    def _right(self, file: Path) -> list[Any]:
        """Return the right outputs for a damaged file. A damaged checkpoint may be skipped for an earlier one."""
        kind = file.parts[0] if file.parts[0] in APART else ""
        if kind not in self.expected:
            self._make_copy(file)
            right = [outputs_of(file, self.run, self.copy, self.items)]
            latest = latest_checkpoint(self.copy)
            if latest is not None and len(list(latest.parent.iterdir())) > 1:
                latest.unlink()
                right.append(resumed_state(self.copy))
            self.expected[kind] = right
        return self.expected[kind]

    def _make_copy(self, file: Path) -> None:
        unread = {*UNREAD, *APART} - {file.parts[0]}
        shutil.rmtree(self.copy, ignore_errors=True)
        shutil.copytree(
            self.run, self.copy, ignore=lambda at, names: unread & set(names) if at == str(self.run) else ()
        )


def _json(change: Callable[[Any], Any]) -> Change:
    def edit(content: bytes) -> bytes:
        parsed = json.loads(content)
        if isinstance(parsed, dict):
            change(parsed)
        return json.dumps(parsed).encode()

    return edit


def _yaml(change: Callable[[Any], Any]) -> Change:
    def edit(content: bytes) -> bytes:
        parsed = yaml.safe_load(content)
        change(parsed)
        return yaml.safe_dump(parsed).encode()

    return edit


def _weights(change: Callable[[dict[str, torch.Tensor]], object]) -> Change:
    def edit(content: bytes) -> bytes:
        end = 8 + int.from_bytes(content[:8], "little")
        weights = load(content)
        change(weights)
        return save(weights, json.loads(content[8:end]).get("__metadata__"))

    return edit


def _entry_changed(parse: Callable[[Callable[[Any], Any]], Change], content: bytes, seed: float) -> bytes:
    """Remove, double or replace an entry of a document."""

    def edit(parsed: Any) -> None:
        places = list(_places(parsed))
        holder, key = places[int(seed * len(places))]
        kind = int(seed * 1e6) % 4
        if kind == 0:
            del holder[key]
        elif kind == 1:
            holder[key] = [holder[key], holder[key]]
        elif kind == 2:
            holder[key] = None
        else:
            holder[key] = holder[key] * 2 if isinstance(holder[key], int | float | str) else 1e9

    return parse(edit)(content)


def entry_of_json(content: bytes, *, seed: float) -> bytes:
    """Change an entry of a JSON document."""
    return _entry_changed(_json, content, seed)


def entry_of_yaml(content: bytes, *, seed: float) -> bytes:
    """Change an entry of a YAML document."""
    return _entry_changed(_yaml, content, seed)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every entry of nested mappings and lists, as its holder and its key."""
    keys = list(value) if isinstance(value, Mapping) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])


def _swap_first(weights: dict[str, torch.Tensor]) -> None:
    alike: dict[Any, str] = {}
    for name, one in weights.items():
        if (other := alike.setdefault(one.shape, name)) != name:
            weights[name], weights[other] = weights[other].clone(), one.clone()
            return


def _numbers(change: Callable[[Any], Any]) -> Change:
    def edit(content: bytes) -> bytes:
        written = io.BytesIO()
        np.save(written, change(np.load(io.BytesIO(content))))
        return written.getvalue()

    return edit


def _table(change: Callable[[pa.Table], pa.Table]) -> Change:
    def edit(content: bytes) -> bytes:
        changed, written = change(pa.ipc.open_stream(content).read_all()), io.BytesIO()
        with pa.ipc.new_stream(written, changed.schema) as stream:
            stream.write_table(changed)
        return written.getvalue()

    return edit


def tensor_changed(content: bytes, *, seed: float) -> bytes:
    """Change one tensor: zero, double, roll or turn it, give it another type or name, or remove it."""

    def edit(weights: dict[str, torch.Tensor]) -> None:
        name = sorted(weights)[int(seed * len(weights))]
        one = weights[name]
        changed = (0 * one, 2 * one, one.roll(1, 0), one.flip(0), one.double(), one.flatten(), None, one)
        found = changed[int(seed * 1e6) % len(changed)]
        if found is None or found is one:
            del weights[name]
        if found is one:
            weights[f"{name}s"] = one
        elif found is not None:
            weights[name] = found.contiguous()

    return _weights(edit)(content)


def line_changed(content: bytes, *, seed: float) -> bytes:
    """Remove, double, move, cut or replace a line."""
    lines = content.splitlines(keepends=True)
    at = int(seed * len(lines))
    line = lines.pop(at)
    found = (b"", line + line, line[: len(line) // 2], line[::-1], b"[1]\n", b"null\n", b"\xff\n", b'{"update": NaN}\n')
    return b"".join([*lines[:at], found[int(seed * 1e6) % len(found)], *lines[at:]])


def _block(content: bytes, seed: float) -> tuple[int, int]:
    """Return the start and the end of a block of up to 64 bytes."""
    start = int(seed * len(content))
    return start, min(len(content), start + 1 + int(seed * 1e6) % 64)


def block_zeroed(content: bytes, *, seed: float) -> bytes:
    """Zero a block."""
    start, end = _block(content, seed)
    return content[:start] + bytes(end - start) + content[end:]


def block_removed(content: bytes, *, seed: float) -> bytes:
    """Remove a block."""
    start, end = _block(content, seed)
    return content[:start] + content[end:]


def block_doubled(content: bytes, *, seed: float) -> bytes:
    """Insert a block once more."""
    start, end = _block(content, seed)
    return content[:end] + content[start:]


def block_of_noise(content: bytes, *, seed: float) -> bytes:
    """Replace a block by random bytes."""
    start, end = _block(content, seed)
    return content[:start] + Random(seed).randbytes(end - start) + content[end:]


def block_moved(content: bytes, *, seed: float) -> bytes:
    """Move a block to the front."""
    start, end = _block(content, seed)
    return content[start:end] + content[:start] + content[end:]


def cut(content: bytes, *, seed: float) -> bytes:
    """Cut the end off."""
    return content[: int(seed * len(content))]


ANY: dict[str, Change] = {
    "emptied": lambda content: b"",
    "cut in half": lambda content: content[: len(content) // 2],
    "doubled": lambda content: content * 2,
    "a byte more": lambda content: content + b"\0",
    "zeros": lambda content: bytes(len(content)),
    "backwards": lambda content: content[::-1],
}
"""Edits of any file."""

FORMATS: dict[str, dict[str, Change]] = {
    ".safetensors": {
        "weights of zero": _weights(lambda one: one.update({name: 0 * value for name, value in one.items()})),
        "weights that are NaN": _weights(lambda one: one.update({n: value * torch.nan for n, value in one.items()})),
        "half precision": _weights(lambda one: one.update({name: value.half() for name, value in one.items()})),
        "integers": _weights(lambda one: one.update({name: value.int() for name, value in one.items()})),
        "a tensor less": _weights(lambda one: one.pop(min(one))),
        "a tensor more": _weights(lambda one: one.update(more=torch.zeros(3))),
        "two tensors changed about": _weights(_swap_first),
        "signs": _weights(lambda one: one.update({name: -value for name, value in one.items()})),
    },
    ".json": {
        "no merges": _json(lambda one: one.get("source", {}).get("model", {}).pop("merges", None)),
        "padding": _json(lambda one: one.get("source", {}).update(padding={"strategy": {"Fixed": 10**9}})),
        "no normaliser": _json(lambda one: one.get("source", {}).update(normalizer=None)),
    },
    ".npy": {
        "another type": _numbers(lambda one: one.astype(np.float64)),
        "ones more": _numbers(lambda one: one + 1),
        "backwards by rows": _numbers(lambda one: one[::-1]),
        "another shape": _numbers(lambda one: one[None]),
        "rolled": _numbers(lambda one: np.roll(one, 1)),
        "cut": _numbers(lambda one: one[:-1]),
        "negative": _numbers(lambda one: -one.astype(np.int64)),
        "large": _numbers(lambda one: one.astype(np.int64) + 2**40),
    },
    ".arrow": {
        "rows backwards": _table(lambda one: one.take(list(range(one.num_rows))[::-1])),
        "a row less": _table(lambda one: one.slice(1)),
        "no rows": _table(lambda one: one.slice(0, 0)),
        "rows doubled": _table(lambda one: pa.concat_tables([one, one])),
        "a column less": _table(lambda one: one.drop_columns(one.column_names[:1])),
        "other names": _table(lambda one: one.rename_columns([f"{name}s" for name in one.column_names])),
        "columns changed about": _table(lambda one: one.select(one.column_names[::-1])),
        "numbers for texts": _table(lambda one: one.set_column(0, one.column_names[0], pa.array(range(one.num_rows)))),
    },
    ".yaml": {
        "more heads": _yaml(lambda one: one["config"]["model"].update(num_heads=4)),
        "another kernel": _yaml(lambda one: one["decided"].update(kernel="fast")),
        "no fingerprints, other heads": _yaml(
            lambda one: (one["config"]["model"].update(num_heads="two"), one.pop("fingerprint"))
        ),
        "no fingerprints, many layers": _yaml(
            lambda one: (one["config"]["model"].update(num_layers=10**6), one.pop("fingerprint"))
        ),
        "no fingerprints, a huge width": _yaml(
            lambda one: (one["config"]["model"].update(d_model=4 * 10**7), one.pop("fingerprint"))
        ),
    },
}
"""Edits by the suffix of a file."""

BLOCKS = (block_zeroed, block_removed, block_doubled, block_of_noise, block_moved, cut)
"""Edits of any file, each at a place that a seed between 0 and 1 gives."""

GENERATED: dict[str, tuple[Callable[..., bytes], ...]] = {
    ".json": (entry_of_json,) * 4,
    ".yaml": (entry_of_yaml,) * 4,
    ".jsonl": (line_changed,) * 4,
    ".links": (line_changed,) * 4,
    ".safetensors": (tensor_changed,) * 4,
}
"""More edits with a seed, by the suffix of a file. A repeated one is used more often, relative to those of BLOCKS."""
