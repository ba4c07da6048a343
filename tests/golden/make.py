"""Train the golden runs of the present format: `python -m tests.golden.make`.

Run it once when `FORMAT` has grown, and keep what it writes. Runs of earlier formats are never made again.
"""

import json
import os
import shutil
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import torch

import regardant
from regardant import run
from regardant.config import recipe
from regardant.run.migrations import FORMAT
from regardant.tasks import load_recipe

HERE = Path(__file__).parent

SMALL = (
    *(f"model.{one}" for one in ("d_model=16", "num_heads=2", "d_ff=32", "max_length=32")),
    *(f"training.{one}" for one in ("max_minutes=null", "max_epochs=null", "max_updates=300", "validate_every=100")),
    *(f"training.{one}" for one in ("precision=float32", "attention_kernel=sdpa", "processes=1", "keep_checkpoints=1")),
    "training.schedule={kind: linear, learning_rate: 0.01, warmup_steps: 20}",
)
SHALLOW = ("model.preset=null", "model.encoder.num_layers=1", "model.decoder.num_layers=1")
PAIRS = ("data.train_size=300", "data.validation_size=20", "data.test_size=20")
LABELS = ("data.source=train.tsv", "data.test=test.tsv", "data.text='1'", "data.label='2'", "input.tokenizer.kind=word")

RUNS: dict[str, tuple[str, tuple[str, ...], list[str]]] = {
    "translation": ("copy", (*SHALLOW, *PAIRS), ["3 1 4", "7 7 2 9"]),
    "language_modelling": (
        "in-context",
        ("model.num_layers=1", "training.batch_tokens=512", "data.lines=600", "data.validation_share=0.1"),
        ["a", "ab"],
    ),
    "classification": ("classification", ("model.num_layers=1", *LABELS), ["a cat sees a dog .", "a dog , a cat ."]),
}
"""Recipe, overrides that make it small, and items, by the name of the folder."""


def answers(folder: Path, items: list[str]) -> dict[str, Any]:
    """Return what a run answers to items, and its scores but for times."""
    opened = regardant.load(folder)
    scores = {
        name: {key: value for key, value in numbers.items() if "second" not in key}
        for name, numbers in opened.evaluate().items()
    }
    found = {"items": items, "predictions": [one.as_dict() for one in opened.predict(items)], "scores": scores}
    plain: dict[str, Any] = json.loads(json.dumps(found, default=str))
    return plain


def write_labels(folder: Path) -> None:
    """Write sentences with a cat and a dog, labelled by the first of them."""
    random, words = Random(5), ["the", "a", "old", "red", "sees", "likes", "and", "then"]
    for name, size in (("train", 200), ("test", 30)):
        lines = []
        for _ in range(size):
            first, second = random.sample(["cat", "dog"], 2)
            lines.append(f"{' '.join([random.choice(words), first, *random.choices(words, k=2), second])} .\t{first}\n")
        (folder / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")


def main() -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        write_labels(Path())
        for name, (base, overrides, items) in RUNS.items():
            config = load_recipe(recipe(base), (*SMALL, *overrides), origin=base)
            assert run.train(config, name, log=lambda line: None).finished
            expected = json.dumps(answers(Path(name), items), indent=1, ensure_ascii=False) + "\n"
            for made in ("evaluation", "tensorboard"):
                shutil.rmtree(Path(name, made), ignore_errors=True)
            Path(name, "expected.json").write_text(expected, encoding="utf-8")
            shutil.copytree(name, HERE / f"format-{FORMAT}" / name)


if __name__ == "__main__":
    main()
