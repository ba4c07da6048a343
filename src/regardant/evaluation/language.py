"""How well a language model knows a text: the mean surprise of its tokens, each after those before it.

A text longer than the model's context is read in windows without overlap, so that the first tokens of a window are
judged with little before them.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch

from regardant.data.text import Tokens
from regardant.data.windows import consecutive_windows
from regardant.models.base import CausalModel

BATCH_TOKENS = 8192
"""Of the windows that are read at once."""


@dataclass(frozen=True)
class TextScore:
    """What a text costs a model. Its first token is given, so it counts nowhere."""

    nats: float
    """Minus the log-probability of the text."""
    tokens: int
    characters: int

    @property
    def loss(self) -> float:
        """Nats a token."""
        return self.nats / self.tokens

    @property
    def perplexity(self) -> float:
        """exp of the loss."""
        return math.exp(min(self.loss, 50.0))

    @property
    def nats_per_character(self) -> float:
        return self.nats / self.characters

    @property
    def bits_per_character(self) -> float:
        return self.nats_per_character / math.log(2)

    def as_dict(self) -> dict[str, Any]:
        """For --json."""
        return {
            "loss": self.loss,
            "perplexity": self.perplexity,
            "bits_per_character": self.bits_per_character,
            "tokens": self.tokens,
            "characters": self.characters,
        }


def score_text(model: CausalModel, tokens: Tokens, characters: int, device: torch.device) -> TextScore:
    """The score of a text of two tokens or more, and of so many characters. The model must be in evaluation mode."""
    nats, count = 0.0, 0
    with torch.inference_mode():
        for batch in consecutive_windows(tokens, model.config.max_length, BATCH_TOKENS):
            windows = batch.to(device)
            nats += float(model(**windows.inputs, targets=windows.targets).plain)
            count += batch.count
    return TextScore(nats, count, characters - 1)
