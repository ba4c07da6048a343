"""The loss of a language model on a text: the mean negative log-likelihood of its tokens, each given those before it.

A text longer than the context length is read in windows without overlap, so that the first tokens of a window are
predicted from few tokens. A model that carries a state carries it through the whole text instead, and reads a long text
as parallel streams, each of which begins without a state: one stream would take as many steps as there are tokens.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from regardant.data.text import Tokens
from regardant.data.tokenizers import Tokenizer
from regardant.data.vocabulary import UNK
from regardant.data.windows import consecutive_windows, parallel_streams
from regardant.errors import DataError
from regardant.models.base import CausalModel
from regardant.models.heads import Loss

BATCH_TOKENS = 8192
"""Number of tokens in a batch."""

STREAM_TOKENS = 8192
"""Minimum number of tokens in a stream. A shorter text is one stream."""

MOST_STREAMS = 128
"""Maximum number of streams of a text."""


@dataclass(frozen=True)
class TextScore:
    """Score of a text under a language model. The first token is given and not scored."""

    nats: float
    """Negative log-probability of the text, in nats."""
    tokens: int
    """Number of tokens after the first."""
    characters: int
    """Number of characters after those of the first token."""

    @property
    def loss(self) -> float:
        """Mean negative log-probability, in nats per token."""
        return self.nats / self.tokens

    @property
    def perplexity(self) -> float:
        """Exponential of the loss. The exponent is capped at 50 nats."""
        return math.exp(min(self.loss, 50.0))

    @property
    def nats_per_character(self) -> float:
        return self.nats / self.characters

    @property
    def bits_per_character(self) -> float:
        return self.nats_per_character / math.log(2)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for --json."""
        return {
            "loss": self.loss,
            "perplexity": self.perplexity,
            "bits_per_character": self.bits_per_character,
            "tokens": self.tokens,
            "characters": self.characters,
        }


def characters_of_first(tokens: Tokens, tokenizer: Tokenizer) -> int:
    """Return the number of characters that the first token of a text stands for."""
    ids = tokens[:1].tolist()
    if ids == [UNK]:
        return 1  # the length of an unknown word is lost
    text = tokenizer.decode(ids)
    word = text.removeprefix(" ")
    # The token may decode to a word with a space before it, which the text need not have.
    return len(word if tokenizer.encode(word) == ids else text)


def score_text(
    model: CausalModel, tokens: Tokens, characters: int, device: torch.device, *, given: int = 1
) -> TextScore:
    """Return the score of a text of `characters` characters and at least two tokens.

    The model must be in evaluation mode. `given` is the number of characters of the first token. Raises DataError if no
    characters come after it.
    """
    if characters <= given:
        raise DataError(
            f"a text of {characters} characters has none after its first token, so bits per character are undefined: "
            "give a longer text"
        )
    losses = _losses_of_streams if model.carries_state else _losses_of_windows
    with torch.inference_mode():
        nats = sum(float(loss.plain) for loss in losses(model, tokens, device))
    return TextScore(nats, len(tokens) - 1, characters - given)


def _losses_of_windows(model: CausalModel, tokens: Tokens, device: torch.device) -> Iterator[Loss]:
    for batch in consecutive_windows(tokens, model.config.max_length, BATCH_TOKENS):
        windows = batch.to(device)
        yield model(**windows.inputs, targets=windows.targets)


def _losses_of_streams(model: CausalModel, tokens: Tokens, device: torch.device) -> Iterator[Loss]:
    num_streams = max(1, min(MOST_STREAMS, (len(tokens) - 1) // STREAM_TOKENS))
    state = model.first_state(num_streams)
    for batch in parallel_streams(tokens, num_streams, max(1, BATCH_TOKENS // num_streams)):
        windows = batch.to(device)
        loss: Loss = model(**windows.inputs, targets=windows.targets, state=state)
        assert loss.state is not None
        state = loss.state
        yield loss
