"""Models for tests: configurations built over vocabularies, and losses of whole targets and texts."""

from typing import Any

from torch import Tensor

from regardant.models import (
    CausalConfig,
    CausalModel,
    Loss,
    Model,
    SequenceToSequenceConfig,
    SequenceToSequenceModel,
    next_token,
    tokens,
)


def over_pairs(
    config: SequenceToSequenceConfig, source_size: int, target_size: int | None = None, **head: Any
) -> SequenceToSequenceModel:
    """Build a model over two vocabularies, of equal size unless `target_size` is given; `head` configures its head."""
    target_size = target_size or source_size
    return config.build(tokens(source_size), tokens(target_size), next_token(target_size, **head))


def over_text(config: CausalConfig, vocab_size: int, **head: Any) -> CausalModel:
    """Build the model over a vocabulary; `head` configures its head."""
    return config.build(tokens(vocab_size), next_token(vocab_size, **head))


def loss_of_pairs(model: Model, source: Tensor, target: Tensor) -> Loss:
    """Return the loss of targets that start with SOS."""
    loss: Loss = model(source=source, target=target[:, :-1], targets=target[:, 1:])
    return loss


def loss_of_text(model: Model, text: Tensor) -> Loss:
    """Return the next-token loss of texts."""
    loss: Loss = model(text=text[:, :-1], targets=text[:, 1:])
    return loss
