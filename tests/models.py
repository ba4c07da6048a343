"""Models of tests: a configuration built over vocabularies, and the loss of whole targets and texts."""

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
    """Return the model over two vocabularies, of one size unless two are given; `head` has settings of its head."""
    target_size = target_size or source_size
    return config.build(tokens(source_size), tokens(target_size), next_token(target_size, **head))


def over_text(config: CausalConfig, vocab_size: int, **head: Any) -> CausalModel:
    """Return the model over a vocabulary; `head` has settings of its head."""
    return config.build(tokens(vocab_size), next_token(vocab_size, **head))


def loss_of_pairs(model: Model, source: Tensor, target: Tensor) -> Loss:
    """Return the loss of targets that start with SOS."""
    loss: Loss = model(source=source, target=target[:, :-1], targets=target[:, 1:])
    return loss


def loss_of_text(model: Model, text: Tensor) -> Loss:
    """Return the loss of each token after those before it."""
    loss: Loss = model(text=text[:, :-1], targets=text[:, 1:])
    return loss
