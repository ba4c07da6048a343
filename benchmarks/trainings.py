"""Small trainings of recipes that need no data, as commands, for trials in which they are killed or refused."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from .records import set_options

GRAMMAR_SIZES = {"train": 600, "validation": 20, "test": 20, "heldout": 10}
NARROW = tuple(f"model.{one}" for one in ("preset=null", "d_model=32", "num_heads=2", "d_ff=64", "max_length=48"))
SHALLOW = ("model.encoder.num_layers=1", "model.decoder.num_layers=1")
TOY_DATA = ("data.train_size=300", "data.validation_size=20", "data.test_size=20", "evaluation.bootstrap_samples=10")
TOY = (*NARROW, *SHALLOW, *TOY_DATA)
RECURRENT = (*TOY_DATA, "model={kind: recurrent, embedding_size: 32, hidden_size: 32, max_length: 48}")
GRAMMAR = (
    *NARROW,
    *SHALLOW,
    *(f"data.{name}_size={size}" for name, size in GRAMMAR_SIZES.items()),
    *("tokenizer.kind=word", "tokenizer.vocab_size=250", "evaluation.bootstrap_samples=10"),
)
IMAGES = ("model.d_model=32", "model.num_heads=2", "model.d_ff=64")
TEXT = ("data.lines=2000", "model.d_model=32", "model.num_heads=2", "model.d_ff=64", "model.num_layers=1")

MODELS = {
    "Transformer": ("demo", GRAMMAR),
    "recurrent": ("copy", RECURRENT),
    "language model": ("in-context", TEXT),
    "classification": ("digits-vit", IMAGES),
    "two processes": ("demo", (*GRAMMAR, "training.processes=2")),
    "toy": ("copy", TOY),
}
"""Recipes with overrides that make them small."""

SETTLED = tuple(
    f"training.{one}"
    for one in (
        *("max_minutes=null", "max_epochs=null", "validate_every=10", "processes=1"),
        *("precision=float32", "attention_kernel=sdpa"),  # by default both are chosen by timing
    )
)
"""Overrides of every training, before its own."""

OFTEN = "training.checkpoint_minutes=1e-9"
"""Override by which a training writes a checkpoint after every update."""


def command(model: str, folder: Path, updates: int = 40, *overrides: str) -> list[str]:
    """Return the command that trains a small model."""
    recipe, own = MODELS[model]
    given = (*SETTLED, f"training.max_updates={updates}", *own, *overrides)
    return [sys.executable, "-m", "regardant", "train", recipe, "--out", str(folder), *set_options(given)]


def quietly(words: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command to its end and capture its output."""
    return subprocess.run(words, capture_output=True, text=True, **options)


def is_one_line(done: subprocess.CompletedProcess[str], phrase: str) -> bool:
    """Return whether a command was refused by a line with a phrase."""
    errors = [line for line in done.stderr.splitlines() if line.startswith("regardant: ")]
    return done.returncode == 2 and len(errors) == 1 and phrase in errors[0] and "Traceback" not in done.stderr


def weights(folder: Path) -> bytes:
    """Return the file of a run's weights."""
    return (folder / "model.safetensors").read_bytes()
