"""The elements that a model reads of an item: pieces of a text, k-mers, patches, frames; and their neighbours."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from regardant.config.run_files import TOKENIZER
from regardant.data.tokenizers import Tokenizer, Tokenizers
from regardant.data.vocabulary import SPECIAL_TOKENS
from regardant.errors import RunError
from regardant.inspection.capture import class_tokens
from regardant.inspection.neighbours import nearest
from regardant.modalities.joined import PARTS
from regardant.models.representations.tokens import TokenEmbedding
from regardant.run.opened import Run
from regardant.tasks.sequence_to_sequence.items import TARGET_TOKENIZER


@dataclass(frozen=True)
class ElementsOfInput:
    """The elements of one input of the model."""

    labels: list[str]
    words: list[tuple[str, int]]
    """(word, number of its elements). Empty where elements make no words."""
    ids: list[int | None]
    """Token ids, None for a class token. Empty where elements are no tokens."""
    neighbours: list[list[tuple[str, float]]]
    """Nearest tokens with their cosine similarities, by element; none for a class token. Empty if none were
    requested."""

    def lines(self, name: str) -> list[str]:
        """Return the lines to print."""
        found = [f"{name}: {len(self.labels)} elements"]
        for number, label in enumerate(self.labels):
            id = f"{'' if self.ids[number] is None else self.ids[number]:>7}" if self.ids else ""
            near = (
                "  ".join(f"{token} {cosine:.2f}" for token, cosine in self.neighbours[number])
                if self.neighbours
                else ""
            )
            found.append(f"{number:5}{id}  {label:16} {near}".rstrip())
        return found


def elements(run: Run, folder: Path, item: str, neighbours: int = 0) -> dict[str, ElementsOfInput]:
    """Return the elements of an item by the name of the input.

    Raises RunError if neighbours are requested and the model reads no tokens of a vocabulary of its own.
    """
    found = run.inspect(item)
    model: Any = run.trained.model
    result = {}
    for name, input in found.inputs.items():
        given, table = found.batch.get(name), _table(model, name)
        ids: list[int | None] = []
        near: list[list[tuple[str, float]]] = []
        if table is not None and isinstance(given, Tensor):
            before = len(class_tokens(model, name))  # class tokens precede the others and have no id
            ids = [*[None] * before, *given[0].tolist()][: len(input.labels)]
            near = _near(_tokenizer(folder, name), table, ids, neighbours) if neighbours else []
        result[name] = ElementsOfInput(input.labels, input.units, ids, near)
    if neighbours and not any(one.neighbours for one in result.values()):
        raise RunError("--neighbours needs a model that reads tokens, and this one reads none: leave it out")
    return result


def _table(model: Any, name: str) -> TokenEmbedding | None:
    part = getattr(model, name, None)
    return part if isinstance(part, TokenEmbedding) else None


def _tokenizer(folder: Path, name: str) -> Tokenizer:
    """Return the tokenizer of an input of a run."""
    if name == "target":
        target = folder / TARGET_TOKENIZER
        return Tokenizers.load(target if target.is_file() else folder / TOKENIZER).target
    part = folder / PARTS / name / TOKENIZER
    return Tokenizers.load(part if part.is_file() else folder / TOKENIZER).source


def _near(
    tokenizer: Tokenizer, table: TokenEmbedding, ids: list[int | None], count: int
) -> list[list[tuple[str, float]]]:
    weight = table.table.weight.detach().cpu()
    found = [[] if id is None else nearest(weight, id, count, len(SPECIAL_TOKENS)) for id in ids]
    return [[(tokenizer.tokens([one])[0], cosine) for one, cosine in near] for near in found]
