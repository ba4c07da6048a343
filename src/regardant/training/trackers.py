"""Programs that record the metrics of a training, such as TensorBoard.

A subclass of `Tracker` with a `name` is registered when it is imported, also by a plugin of yours: Weights & Biases and
MLflow take a dozen lines each (docs/using.md).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from regardant.config.did_you_mean import did_you_mean
from regardant.errors import ConfigError


class Tracker:
    """Base of trackers. Write `__init__`, `write` and `close`."""

    name: ClassVar[str]
    """Name in `training.trackers`."""

    known: ClassVar[dict[str, type["Tracker"]]] = {}
    """Classes by name."""

    def __init_subclass__(cls) -> None:
        Tracker.known[cls.name] = cls

    def __init__(self, run: Path, update: int) -> None:
        """Open the record of a run, or resume it after `update`. Raises ImportError if the program is not installed."""

    def write(self, numbers: Mapping[str, float], update: int) -> None:
        """Record the numbers of an update, by names such as train/loss."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the record. Does nothing by default."""


class TensorBoard(Tracker):
    """Event files in RUN/tensorboard."""

    name = "tensorboard"

    def __init__(self, run: Path, update: int) -> None:
        from torch.utils.tensorboard import SummaryWriter  # takes a second, and is optional

        self.writer = SummaryWriter(run / "tensorboard", purge_step=update + 1)

    def write(self, numbers: Mapping[str, float], update: int) -> None:
        for name, value in numbers.items():
            self.writer.add_scalar(name, value, update)

    def close(self) -> None:
        self.writer.close()


DEFAULT = (TensorBoard.name,)
"""Trackers of a run that names no others. They are left out where their program is not installed."""


def require_trackers(names: Sequence[str]) -> None:
    """Raise ConfigError for a name that no tracker has."""
    for name in names:
        if name not in Tracker.known:
            near = did_you_mean(name, Tracker.known)
            known = ", ".join(Tracker.known)
            raise ConfigError(f"training.trackers: given {name!r}; allowed: {known}, or one of a --plugin{near}")


def open_trackers(names: Sequence[str], run: Path, update: int) -> list[Tracker]:
    """Return the trackers of these names. Raises ConfigError for an unknown one, and one that is not installed."""
    require_trackers(names)
    opened = []
    for name in names:
        try:
            opened.append(Tracker.known[name](run, update))
        except ImportError as error:
            if tuple(names) != DEFAULT:
                raise ConfigError(f"training.trackers: {name} needs {error.name or error}: install it") from error
    return opened
