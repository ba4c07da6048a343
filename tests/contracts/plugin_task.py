"""A module as a user writes it: a task of its own, with its own data, kind of item, representation and head.

Items are lists of numbers, as "3 1 4"; the answer is their sum.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from regardant.config import Config
from regardant.errors import DataError
from regardant.modalities import Codec, ModalityConfig
from regardant.models import EncoderConfig, Loss
from regardant.models.encoder_only import EncoderOnlyConfig
from regardant.models.heads import Head, HeadConfig
from regardant.models.representations import InputShape, Representation
from regardant.models.vectors import Vectors
from regardant.tasks.base import Log, Prediction, Task, TaskConfig
from regardant.tasks.items.data import MARKER, EncodedItems
from regardant.tasks.items.job import ItemsJob, ScoredBatches
from regardant.tasks.items.prepare import PreparedItems, build, keep_items, seeded
from regardant.tasks.items.trained import TrainedItems
from regardant.training.metrics import Metric

PADDING = -1


class NumberEmbedding(Representation):
    """A number as the multiple of one learned vector, beside another."""

    unit = "number"

    def __init__(self, shape: InputShape) -> None:
        super().__init__(shape)
        self.project = nn.Linear(1, shape.element_size)

    def embed(self, inputs: Tensor) -> Vectors:
        return Vectors(self.project(inputs[..., None].float()), inputs != PADDING)


class NumbersConfig(ModalityConfig):
    """Lists of numbers between white space."""

    kind: Literal["numbers"] = "numbers"

    def fit(self, items: Iterable[Any]) -> "NumbersCodec":
        return NumbersCodec()

    def load(self, run: Path) -> "NumbersCodec":
        return NumbersCodec()


class NumbersCodec(Codec):
    """Lists of numbers to arrays."""

    unit = "number"

    def encode(self, items: Sequence[Any]) -> list[Any]:
        return [np.array(item, dtype=np.int64) for item in items]

    def parse(self, argument: str) -> Any:
        if not argument.strip() or not all(word.isdecimal() for word in argument.split()):
            raise DataError(f"{argument!r} is no list of numbers: write it as 3 1 4")
        return [int(word) for word in argument.split()]

    def cut(self, encoded: Any, length: int) -> Any:
        return encoded[:length]

    def collate(self, encoded: Sequence[Any]) -> Tensor:
        return pad_sequence([torch.from_numpy(np.array(one)) for one in encoded], True, PADDING)

    def representation(self) -> Any:
        return NumberEmbedding

    def labels(self, encoded: Any) -> list[str]:
        return [str(number) for number in encoded]

    def describe(self) -> str:
        return "lists of numbers"

    def save(self, run: Path) -> None:
        """Keep nothing."""


class AmountConfig(HeadConfig):
    """One number for the whole sequence."""

    kind: Literal["amount"] = "amount"

    def build(self, d_model: int, num_outputs: int) -> "Amount":
        return Amount(d_model)


class Amount(Head):
    """The sum over elements of a number each."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.output = nn.Linear(d_model, 1)

    def scores(self, vectors: Vectors) -> Tensor:
        assert vectors.real is not None
        numbers: Tensor = (self.output(vectors.values)[..., 0] * vectors.real).sum(1)
        return numbers

    def loss(self, vectors: Vectors, targets: Tensor) -> Loss:
        squares = (self.scores(vectors) - targets).square().sum()
        return Loss(squares, squares.detach(), torch.tensor(len(targets)))


class RandomListsConfig(Config):
    """Lists of random numbers."""

    size: int = 400
    """Lists to train on."""


class SumsConfig(TaskConfig):
    """From lists of numbers to their sums."""

    metrics: ClassVar[tuple[Metric, ...]] = (
        Metric("mean_absolute_error", higher_is_better=False),
        Metric("loss", higher_is_better=False, unit="squared error"),
    )

    task: Literal["sums"] = "sums"
    """The name of the task."""

    data: RandomListsConfig = RandomListsConfig()
    """The lists."""

    input: ModalityConfig = NumbersConfig()
    """The kind of item."""

    model: EncoderConfig = EncoderOnlyConfig(d_model=16, num_heads=2, d_ff=32, num_layers=1, dropout=0.0, max_length=8)
    """The model that reads a list."""

    head: HeadConfig = AmountConfig()
    """The head that answers."""

    @property
    def modality(self) -> ModalityConfig:
        return self.input


class Sums(Task):
    """From lists of numbers to their sums."""

    name = "sums"
    config = SumsConfig

    def prepare(self, config: SumsConfig, run: Path, log: Log) -> PreparedItems:
        sets = {}
        if not (run / "data" / MARKER).is_file():
            random = Random(config.seed)
            for name, size in (("train", config.data.size), ("validation", 40), ("test", 40)):
                lists = [random.choices(range(5), k=random.randint(2, 6)) for _ in range(size)]
                sets[name] = [(numbers, sum(numbers)) for numbers in lists]
        codec, splits, fingerprints = keep_items(run, config, sets, log)
        job = ItemsJob(config, codec, splits, seeded(config, codec, 1, run), _metrics, unit="sum")
        return PreparedItems(config, job, fingerprints)

    def open(self, config: SumsConfig, run: Path, device: torch.device) -> "Adder":
        self.require_trained(run)
        codec = config.input.load(run)
        return Adder(config, run, codec, build(config, codec, 1), device)


class Adder(TrainedItems):
    """A trained model of sums."""

    def answer(self, item: str, scores: Tensor) -> Prediction:
        return Prediction(item, f"{float(scores):.1f}", {"sum": float(scores)})

    def evaluated(self, name: str, split: EncodedItems) -> dict[str, Any]:
        return _metrics(self.answers(split))

    def summary(self, name: str, scores: dict[str, Any]) -> Sequence[str]:
        return [f"{name}: off by {scores['mean_absolute_error']:.2f} in the mean"]


def _metrics(answers: ScoredBatches) -> dict[str, float]:
    errors = torch.cat([(scores - targets).abs() for scores, targets in answers])
    return {"mean_absolute_error": float(errors.mean())}
