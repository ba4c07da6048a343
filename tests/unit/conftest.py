"""A run small enough to train in a second, trained once for all tests that only use one."""

import io
import json
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from regardant import cli, config
from regardant.tasks.translation.config import TranslationConfig
from tests.runs import MadeOnce, runs_of

ENGLISH = "the cat dog sat on mat a red big man saw house tree bird ran to from old new"
FRENCH = "le chat chien assis sur tapis un rouge grand homme vit maison arbre oiseau courut à de vieux neuf"


def write_corpus(folder: Path, num_pairs: int = 200) -> None:
    """a.en and a.fr: random words, and the same words in French."""
    languages = {"a.en": ENGLISH.split(), "a.fr": FRENCH.split()}
    random = Random(3)
    sentences: dict[tuple[int, ...], None] = {}
    while len(sentences) < num_pairs:
        sentences[tuple(random.choices(range(len(languages["a.en"])), k=random.randint(3, 8)))] = None
    for name, words in languages.items():
        lines = (" ".join(words[index] for index in sentence) + " .\n" for sentence in sentences)
        (folder / name).write_text("".join(lines), encoding="utf-8")


def tiny(folder: Path) -> dict[str, Any]:
    """A recipe of one layer and 20 updates over the corpus in `folder`."""
    return {
        "data": {
            "kind": "pairs",
            "root": str(folder),
            "source": "a.en",
            "target": "a.fr",
            "validation_size": 8,
            "test_size": 8,
        },
        "tokenizer": {"kind": "word"},
        "model": {
            "preset": None,
            "d_model": 16,
            "num_heads": 2,
            "d_ff": 32,
            "max_length": 32,
            "encoder": {"num_layers": 1},
            "decoder": {"num_layers": 1},
        },
        "training": {
            "max_updates": 20,
            "batch_tokens": 512,
            "validate_every": 10,
            "precision": "float32",
            "attention_kernel": "sdpa",
        },
        "evaluation": {"bootstrap_samples": 10},
    }


@pytest.fixture(scope="session")
def corpus(made_once: MadeOnce) -> Path:
    """A folder with a.en, a.fr and a recipe for them, tiny.yaml."""

    def fill(folder: Path) -> None:
        write_corpus(folder)
        (folder / "tiny.yaml").write_text(json.dumps(tiny(folder)), encoding="utf-8")  # JSON is YAML

    return made_once("corpus", fill)


@pytest.fixture(scope="session")
def configure(corpus: Path) -> Callable[..., TranslationConfig]:
    """The configuration of tiny.yaml, with overrides."""
    return lambda *overrides: config.load(TranslationConfig, tiny(corpus), overrides)


@pytest.fixture(scope="session")
def tiny_run(configure: Callable[..., TranslationConfig], made_once: MadeOnce) -> Path:
    """The folder of a finished run. Do not write to it: `own_run` is a copy."""
    return runs_of("tiny-corpus", configure, made_once)().folder


@pytest.fixture
def own_run(tiny_run: Path, tmp_path: Path) -> Path:
    """A copy to break."""
    shutil.copytree(tiny_run, tmp_path / "run")
    return tmp_path / "run"


@dataclass
class Said:
    """What a command left."""

    code: object
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """Of stdout. A line ends at a line feed only."""
        return self.out.removesuffix("\n").split("\n") if self.out else []


@pytest.fixture
def regardant(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """The program, in this process."""

    def call(*arguments: object, stdin: bytes | Sequence[str] = b"") -> Said:
        raw = stdin if isinstance(stdin, bytes) else "".join(line + "\n" for line in stdin).encode()
        monkeypatch.setattr(sys, "argv", ["regardant", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8"))
        capsys.readouterr()
        code: object = 0
        try:
            cli.main()
        except SystemExit as stopped:
            code = stopped.code
        return Said(code, *capsys.readouterr())

    return call
