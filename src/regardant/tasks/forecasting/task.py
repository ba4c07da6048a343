"""Forecasting as a task: the past of numeric series in, their future out. Each column is read by itself."""

from pathlib import Path
from typing import ClassVar, Literal, Self

import torch
from pydantic import model_validator

from regardant.data.series import SeriesConfig
from regardant.evaluation.forecasting import score_forecasts
from regardant.modalities import SeriesModalityConfig
from regardant.models import EncoderConfig
from regardant.models.encoder_only import EncoderOnlyConfig
from regardant.models.heads import ForecastConfig
from regardant.tasks.base import Log, Task, TaskConfig
from regardant.tasks.forecasting.forecaster import Forecaster
from regardant.tasks.forecasting.windows import ForecastingJob, windows_of
from regardant.tasks.items.data import MARKER
from regardant.tasks.items.job import Answers
from regardant.tasks.items.prepare import PreparedItems, build, keep_items, seeded
from regardant.training.metrics import Metric


class ForecastingConfig(TaskConfig):
    """Configuration of a model that forecasts numeric series."""

    metrics: ClassVar[tuple[Metric, ...]] = (
        Metric("mse", higher_is_better=False, unit="squared deviations of the training rows"),
        Metric("mae", higher_is_better=False, unit="deviations of the training rows"),
        Metric("loss", higher_is_better=False, unit="per value"),
    )

    task: Literal["forecasting"] = "forecasting"
    """The name of the task."""

    data: SeriesConfig
    """The series."""

    input: SeriesModalityConfig = SeriesModalityConfig()
    """The history that is read, and its patches."""

    model: EncoderConfig = EncoderOnlyConfig()
    """The model that reads a history."""

    head: ForecastConfig = ForecastConfig(horizon=96, pooling="flatten")
    """The head that forecasts."""

    @model_validator(mode="after")
    def horizon_is_given(self) -> Self:
        """Refuse a head without a horizon."""
        if self.head.horizon is None:
            raise ValueError("a forecast needs a number of steps: set head.horizon, as in head.horizon=96")
        return self

    @property
    def modality(self) -> SeriesModalityConfig:
        return self.input

    @property
    def window(self) -> int:
        """Steps of a history with its horizon."""
        assert self.head.horizon is not None
        return self.input.history + self.head.horizon

    def with_elements(self) -> Self:
        """Return the configuration with the number of vectors that the head reads."""
        elements = self.model.num_vectors(self.input.shape.patches) if self.head.pooling == "flatten" else None
        return self.model_copy(update={"head": self.head.model_copy(update={"elements": elements})})


class Forecasting(Task):
    """Forecasting of numeric series."""

    name = "forecasting"
    config = ForecastingConfig

    def prepare(self, config: ForecastingConfig, run: Path, log: Log) -> PreparedItems:
        config, sets = config.with_elements(), {}
        if not (run / "data" / MARKER).is_file():
            history = config.input.history
            sets = {name: [(rows, 0)] for name, rows in config.data.read(history, config.window - history).items()}
        codec, splits, fingerprints = keep_items(run, config, sets, lambda line: None)
        model = seeded(config, codec, 1, run)
        windows = {name: windows_of(split.items[0], config.window) for name, split in splits.items()}
        log(f"{', '.join(f'{len(split):,} windows to {name}' for name, split in windows.items())}; {codec.describe()}")

        def score(answers: Answers) -> dict[str, float]:
            scores = score_forecasts(answers, config.head.quantiles)
            return {"mse": scores.mse, "mae": scores.mae}

        job = ForecastingJob(config, codec, windows, model, score, unit="value")
        job.batches.require_cut()
        return PreparedItems(config, job, fingerprints)

    def open(self, config: ForecastingConfig, run: Path, device: torch.device) -> Forecaster:
        self.require_trained(run)
        config, codec = config.with_elements(), config.input.load(run)
        return Forecaster(config, run, codec, build(config, codec, 1), device)
