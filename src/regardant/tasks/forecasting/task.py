"""Forecasting as a task: the past of numeric series in, their future out. Each column is read by itself."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal, Self

import torch
from pydantic import model_validator

from regardant.data.series import SeriesConfig, split_rows
from regardant.evaluation.forecasting import score_forecasts
from regardant.modalities import SeriesModalityConfig
from regardant.models.heads import ForecastConfig
from regardant.tasks.base import Log, Task
from regardant.tasks.forecasting.forecaster import Forecaster
from regardant.tasks.forecasting.windows import ForecastingJob, windows_of
from regardant.tasks.items.config import ItemsConfig
from regardant.tasks.items.data import MARKER
from regardant.tasks.items.job import ScoredBatches
from regardant.tasks.items.prepare import PreparedItems, build, keep_items, seeded
from regardant.training.metrics import Metric

HORIZON = 96
"""Number of steps to forecast if a table is long enough."""


class ForecastingConfig(ItemsConfig):
    """Configuration of a model that forecasts numeric series."""

    metrics: ClassVar[tuple[Metric, ...]] = (
        Metric("mse", higher_is_better=False, unit="squared standard deviations of the training rows"),
        Metric("mae", higher_is_better=False, unit="standard deviations of the training rows"),
        Metric("loss", higher_is_better=False, unit="per value"),
    )

    task: Literal["forecasting"] = "forecasting"
    """The name of the task."""

    data: SeriesConfig
    """The series."""

    input: SeriesModalityConfig = SeriesModalityConfig()
    """The history that the model reads, and its patches."""

    head: ForecastConfig = ForecastConfig(horizon="auto", pooling="flatten")
    """The head that forecasts, by default 96 steps, or as many as a short table allows."""

    @model_validator(mode="after")
    def horizon_is_given(self) -> Self:
        """Refuse a head without a horizon."""
        if self.head.horizon is None:
            raise ValueError("a forecast needs a number of steps: set head.horizon, as in head.horizon=96")
        return self

    @property
    def window(self) -> int:
        """Number of steps of a history with its horizon."""
        assert self.head.num_steps is not None
        return self.input.shape.history + self.head.num_steps

    def with_sizes(self, rows: Mapping[str, int], log: Log) -> Self:
        """Return the configuration with `auto` history and horizon resolved from the number of rows of each split.

        The horizon is at most half of the rows of validation and of test, the history at most half of the training
        rows that a horizon leaves, but at least one patch.
        """
        longest = max(1, min(HORIZON, min(rows["validation"], rows["test"]) // 2))
        head = self.head if self.head.horizon != "auto" else self.head.model_copy(update={"horizon": longest})
        modality = self.input.with_history((rows["train"] - (head.num_steps or 0)) // 2)
        log(
            f"{head.num_steps} steps are forecast (head.horizon) from {modality.history} (input.history), chosen for "
            f"{rows['train']:,} training rows"
        )
        return self.model_copy(update={"input": modality, "head": head})

    def with_elements(self) -> Self:
        """Return the configuration with `head.elements`, the number of vectors that pooling `flatten` reads."""
        elements = self.model.num_vectors(self.input.shape.patches) if self.head.pooling == "flatten" else None
        return self.model_copy(update={"head": self.head.model_copy(update={"elements": elements})})


class Forecasting(Task):
    """Forecasting of numeric series."""

    name = "forecasting"
    config = ForecastingConfig

    def prepare(self, config: ForecastingConfig, run: Path, log: Log) -> PreparedItems:
        sets = {}
        if not (run / "data" / MARKER).is_file():
            series, rows = config.data.table()
            config = config.with_sizes(rows, log)
            history = config.input.shape.history
            splits = split_rows(series, rows, history, config.window - history)
            sets = {name: [(part, 0)] for name, part in splits.items()}
        config = config.with_elements()
        codec, kept, fingerprints = keep_items(run, config, sets, lambda line: None)
        model = seeded(config, codec, 1, run)
        windows = {name: windows_of(split.items[0], config.window) for name, split in kept.items()}
        log(f"{', '.join(f'{len(split):,} windows to {name}' for name, split in windows.items())}; {codec.describe()}")

        def score(answers: ScoredBatches) -> dict[str, float]:
            scores = score_forecasts(answers, config.head.quantiles)
            return {"mse": scores.mse, "mae": scores.mae}

        job = ForecastingJob(config, codec, windows, model, score, unit="value")
        job.batches.require_cut()
        return PreparedItems(config, job, fingerprints)

    def open(self, config: ForecastingConfig, run: Path, device: torch.device) -> Forecaster:
        self.require_trained(run)
        config, codec = config.with_elements(), config.input.load(run)
        return Forecaster(config, run, codec, build(config, codec, 1), device)
