"""Damage to the files of a run: single bytes that are flipped, and edits after which a file can still be read.

A damaged run must be refused by a line that names the file, or answer as before.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import torch
import yaml
from safetensors.torch import load, save

import regardant
from regardant.errors import RegardantError

UNREAD = ("evaluation", "tensorboard", "measures", "engines", "checkpoints")
"""Folders of a run that its answers do not depend on."""

DIAGNOSED = ("metrics.jsonl", "run.yaml")
"""Files that the doctor reads beside those of the model and the data."""

Change = Callable[[bytes], bytes]


def outputs(folder: Path, items: Sequence[str], *, doctor: bool = True) -> Any:
    """Return what a run answers to items, and its scores without times. `doctor` has to end too, if it is asked."""
    run = regardant.load(folder)
    predicted = [one.as_dict() for one in run.predict(items)]
    scores = {
        name: {key: value for key, value in numbers.items() if "second" not in key}
        for name, numbers in run.evaluate().items()
    }
    if doctor:
        run.doctor()
    return json.loads(json.dumps([predicted, scores], default=str))


def files_of(folder: Path) -> list[Path]:
    """Return the files of a run that are damaged."""
    found = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return [path for path in found if path.parts[0] not in UNREAD and not path.name.startswith(".")]


def flips(random: Random, count: int) -> Iterator[tuple[str, Change]]:
    """Yield flips of a bit of a byte anywhere in a file."""
    for _ in range(count):
        share, bit = random.random(), 1 << random.randrange(8)

        def flip(content: bytes, share: float = share, bit: int = bit) -> bytes:
            changed = bytearray(content)
            if changed:
                changed[int(share * len(changed))] ^= bit
            return bytes(changed)

        yield f"bit {bit} at {share:.6f}", flip


def edits(path: Path, random: Random, count: int) -> list[tuple[str, Change]]:
    """Return up to `count` edits of a file: those of any file, and those of its format."""
    known = [*ANY.items(), *FORMATS.get(path.suffix, {}).items()]
    random.shuffle(known)
    if path.suffix in PARSED:
        known += [(f"entry {number}", _entry_changed(path.suffix, random.random())) for number in range(count)]
    return known[:count]


def verdict(run: Path, file: Path, change: Change, items: Sequence[str], expected: Any) -> str:
    """Return "refused" or "same" for a damaged copy of a run, or in capitals what is wrong."""
    copy = run.with_name(f"{run.name}-damaged")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(run, copy, ignore=shutil.ignore_patterns(*UNREAD))
    try:
        (copy / file).write_bytes(change((run / file).read_bytes()))
        found = outputs(copy, items, doctor=file.name in DIAGNOSED)
    except RegardantError as error:
        named = file.name in str(error) or (len(file.parts) > 1 and str(file.parent) in str(error))
        return "refused" if named and "\n" not in str(error) else f"UNNAMED {error}"
    except (Exception, MemoryError) as error:
        return f"TRACEBACK {type(error).__name__}: {error}"
    finally:
        shutil.rmtree(copy, ignore_errors=True)
    return "same" if found == expected else "DIFFERENT"


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


def _entry_changed(suffix: str, share: float) -> Change:
    """Return an edit that removes, doubles or replaces the entry at a share of all entries of a document."""
    change = _json if suffix == ".json" else _yaml

    def edit(parsed: Any) -> None:
        places = list(_places(parsed))
        holder, key = places[int(share * len(places))]
        kind = int(share * 1e6) % 4
        if kind == 0:
            del holder[key]
        elif kind == 1:
            holder[key] = [holder[key], holder[key]]
        elif kind == 2:
            holder[key] = None
        else:
            holder[key] = holder[key] * 2 if isinstance(holder[key], int | float | str) else 1e9

    return change(edit)


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
    ".yaml": {
        "more heads": _yaml(lambda one: one["config"]["model"].update(num_heads=4)),
        "another kernel": _yaml(lambda one: one["decided"].update(kernel="fast")),
        "no fingerprints, other heads": _yaml(
            lambda one: (one["config"]["model"].update(num_heads="two"), one.pop("config_fingerprint"))
        ),
        "no fingerprints, many layers": _yaml(
            lambda one: (one["config"]["model"].update(num_layers=10**6), one.pop("config_fingerprint"))
        ),
        "no fingerprints, a huge width": _yaml(
            lambda one: (one["config"]["model"].update(d_model=4 * 10**7), one.pop("config_fingerprint"))
        ),
    },
}
"""Edits by the suffix of a file."""

PARSED = (".json", ".yaml")
"""Suffixes of files whose entries are changed."""
