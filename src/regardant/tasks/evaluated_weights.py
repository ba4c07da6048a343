"""The weights that each evaluation of a run is of.

RUN/evaluation/weights.sha256    a line for each evaluation: the SHA-256 of its weights, and its name
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from regardant.config.run_files import EVALUATION, WEIGHTS
from regardant.errors import RunError
from regardant.files import sha256_of, write_atomically

EVALUATED = "weights.sha256"


def keep_evaluated_weights(folder: Path, names: Iterable[str], weights: str) -> None:
    """Note that the evaluations of these names are of the weights with this SHA-256."""
    noted = _noted(folder) | dict.fromkeys(names, weights)
    lines = [f"{found}  {name}\n" for name, found in sorted(noted.items())]
    write_atomically(folder / EVALUATION / EVALUATED, "".join(lines))


def require_current(folder: Path, names: Sequence[str]) -> None:
    """Raise RunError if a run was not evaluated, or was trained further after its evaluation.

    Evaluations of earlier versions are compared with the weights by their dates. A run without its weights passes.
    """
    if not names:
        raise RunError(f"{folder} was not evaluated: evaluate it first: regardant evaluate {folder}")
    weights = folder / WEIGHTS
    if not weights.is_file():
        return
    noted, present = _noted(folder), sha256_of(weights)
    for name in names:
        evaluated = (folder / EVALUATION / f"{name}.json").stat().st_mtime
        if noted[name] != present if name in noted else weights.stat().st_mtime > evaluated:
            raise RunError(f"{folder} was trained further after {name} was evaluated: evaluate it anew")


def _noted(folder: Path) -> dict[str, str]:
    path = folder / EVALUATION / EVALUATED
    if not path.is_file():
        return {}
    lines = (line.partition("  ") for line in path.read_text(encoding="utf-8", errors="replace").splitlines())
    return {name: weights for weights, _, name in lines}
