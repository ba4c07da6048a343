"""Fingerprints of a run's files: a file that was damaged or replaced after training is refused, since weights or a
vocabulary that can still be read may answer wrongly without an error.

The files that the model is opened from are read whole whenever it is opened. Those of the data are read by the verbs
that use them; the training split, which is as large as the corpus, when training is resumed.
"""

import hashlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath

from regardant.config.run_files import EVALUATION
from regardant.errors import RunError
from regardant.files import sha256_of, write_atomically

SUMS = "SHA256SUMS"
"""File with the fingerprints of an evaluation, which `sha256sum --check` reads too."""

DATA = "data"
"""Folder of a run that holds its data."""

TRAIN = "train"
"""Prefix of the names of files and folders of the training split."""

_LINE = "fingerprint: "
"""Prefix of the last line of run.yaml."""


def with_fingerprint(record: str) -> str:
    """Return the text of a run.yaml, followed by a line with its SHA-256."""
    return f"{record}{_LINE}{hashlib.sha256(record.encode()).hexdigest()}\n"


def require_as_written(path: Path) -> None:
    """Raise RunError for a run.yaml that is not what training wrote. Earlier versions wrote no fingerprint of it."""
    record, line, found = path.read_bytes().rpartition(f"\n{_LINE}".encode())
    if line and found.decode(errors="replace").strip() != hashlib.sha256(record + b"\n").hexdigest():
        raise RunError(
            f"{path} is not what training wrote: restore it, or train anew; if you changed it on purpose, remove its "
            f"last line (`{_LINE.strip()}`)"
        )


def fingerprints_of(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the fingerprints of the named files that exist in a folder, by name."""
    return {name: sha256_of(folder / name) for name in names if (folder / name).is_file()}


def data_fingerprints(run: Path) -> dict[str, str]:
    """Return the fingerprints of all files of a run's data."""
    found = sorted(path for path in (run / DATA).rglob("*") if path.is_file())
    return fingerprints_of(run, [path.relative_to(run).as_posix() for path in found])


def of_model(files: Mapping[str, str]) -> dict[str, str]:
    """Return the fingerprints of the files that a model is opened from."""
    return {name: found for name, found in files.items() if not is_data(name)}


def of_evaluation(files: Mapping[str, str]) -> dict[str, str]:
    """Return the fingerprints of the data, except the training split."""
    return {
        name: found
        for name, found in files.items()
        if is_data(name) and not any(part.startswith(TRAIN) for part in PurePosixPath(name).parts)
    }


def is_data(name: str) -> bool:
    """Return whether a file of a run belongs to its data."""
    return PurePosixPath(name).parts[:1] == (DATA,)


def require_unchanged(folder: Path, expected: Mapping[str, str]) -> None:
    """Raise RunError for a file that is not what training wrote. Files that are missing are left to their readers."""
    for name, found in fingerprints_of(folder, expected).items():
        if found != expected[name]:
            raise RunError(
                f"{folder / name} is not what training wrote (its SHA-256 is not that in run.yaml): restore the file, "
                "or train anew; if you changed it on purpose, remove its line under `files` in run.yaml, and the last "
                "line of that file"
            )


Stamp = tuple[int, int]
"""Inode of a file, and the time of its last change in nanoseconds."""


def evaluation_stamps(run: Path) -> dict[str, Stamp]:
    """Return the stamps of all files of a run's evaluations."""
    folder = run / EVALUATION
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != SUMS)
    found = {path.relative_to(folder).as_posix(): path.stat() for path in paths}
    return {name: (one.st_ino, one.st_mtime_ns) for name, one in found.items()}


def write_sums(run: Path, before: Mapping[str, Stamp]) -> None:
    """Write the fingerprints of all files of a run's evaluations. A file that is as it was `before` an evaluation keeps
    the fingerprint that was written with it: it may have been damaged since."""
    now, kept = evaluation_stamps(run), dict[str, str]()
    with suppress(RunError):  # damaged fingerprints are written anew
        kept = _read_sums(run)
    same = {name for name, stamp in now.items() if before.get(name) == stamp and name in kept}
    sums = fingerprints_of(run / EVALUATION, now.keys() - same) | {name: kept[name] for name in same}
    if sums:
        write_atomically(run / EVALUATION / SUMS, "".join(f"{sums[name]}  {name}\n" for name in sorted(sums)))


def require_as_evaluated(run: Path) -> None:
    """Raise RunError for a file of an evaluation that was changed. Evaluations of earlier versions have no sums."""
    sums, expected = run / EVALUATION / SUMS, _read_sums(run)
    for name, found in fingerprints_of(run / EVALUATION, expected).items():
        if found != expected[name]:
            raise RunError(f"{run / EVALUATION / name} is not what {sums} says: evaluate {run} anew")


def _read_sums(run: Path) -> dict[str, str]:
    """Return the fingerprints that were written with a run's evaluations; none if there are none."""
    sums = run / EVALUATION / SUMS
    if not sums.is_file():
        return {}
    try:
        lines = [line.partition("  ") for line in sums.read_text(encoding="utf-8").splitlines()]
    except ValueError as error:
        raise RunError(f"{sums} is damaged ({error}): evaluate {run} anew") from error
    return {name: found for found, _, name in lines}
