"""Measures of a language model's attention, over the first windows of a text: each as long as the model's context."""

import torch

from regardant.data.text import Tokens
from regardant.data.tokenizers import Tokenizer
from regardant.data.windows import consecutive_windows
from regardant.models import CausalModel
from regardant.tasks import measures
from regardant.tasks.measures import SENTENCES, Measures
from regardant.tasks.probe import Probe

MEASURED_TOKENS = 8192
"""Maximum number of tokens that are read; at least one window is, however long."""

BATCH_TOKENS = 2048
"""Tokens of the windows whose weights are held at once."""


def measure(model: CausalModel, tokenizer: Tokenizer, name: str, tokens: Tokens, device: torch.device) -> Measures:
    """Measure a model over the first windows of a text of two tokens or more.

    Raises:
        RunError: a model without attention.
    """
    context = model.config.max_length
    most = context * max(1, min(SENTENCES, MEASURED_TOKENS // context)) + 1
    probes = []
    for batch in consecutive_windows(tokens[:most], context, BATCH_TOKENS):
        read, targets = batch.tokens[:, :-1], batch.tokens[:, 1:]
        labels = [tokenizer.tokens(row) for row in read.tolist()]
        probes.append(Probe({"text": read.to(device)}, targets.to(device), {"text": labels}))
    return measures.measure(model, name, probes, "window")
