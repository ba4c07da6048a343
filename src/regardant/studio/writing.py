"""How a translation is written, token by token: what the model thought of each, and what was likelier."""

from typing import Any

import torch

from regardant.data.vocabulary import SOS, SPECIAL_TOKENS
from regardant.generation.constraints import NEVER_WRITTEN
from regardant.studio.opened import Asked
from regardant.tasks.translation.trained import TrainedTranslator

LIKELIEST = 10
"""Tokens told of at every step."""


def written(trained: TrainedTranslator, asked: Asked) -> dict[str, Any]:
    """Of a given target, each token with its probability after those before it (teacher forcing); without one, of what
    greedy search writes, where each token is what it then reads (autoregression)."""
    forced = asked.target is not None
    target = asked.target if asked.target is not None else trained.translate([asked.text], beam_size=1)[0].text
    translator = trained.translator
    batch = translator.pairs([asked.text], [target])
    with torch.inference_mode():
        logits = trained.model.scores(batch.source, batch.target[:, :-1])[0].float()
    probabilities, said = logits.softmax(-1), batch.target[0, 1:]
    tokens = translator.tokenizers.target.tokens(said.tolist())
    own = probabilities.gather(-1, said[:, None])
    ranked = probabilities.clone()
    if not forced:
        ranked[:, list(NEVER_WRITTEN)] = 0  # search passes over them, however likely they are
    ranks = (ranked > own).sum(-1) + 1
    best = ranked.topk(min(LIKELIEST, ranked.shape[-1]))
    steps = zip(tokens, own[:, 0].tolist(), ranks.tolist(), best.indices.tolist(), best.values.tolist(), strict=True)
    return {
        "source": asked.text,
        "target": target,
        "forced": forced,
        "read": translator.tokenizers.source.tokens(batch.source[0].tolist()),
        "start": SPECIAL_TOKENS[SOS],
        "steps": [
            {
                "token": token,
                "probability": probability,
                "rank": rank,
                "likeliest": list(zip(translator.tokenizers.target.tokens(ids), shares, strict=True)),
            }
            for token, probability, rank, ids, shares in steps
        ],
    }
