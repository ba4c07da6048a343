"""A small model whose every score depends on the whole source and the whole target so far."""

from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor

from regardant.data.vocabulary import PAD, SOS
from regardant.generation.constraints import Constraints

BUCKETS = 499
FIRST_TEXT_ID = 5


def follow(keys: Tensor, tokens: Tensor) -> Tensor:
    """The bucket of a text one token longer."""
    return (keys * 31 + tokens * 7 + 11) % BUCKETS


@dataclass
class TableState:
    keys: Tensor
    """[B, W]: the bucket of everything read and written so far, so that a wrong beam gives other scores."""
    steps_left: int

    def reorder(self, beams: Tensor) -> None:
        self.keys = self.keys.gather(1, beams)

    def keep(self, sentences: Tensor) -> None:
        self.keys = self.keys[sentences]

    joins = True

    def join(self, *others: "TableState") -> None:
        self.keys = torch.cat([state.keys for state in (self, *others)])
        self.steps_left = max(state.steps_left for state in (self, *others))


@dataclass
class TableModel:
    """Next-token scores are the row of a random table that source and history fall into."""

    seed: int
    text_tokens: int = 3
    sharpness: float = 2.0
    fed: list[tuple[int, int]] = field(default_factory=list)
    """Sentences and beams of every step."""

    def __post_init__(self) -> None:
        generator = torch.Generator().manual_seed(self.seed)
        table = torch.randn(BUCKETS, FIRST_TEXT_ID + self.text_tokens, generator=generator)
        self.table = table * self.sharpness

    def encode(self, source: Tensor) -> Tensor:
        keys = torch.zeros(len(source), dtype=torch.int64)
        for column in source.T:
            keys = torch.where(column == PAD, keys, follow(keys, column))
        return keys

    def start(self, memory: Tensor, beam_size: int, max_length: int) -> TableState:
        return TableState(memory[:, None], max_length)

    def step(self, tokens: Tensor, state: TableState) -> Tensor:
        assert state.steps_left > 0, "more steps than were announced"
        assert (tokens != PAD).all(), "padding is not to be continued"
        state.steps_left -= 1
        self.fed.append(tuple(tokens.shape))
        state.keys = follow(state.keys, tokens)
        return self.table[state.keys]

    def scores(self, source: Tensor, target: Tensor) -> Tensor:
        keys, rows = self.encode(source), []
        for column in target.T:
            keys = follow(keys, column)
            rows.append(self.table[keys])
        return torch.stack(rows, dim=1)

    def bucket(self, source: list[int]) -> int:
        """The row of the table that the first target token comes from."""
        return int(follow(self.encode(torch.tensor([source])), torch.tensor([SOS])))

    def after(self, source: list[int], written: list[int]) -> list[float]:
        """Log-probabilities of the next token, by teacher forcing."""
        logits = self.scores(torch.tensor([source]), torch.tensor([[SOS, *written]]))
        return torch.log_softmax(logits[0, -1], dim=-1).tolist()


def search_alone(kind, model, sources, limits, prefixes, config):
    """Return what one search finds for sources that are padded to one length."""
    constraints = Constraints.of(prefixes, config.no_repeat_ngram_size, limits, torch.device("cpu"))
    search = kind(model, torch.tensor(sources), limits, constraints, config)
    while len(search.sentences):
        search.step()
    return [search.found[number] for number in range(len(sources))]


@pytest.fixture(scope="session")
def table_model():
    return TableModel
