"""Count the files, frames and calls of the package that translating one sentence and training pass through.

    python tests/architecture/count_frames.py            train a small run, translate with it, print both counts
    python tests/architecture/count_frames.py RUN        translate with a run of your own

A file is counted if one of its functions is called, a frame if it is a function of the package. Calls through other
libraries (PyTorch's Module.__call__) are not counted: they are the same for every model.
"""

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from inspect import CO_OPTIMIZED
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import regardant
from regardant import config, run

PACKAGE = str(Path(regardant.__file__).parent) + os.sep

RECIPE: dict[str, Any] = {
    "data": {"kind": "pairs", "source": "a.en", "target": "a.fr", "validation_size": 8, "test_size": 8},
    "tokenizer": {"kind": "word"},
    "model": {
        "preset": None,
        "d_model": 32,
        "num_heads": 2,
        "d_ff": 64,
        "feed_forward": {"kind": "gated"},
        "positions": {"kind": "rotary"},
        "dropout": 0.1,
        "max_length": 64,
        "encoder": {"num_layers": 1},
        "decoder": {"num_layers": 2},
    },
    "training": {
        "max_updates": 4,
        "batch_tokens": 400,
        "validate_every": 4,
        "precision": "float32",
        "attention_kernel": "matmul",
    },
}
"""The parts of the demo's recipe, small, on a corpus of files."""

WORDS = {"a.en": "the cat dog sat on mat a red big man", "a.fr": "le chat chien assis sur tapis un rouge grand homme"}


@dataclass
class Counted:
    """Functions of the package that a call has passed through."""

    calls: Counter[tuple[str, str]]
    """Calls by file and function."""
    deepest: list[str]
    """Functions on the deepest stack, the outermost first."""

    @property
    def files(self) -> dict[str, int]:
        """Calls by file."""
        files: Counter[str] = Counter()
        for (name, _), calls in self.calls.items():
            files[name] += calls
        return dict(sorted(files.items()))

    def lines(self) -> list[str]:
        """Format a table of files and the deepest stack."""
        head = f"{len(self.files)} files, {len(self.deepest)} frames deep, {self.calls.total():,} calls"
        files = [f"  {calls:8,}  {name}" for name, calls in self.files.items()]
        return [head, *files, "", "  deepest stack", *(f"  {name}" for name in self.deepest)]


def count(call: Callable[[], Any]) -> Counted:
    """Run a call in this thread and count the functions of the package that it passes through."""
    counted, stack = Counted(Counter(), []), []

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        is_function = code.co_flags & CO_OPTIMIZED  # not the body of a module or class, which an import runs
        if not is_function or not code.co_filename.startswith(PACKAGE):
            return
        if event == "call":
            stack.append(code.co_qualname)
            counted.calls[code.co_filename.removeprefix(PACKAGE), code.co_qualname] += 1
            if len(stack) > len(counted.deepest):
                counted.deepest = list(stack)
        elif event == "return" and stack:
            stack.pop()

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return counted


def training(folder: Path) -> Counted:
    """Count training a small run into a folder, from its configuration on."""
    from regardant.tasks import task_named
    from regardant.tasks.translation.config import TranslationConfig

    random = Random(3)
    sentences = [random.choices(range(10), k=random.randint(3, 8)) for _ in range(80)]
    folder.parent.mkdir(parents=True, exist_ok=True)
    for name, words in WORDS.items():
        lines = (" ".join(words.split()[index] for index in sentence) + " .\n" for sentence in sentences)
        (folder.parent / name).write_text("".join(lines), encoding="utf-8")
    recipe = config.load(TranslationConfig, RECIPE, [f"data.root={folder.parent}"])
    task_named(recipe.task)  # imports the task now: classes made by an import are not counted
    return count(lambda: run.train(recipe, folder, lambda _: None))


def translating(folder: Path) -> Counted:
    """Count translating one sentence with an open run, after a first sentence: one-time work is not counted."""
    opened = run.load(folder)
    opened.translate(["The cat sat on the mat."])
    return count(lambda: opened.translate(["The cat sat on the mat."]))


def main() -> None:
    """Print both counts."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "run"
        if len(sys.argv) > 1:
            folder = Path(sys.argv[1])
        else:
            print("training:", *training(folder).lines(), "", sep="\n")
        print("translating one sentence:", *translating(folder).lines(), sep="\n")


if __name__ == "__main__":
    main()
