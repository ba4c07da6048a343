"""Log-probabilities of given targets, by teacher forcing.

Shape legend: B sentences, S source length, T target tokens after SOS, V vocabulary.
"""

from typing import Any

import torch
from torch import Tensor

from regardant.data.vocabulary import PAD
from regardant.models.base import SequenceToSequenceModel


def score_tokens(model: SequenceToSequenceModel, source: Any, target: Tensor) -> Tensor:
    """Return the log-probability of each target token after SOS, in nats: [B, T] float32, 0 at padding.

    source [B, S]; target [B, T + 1], SOS to EOS, PAD after. The model must be in evaluation mode.
    """
    with torch.inference_mode():
        expected = target[:, 1:]
        log_probabilities = torch.log_softmax(model.scores(source, target[:, :-1]), dim=-1, dtype=torch.float32)
        given = log_probabilities.gather(-1, expected[..., None]).squeeze(-1)
        return given.masked_fill(expected == PAD, 0.0)


def score_pairs(model: SequenceToSequenceModel, source: Any, target: Tensor) -> Tensor:
    """Return the log-probability of each whole target, in nats: [B] float32. Arguments as for `score_tokens`."""
    return score_tokens(model, source, target).sum(1)
