"""Preparation of a job from a recipe, for tasks that answer items by a head."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from regardant.data.item_files import ItemFile, StoredFile, UnreadableFileError, shown_name
from regardant.data.labelled import Labelled
from regardant.data.splits import PURPOSES
from regardant.errors import ConfigError, DataError
from regardant.modalities import Codec, ModalityConfig
from regardant.models import Model
from regardant.tasks.base import Log
from regardant.tasks.items.data import MARKER, EncodedItems, read_splits, write_splits
from regardant.tasks.items.job import ItemsJob
from regardant.tasks.take_over import copy_files, run_of_vocabulary, with_first_weights
from regardant.training.config import FirstRun

SHORTEST = 2
"""Minimum number of elements that a model reads."""

FIRST_RUN = FirstRun(epochs=10, least_updates=1, least_minutes=0.5, most_minutes=30.0)


@dataclass
class PreparedItems:
    """Resolved recipe of a task over items. Implements `tasks.base.Prepared`."""

    config: Any
    """Configuration with all settings resolved but the budget."""
    job: ItemsJob
    fingerprints: dict[str, str]
    """Fingerprints of the items, by split."""

    def with_speed(self, tokens_per_second: float, log: Log) -> Any:
        """Resolve the budget from the measured training speed."""
        first = FIRST_RUN._replace(epochs=self.config.modality.first_epochs)
        training = self.config.training.with_minutes(first, self.job.targets_per_epoch, tokens_per_second)
        training = training.replaced(validate_every=self.job.validate_every)
        log(f"validation every {self.job.validate_every:,} updates")
        self.config = self.config.model_copy(update={"training": training})
        return self.config


def keep_codec(modality: ModalityConfig, items: Sequence[Any], folder: Path, earlier: Path | None) -> Codec:
    """Keep a codec in a folder and return it: fitted to training items, or that of the folder `earlier`."""
    if earlier is not None:
        copy_files(modality.files, earlier, folder)
        return modality.load(folder)
    codec = modality.fit(items)
    codec.save(folder)
    return codec


def of_kind(modality: ModalityConfig, items: Sequence[Labelled], log: Log) -> list[Labelled]:
    """Return labelled items without files of another kind, whose number is logged. Raises DataError if none is left.

    If items of the modality are not files, as texts are not, all are returned: the codec reports any fault.
    """
    named = modality.suffixes
    others = [item for item, _ in items if named and isinstance(item, ItemFile) and not _is_of(modality, item)]
    if not others:
        return list(items)
    kinds, first = ", ".join(named), shown_name(others[0])
    if len(others) == len(items):
        raise DataError(f"none of {len(others):,} files, such as {first}, is of the kind {kinds}: give files that are")
    log(f"files other than {kinds} are left out: {len(others):,}, such as {first}")
    return [(item, label) for item, label in items if not isinstance(item, ItemFile) or _is_of(modality, item)]


def readable(modality: ModalityConfig, items: Sequence[Labelled], log: Log) -> list[Labelled]:
    """Return labelled items without damaged files, whose number is logged. Raises DataError if all are damaged.

    Every file is read once more than training needs.
    """
    kept: list[Labelled] = []
    damaged: list[UnreadableFileError] = []
    for item, label in items:
        try:
            if isinstance(item, ItemFile):
                modality.require_readable(item)
        except UnreadableFileError as error:
            damaged.append(error)
        else:
            kept.append((item, label))
    if damaged and not kept:
        raise damaged[0]
    if damaged:
        first = str(damaged[0]).partition(": give")[0]
        log(f"files that cannot be read are left out: {len(damaged):,} of {len(items):,}; {first}")
    return kept


def keep_items(
    run: Path,
    config: Any,
    sets: Mapping[str, Sequence[tuple[Any, int]]],
    log: Log,
) -> tuple[Codec, dict[str, EncodedItems], dict[str, str]]:
    """Fit the codec of `config.modality` to the training items and keep all splits encoded, or open those of an earlier
    start. Return codec, splits and their fingerprints."""
    folder, modality = run / "data", config.modality
    if not (folder / MARKER).is_file():
        run.mkdir(parents=True, exist_ok=True)
        codec = keep_codec(modality, [item for item, _ in sets["train"]], run, run_of_vocabulary(config.training))
        write_splits(
            folder,
            {
                name: (codec.encode([item for item, _ in items]), [target for _, target in items])
                for name, items in sets.items()
            },
        )
        sizes = ", ".join(f"{len(items):,} to {PURPOSES.get(name, name)}" for name, items in sets.items())
        log(f"{sizes}; {codec.describe()}")
    codec = modality.load(run)
    return codec, *read_splits(folder)


def with_max_length(config: Any, codec: Codec, train: EncodedItems, log: Log) -> Any:
    """Return the configuration with `model.max_length` set to the length of the longest training item, but at most to
    `training.batch_tokens`.

    Unchanged if the recipe sets `model.max_length`, or the modality does not read items whole.
    """
    if not config.modality.reads_whole or "max_length" in config.model.model_fields_set:
        return config
    longest = int(codec.lengths(train.rows).max())
    max_length = max(SHORTEST, min(longest, config.training.batch_tokens))
    log(f"the model reads {max_length:,} {codec.unit}s (model.max_length); the longest training item has {longest:,}")
    return config.model_copy(update={"model": config.model.model_copy(update={"max_length": max_length})})


def build(config: Any, codec: Codec, num_outputs: int) -> Model:
    """Return the model of a recipe with fresh weights. Raises ConfigError if its parts do not fit."""
    try:
        model = config.model.build(codec.representation(), lambda d_model: config.head.build(d_model, num_outputs))
    except ValueError as error:
        raise ConfigError(f"model: {error}") from error
    return cast(Model, model)


def seeded(config: Any, codec: Codec, num_outputs: int, run: Path) -> Model:
    """Return the model with the initial weights of a run: drawn from the seed, or the earlier run's if taken over."""
    return with_first_weights(lambda: build(config, codec, num_outputs), config, run)


def _is_of(modality: ModalityConfig, file: ItemFile) -> bool:
    """Return whether a file is of the modality's kind. A file stored in a table is of the kind of its column."""
    return isinstance(file, StoredFile) or file.suffix.lower() in modality.suffixes
