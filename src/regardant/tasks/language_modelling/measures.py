"""A language model's attention in numbers, over the first windows of a text: each as long as the model's context.

Shape legend: N windows, L layers, H heads, T tokens of a window.
"""

from collections.abc import Iterator
from functools import partial
from itertools import islice

import torch
from torch import Tensor

from regardant.data.text import Tokens
from regardant.data.tokenizers import Tokenizer
from regardant.data.windows import consecutive_windows
from regardant.errors import RunError
from regardant.inspection import Attended, attention_kinds, capture, head_importance, measure_heads
from regardant.models import CausalModel
from regardant.tasks.measures import FLOWED, SENTENCES, Measures, follow, is_causal, read_layers, says_little

MEASURED_TOKENS = 8192
"""That are read at most, however long a window is; but one window."""

BATCH_TOKENS = 2048
"""Of the windows whose weights are held at once."""

FLOWED_TOKENS = 20
"""Of a window, those among which flow is sought, whose cost grows faster than their third power. What they attend to
is as if the window ended there."""


def measure(model: CausalModel, tokenizer: Tokenizer, name: str, tokens: Tokens, device: torch.device) -> Measures:
    """Measure a model over the first windows of a text of two tokens or more.

    Raises RunError for a model without attention.
    """
    kinds = attention_kinds(model)
    if not kinds:
        raise RunError("this model has no attention to measure")
    context = model.config.max_length
    most = context * max(1, min(SENTENCES, MEASURED_TOKENS // context)) + 1
    windows = [batch.to(device).tokens for batch in consecutive_windows(tokens[:most], context, BATCH_TOKENS)]
    passes = [partial(model, text=batch[:, :-1], targets=batch[:, 1:]) for batch in windows]
    look = partial(_attended, model, tokenizer, windows)
    found = Measures(
        name=name,
        sentences=sum(map(len, windows)),
        heads={kind: measure_heads(look(places), causal=is_causal(kind)) for kind, places in kinds.items()},
        importance={kind: head_importance(model, passes, places) for kind, places in kinds.items()},
    )
    for kind, places in kinds.items():
        follow(found, kind, look(places), (_begun(one) for one in islice(look(places), FLOWED)))
    read_layers(found, model, ((partial(model.scores, batch[:, :-1]), batch[:, 1:]) for batch in windows))
    return found


def _attended(
    model: CausalModel, tokenizer: Tokenizer, windows: list[Tensor], attentions: list[str]
) -> Iterator[Attended]:
    """Each window under all attentions of a kind."""
    for batch in windows:
        read = batch[:, :-1]
        with torch.inference_mode(), capture(model, [f"{name}.weights" for name in attentions]) as records:
            model.scores(read)
        layers = torch.stack([records.whole(f"{name}.weights") for name in attentions], 1)  # [N, L, H, T, T]
        for weights, ids in zip(layers, read.tolist(), strict=True):
            yield Attended(weights, torch.tensor(says_little(ids, tokenizer.tokens(ids))))


def _begun(window: Attended) -> Attended:
    few = slice(None, FLOWED_TOKENS)
    return Attended(window.weights[..., few, few], window.idle[few])
