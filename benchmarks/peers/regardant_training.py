"""Regardant's own trainer, with all of its work around a step: probe, schedule, average, metrics."""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import torch
from passes import Passes
from serve import Driver
from torch import nn
from training_loop import read

from regardant import __version__
from regardant.data.batching import PairBatch
from regardant.models import EncoderDecoderConfig, Loss, Model, SequenceToSequenceModel, next_token, tokens
from regardant.models.recurrent import RecurrentConfig
from regardant.planning.probes import Decisions, Steps, decide, dry_run
from regardant.training.config import NextTokenTraining
from regardant.training.devices import keep_freed_memory, the_device
from regardant.training.engine import Trainer
from regardant.training.job import Batch
from regardant.training.metrics import Metric
from regardant.training.strategies import make_fabric


class Counts(Protocol):
    """Counter of the target tokens of every batch."""

    def trained_on(self, tokens: int) -> None: ...


class BatchesInTurn:
    """The part of `training.job.Job` that an endless run without validation needs."""

    unit, divisible, metrics = "target token", True, (Metric("loss", higher_is_better=False),)
    validate_every = sys.maxsize

    def __init__(self, model: Model, batches: Sequence[Batch], passes: Counts) -> None:
        self.model, self.batches, self.passes = model, batches, passes

    def plan(self, epoch: int) -> Sequence[int]:
        return range(len(self.batches))

    def load(self, planned: int) -> Batch:
        self.passes.trained_on(self.batches[planned].count)
        return self.batches[planned]

    def loss(self, model: nn.Module, batch: Any, device: torch.device) -> Loss:
        batch = batch.to(device)
        loss: Loss = model(**batch.inputs, targets=batch.targets)
        return loss


def trainer_for(
    model: Model, batches: Sequence[Batch], precision: str, run: Path, passes: Counts
) -> tuple[Trainer, Decisions]:
    """Return the trainer of a model on batches. Regardant chooses the kernel, and the precision if `auto`."""
    keep_freed_memory()
    config = NextTokenTraining.model_validate(
        {
            "max_updates": 10**9,
            "precision": precision,
            "processes": 1,
            "checkpoint_minutes": 10**9,
            "validate_every": sys.maxsize,
        }
    )
    job = BatchesInTurn(model, batches, passes)
    device = the_device()
    steps = Steps(model, partial(dry_run, job, len(batches) // 2, device), device)
    decisions = decide(steps, config, len(batches))
    decisions.apply(model)
    fabric = make_fabric(decisions.precision)
    return Trainer(job, config, run, fabric=fabric, dropout_key=model.dropout_key, seed=1), decisions


def trainer_of(path: Path, precision: str, run: Path, passes: Counts) -> tuple[Trainer, Decisions]:
    """Return the trainer of the batches in a file."""
    shape, batches = read(path)
    torch.manual_seed(1)
    model = build(shape, NextTokenTraining(max_updates=1).label_smoothing)
    return trainer_for(model, [PairBatch(*batch) for batch in batches], precision, run, passes)


def answer_and_train(driver: Driver, passes: Passes, trainer: Trainer, decisions: Decisions) -> None:
    """Describe the model to the driver, and train until there are no more requests."""
    driver.answer(
        versions={"regardant": __version__, "torch": str(torch.__version__)},
        threads=torch.get_num_threads(),
        parameters=sum(parameter.numel() for parameter in trainer.job.model.parameters()),
        decided=decisions.as_dict(),
    )
    passes.begin()
    trainer.fit()


def main() -> None:
    driver = Driver()
    passes = Passes(driver)
    with TemporaryDirectory(prefix="regardant-") as run:
        answer_and_train(driver, passes, *trainer_of(Path(sys.argv[1]), sys.argv[2], Path(run), passes))


def build(shape: dict[str, Any], label_smoothing: float = 0.0) -> SequenceToSequenceModel:
    """Return a model of the shared sizes with fresh weights: a Transformer, or a recurrent one if they name a cell."""
    vocabulary = tokens(shape["vocab_size"])
    if "cell" in shape:
        sizes = {name: size for name, size in shape.items() if name != "vocab_size"}
        recurrent = RecurrentConfig.model_validate(
            {**sizes, "decoder": {"kind": "luong", "attention": {"kind": "general"}}}
        )
        return recurrent.build(vocabulary, vocabulary, next_token(shape["vocab_size"], label_smoothing))
    layers = {"num_layers": shape["num_layers"]}
    sizes = {name: shape[name] for name in ("d_model", "num_heads", "d_ff", "dropout", "max_length")}
    config = EncoderDecoderConfig.model_validate({"preset": None, "encoder": layers, "decoder": layers, **sizes})
    return config.build(vocabulary, vocabulary, next_token(shape["vocab_size"], label_smoothing))


if __name__ == "__main__":
    main()
