"""A finished run of forecasting: predictions, scores, inspection."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regardant.data.text_files import require_file
from regardant.errors import DataError
from regardant.evaluation.forecasting import point, repeat_last, score_forecasts
from regardant.modalities.series import SeriesCodec
from regardant.pictures import sparkline
from regardant.tasks.base import Example, Prediction
from regardant.tasks.forecasting.windows import WindowBatches, windows_of
from regardant.tasks.inspection import Inspection
from regardant.tasks.items.data import EncodedItems
from regardant.tasks.items.trained import TrainedItems

SHOWN_COLUMNS, SHOWN_STEPS = 8, 3
"""Maximum number of columns in an answer line, and number of values of each."""


class Forecaster(TrainedItems):
    """A model that forecasts series."""

    codec: SeriesCodec

    def predict(self, items: Sequence[str], **options: Any) -> list[Prediction]:
        """Return the next values of every column of tables, or of the column of FILE:COLUMN. Raises DataError,
        ConfigError for any option."""
        self.refuse(options, "predicts")
        return [self._forecast(item) for item in items]

    def inspect(self, item: str, **options: Any) -> Inspection:
        """Return the inspection of the column of FILE:COLUMN, by default the first one of FILE."""
        names = self.codec.parse(item).names
        return super().inspect(item if len(names) == 1 else f"{item}:{names[0]}", **options)

    def encoded(self, item: str) -> NDArray[Any]:
        return self.codec.cut(self.codec.latest(self.codec.parse(item))[0], self.max_length)

    def examples(self, count: int, folder: Path) -> list[Example]:
        """Return histories of the validation rows, evenly spaced, each with a line through its first column."""
        rows, history = super()._splits()["validation"].items[0], self.codec.shape.history
        found = []
        for number, start in enumerate(np.linspace(0, len(rows) - history, count).astype(int), 1):
            table = rows[start : start + history]
            path = self.codec.argument(table, folder, f"example-{number}")
            found.append(Example(path, sparkline(table[:, 0].tolist())))
        return found

    def evaluated(self, name: str, split: EncodedItems) -> dict[str, Any]:
        """Return the scores of a test set, of each column, and of naive forecasts that repeat the last values."""
        answers, names = self.answers(split), self.codec.statistics.names
        rows = torch.from_numpy(np.concatenate([planned.indices for planned in self.batches(split).plan(0)]))
        forecasts, values = (torch.cat(side) for side in zip(*answers, strict=True))
        by_column = {}
        for number, column in enumerate(names):
            own = rows % len(names) == number
            scores = score_forecasts([(forecasts[own], values[own])], self.config.head.quantiles)
            by_column[column] = {"mse": scores.mse, "mae": scores.mae}
        scores = score_forecasts(answers, self.config.head.quantiles)
        return {**scores.as_dict(), "columns": by_column, "naive": self._naive(split)}

    def batches(self, split: EncodedItems) -> WindowBatches:
        return WindowBatches(split, self.codec, batch_tokens=self.batch_elements, max_length=self.max_length, seed=0)

    def read(self, data: Path) -> EncodedItems:
        require_file(data)
        (rows,) = self.codec.encode([self.codec.parse(str(data))])
        try:
            return windows_of(rows, self.config.window)
        except DataError as error:
            raise DataError(f"--data {data}: {error}") from error

    def summary(self, name: str, scores: dict[str, Any]) -> Sequence[str]:
        return [
            f"{name}: MSE {scores['mse']:.4f}, MAE {scores['mae']:.4f} in standard deviations of the training rows, "
            f"{scores['items']:,} forecasts of {self.config.head.horizon} steps",
            *(
                f"  {of_naive}, repeated: MSE {numbers['mse']:.4f}, MAE {numbers['mae']:.4f}"
                for of_naive, numbers in scores["naive"].items()
            ),
        ]

    def _naive(self, split: EncodedItems) -> dict[str, dict[str, float]]:
        """Return the errors of forecasts that repeat the last value of a history, and its last season."""
        batches, found = self.batches(split), {}
        for name, count in self.codec.repeated().items():
            loaded = map(batches.load, batches.plan(0))
            answers = ((repeat_last(one.inputs["input"], count, one.targets.shape[1]), one.targets) for one in loaded)
            scores = score_forecasts(answers, ())
            found[name] = {"mse": scores.mse, "mae": scores.mae}
        return found

    def _splits(self) -> dict[str, EncodedItems]:
        return {name: windows_of(split.items[0], self.config.window) for name, split in super()._splits().items()}

    def _forecast(self, item: str) -> Prediction:
        series, quantiles = self.codec.parse(item), self.config.head.quantiles
        histories = [self.codec.cut(one, self.max_length) for one in self.codec.latest(series)]
        scores = self.scores({"input": self.codec.collate(histories)})[:, :, 0]

        def restored(values: Tensor) -> dict[str, list[float]]:
            return dict(zip(series.names, self.codec.restored(values.numpy(), series.names).tolist(), strict=True))

        found = restored(point(scores, quantiles))
        more_steps = " ..." if scores.shape[1] > SHOWN_STEPS else ""
        shown = [
            f"{name} {' '.join(f'{one:.4g}' for one in values[:SHOWN_STEPS])}{more_steps}"
            for name, values in found.items()
        ]
        more = ["..."] if len(shown) > SHOWN_COLUMNS else []
        details: dict[str, Any] = {"time": series.next_times(scores.shape[1]), "forecast": found}
        if quantiles:
            details["quantiles"] = {f"{share:g}": restored(scores[..., at]) for at, share in enumerate(quantiles)}
        return Prediction(item, "; ".join([*shown[:SHOWN_COLUMNS], *more]), details)
