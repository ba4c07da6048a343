"""Matching as a task: an item of one kind in, the items of another kind that belong to it out.

Radford et al. 2021, "Learning transferable visual models from natural language supervision" (CLIP),
https://arxiv.org/abs/2103.00020.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

import torch

from regardant.config.run_files import WEIGHTS
from regardant.data import captioned_digits  # noqa: F401  # a kind is known by being imported
from regardant.data.item_pairs import ItemPair, ItemPairsConfig
from regardant.data.splits import PURPOSES
from regardant.errors import ConfigError
from regardant.modalities import Codec, ModalityConfig, TextModalityConfig
from regardant.models import DualEncoder, DualEncoderConfig
from regardant.models.base import MatchingConfig
from regardant.models.heads import MatchConfig
from regardant.tasks.base import Log, Task, TaskConfig
from regardant.tasks.items.prepare import PreparedItems
from regardant.tasks.matching.collection import COLLECTION, Collection
from regardant.tasks.matching.job import MatchingJob
from regardant.tasks.matching.matcher import Matcher
from regardant.tasks.matching.pairs import FIRST, SECOND, PairedItems, are_kept, keep_pairs, read_pairs, with_paths
from regardant.tasks.take_over import run_of_vocabulary, with_first_weights
from regardant.training.metrics import Metric

ZERO_SHOT = "zero_shot_accuracy"

OF_LABELS = ("class_recall_at_1", "reverse_class_recall_at_1", ZERO_SHOT)
"""Metrics of labelled pairs alone."""


class MatchingTaskConfig(TaskConfig):
    """Configuration of a model that matches items of two kinds."""

    metrics: ClassVar[tuple[Metric, ...]] = (
        Metric("recall_at_1", higher_is_better=True),
        Metric("recall_at_5", higher_is_better=True),
        Metric("mean_rank", higher_is_better=False),
        Metric("reverse_recall_at_1", higher_is_better=True),
        Metric("reverse_recall_at_5", higher_is_better=True),
        Metric("reverse_mean_rank", higher_is_better=False),
        Metric("class_recall_at_1", higher_is_better=True),
        Metric("reverse_class_recall_at_1", higher_is_better=True),
        Metric(ZERO_SHOT, higher_is_better=True),
        Metric("loss", higher_is_better=False, unit="nats per pair"),
    )

    task: Literal["matching"] = "matching"
    """The name of the task."""

    data: ItemPairsConfig
    """Pairs of items that belong together."""

    first: ModalityConfig = TextModalityConfig()
    """The kind of the first items, for which matching second items are found."""

    second: ModalityConfig = TextModalityConfig()
    """The kind of the second items."""

    model: MatchingConfig = DualEncoderConfig()
    """The model that compares two items."""

    head: MatchConfig = MatchConfig()
    """The head that scores pairs."""

    @property
    def modality(self) -> ModalityConfig:
        return self.first

    @property
    def modalities(self) -> dict[str, ModalityConfig]:
        """The kinds of both items by name."""
        return {FIRST: self.first, SECOND: self.second}

    @property
    def files(self) -> tuple[bool, bool]:
        """Flags (first, second): True if the items are files."""
        return bool(self.first.suffixes), bool(self.second.suffixes)


class Matching(Task):
    """Matching of items of two kinds."""

    name = "matching"
    config = MatchingTaskConfig
    files = (COLLECTION,)

    def prepare(self, config: MatchingTaskConfig, run: Path, log: Log) -> PreparedItems:
        if not are_kept(run):
            sets = config.data.read(config.seed, files=config.files)
            config.data.log_left_out(log)
            collection = Collection.of(sets, config.data.prompts)
            _require_scores(config, sets, collection)
            read = {name: [with_paths(pair, config.modalities) for pair in pairs] for name, pairs in sets.items()}
            labels = {name: collection.numbers(pair.label for pair in pairs) for name, pairs in sets.items()}
            keep_pairs(run, config.modalities, run_of_vocabulary(config.training), read, labels)
            collection.save(run)
        codecs, (splits, fingerprints) = _load_codecs(config, run), read_pairs(run / "data")
        model = with_first_weights(lambda: build_pair_model(config, codecs), config, run)
        job = MatchingJob(config, codecs, splits, model, Collection.load(run))
        log("; ".join([_sizes(splits), *(codec.describe() for codec in codecs.values())]))
        for side in (job.batches, job.batches.second):
            side.log_cut(log)
        return PreparedItems(config, job, fingerprints)

    def open(self, config: MatchingTaskConfig, run: Path, device: torch.device) -> Matcher:
        self.require_trained(run)
        codecs = _load_codecs(config, run)
        return Matcher(config, run, codecs, build_pair_model(config, codecs), device)

    def files_of(self, config: TaskConfig) -> list[str]:
        assert isinstance(config, MatchingTaskConfig)
        of_items = [f"{name}/{file}" for name, modality in config.modalities.items() for file in modality.files]
        return [*self.files, *of_items, WEIGHTS]


def build_pair_model(config: MatchingTaskConfig, codecs: Mapping[str, Codec]) -> DualEncoder:
    """Return the model of a recipe with fresh weights. Raises ConfigError if its parts do not fit."""
    first, second = (codec.representation() for codec in codecs.values())
    try:
        model = config.model.build(first, second, lambda size: config.head.build(size, 1))
    except ValueError as error:
        raise ConfigError(f"model: {error}") from error
    assert isinstance(model, DualEncoder)
    return model


def _load_codecs(config: MatchingTaskConfig, run: Path) -> dict[str, Codec]:
    return {name: modality.load(run / name) for name, modality in config.modalities.items()}


def _sizes(splits: Mapping[str, PairedItems]) -> str:
    return ", ".join(f"{len(pairs):,} pairs to {PURPOSES[name]}" for name, pairs in splits.items())


def _require_scores(config: MatchingTaskConfig, sets: Mapping[str, Sequence[ItemPair]], collection: Collection) -> None:
    """Raise ConfigError if the metric that selects the best weights cannot be measured on these pairs."""
    name, labelled = config.metric.name, all(pair.label is not None for pair in sets["validation"])
    if name in OF_LABELS and not labelled:
        raise ConfigError(f"training.best_by: given {name!r}, but the pairs have no labels: set data.label")
    if name == ZERO_SHOT and not collection.labels:
        raise ConfigError(f"training.best_by: given {name!r}, but there are no prompts: set data.prompts")
