"""The second items of a run with which first items are compared: prompts, or those of all training pairs.

RUN/collection.json    the items as a command line gives them, their labels, and all labels by number

Shape legend: C items of the collection, M size of a vector.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import torch
from torch import Tensor

from regardant.data.item_pairs import ItemPair
from regardant.errors import ConfigError, RunError
from regardant.files import write_atomically
from regardant.models import DualEncoder
from regardant.tasks.matching.pairs import SECOND, UNLABELLED, Reader

COLLECTION = "collection.json"

ITEMS_AT_ONCE = 256
"""Number of items of a collection in a batch."""


@dataclass(frozen=True)
class Collection:
    """Second items with which first items are compared, by number."""

    items: Sequence[str]
    """Distinct items as a command line gives them: texts, or paths of files."""
    labels: Sequence[str]
    """The label of each item. Empty: they have none."""
    classes: Sequence[str]
    """Labels of the run, by number. Empty: its pairs have none."""

    @classmethod
    def of(cls, sets: Mapping[str, Sequence[ItemPair]], prompts: Mapping[str, str]) -> Self:
        """Return the prompts, or the distinct second items of the training pairs.

        Raises ConfigError for prompts that leave out a label.
        """
        given = {pair.label for pairs in sets.values() for pair in pairs} - {None}
        classes = sorted({*(label for label in given if label is not None), *prompts})
        if not prompts:
            return cls(list(dict.fromkeys(pair.second for pair in sets["train"])), [], classes)
        if missing := sorted(set(classes) - set(prompts)):
            raise ConfigError(f"data.prompts: none for {', '.join(missing)}; give one for each label, or none at all")
        return cls(list(prompts.values()), list(prompts), classes)

    @classmethod
    def load(cls, run: Path) -> Self:
        """Return the collection of a run folder. Raises RunError for a damaged file."""
        try:
            return cls(**json.loads((run / COLLECTION).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            raise RunError(f"{run / COLLECTION} is damaged ({error}): restore it or train again") from error

    def save(self, run: Path) -> None:
        """Keep the collection in a run folder."""
        write_atomically(run / COLLECTION, json.dumps(asdict(self), ensure_ascii=False) + "\n")

    def numbers(self, labels: Iterable[str | None]) -> list[int]:
        """Return the numbers of labels. Raises KeyError for an unknown one."""
        known = {label: number for number, label in enumerate(self.classes)}
        return [UNLABELLED if label is None else known[label] for label in labels]

    def vectors(self, model: DualEncoder, reader: Reader, device: torch.device) -> Tensor:
        """Return the vectors of all items [C, M] in float32 on the CPU."""
        encoded = reader.codec.encode([reader.codec.parse(item) for item in self.items])
        starts = range(0, len(encoded), ITEMS_AT_ONCE)
        blocks = (reader.collate(encoded[start : start + ITEMS_AT_ONCE]) for start in starts)
        with torch.inference_mode():
            return torch.cat([model.tower(SECOND).scores(input=block.to(device)).float().cpu() for block in blocks])
