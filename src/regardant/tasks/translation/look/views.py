"""Views of a translated sentence beside its attention: the alignment of words, the beam search, token by token."""

import json
from pathlib import Path
from typing import Any

import torch

from regardant.data.vocabulary import EOS, SOS, SPECIAL_TOKENS
from regardant.data.words import words
from regardant.errors import DataError
from regardant.generation.beam_tree import beam_tree
from regardant.generation.config import GenerationConfig
from regardant.generation.constraints import NEVER_WRITTEN
from regardant.generation.search import length_limits
from regardant.tasks.translation.look.alignment import MEAN_OF_HEADS, AlignmentChoice, links_by, word_attention
from regardant.tasks.translation.use.translator import Translator

LIKELIEST = 10
"""Number of likeliest tokens at every step."""


def alignment(translator: Translator, folder: Path, source: str, target: str, num_layers: int) -> dict[str, Any]:
    """Return links between words, read at the place that the run's evaluation has chosen; without an evaluation, in the
    mean of the last layer's heads."""
    choice, chosen = _choice(folder), True
    if choice is None:
        choice, chosen = AlignmentChoice(num_layers - 1, MEAN_OF_HEADS, False, 1.0, 1.0), False
    (links,) = links_by(choice, word_attention(translator, [source], [target]))
    return {
        "source": [word.text for word in words(source)],
        "target": [word.text for word in words(target)],
        "links": sorted(links),
        "layer": choice.layer,
        "head": choice.head,
        "shift": choice.shift,
        "chosen": chosen,
    }


def beam_search(translator: Translator, text: str, config: GenerationConfig) -> dict[str, Any]:
    """Return every step of the beam search as a tree: candidates that were kept, that ended, that were dropped."""
    tokenizer = translator.tokenizers
    source = [*tokenizer.source.encode(text), EOS]
    if len(source) > translator.max_length:
        raise DataError(f"the text has {len(source)} tokens, the model takes {translator.max_length}: shorten it")
    (limit,) = length_limits([len(source)], config, [[]], translator.max_length - 1)
    tree = beam_tree(translator.model, torch.tensor([source], device=translator.device), limit, config)
    tokens = tokenizer.target.tokens([one.token for one in tree.candidates])
    return {
        "beam_size": config.beam_size,
        "length_penalty": config.length_penalty,
        "candidates": [
            {
                "parent": one.parent,
                "step": one.step,
                "token": token,
                "logProbability": one.log_probability,
                "score": one.score,
                "fate": one.fate,
            }
            for one, token in zip(tree.candidates, tokens, strict=True)
        ],
        "best": [tree.path(number) for number in tree.best],
    }


def token_by_token(translator: Translator, source: str, target: str, *, forced: bool) -> dict[str, Any]:
    """Return each token of a target with its probability after those before it, its rank, and the likeliest tokens.

    forced: the target was given (teacher forcing); else it is what greedy search wrote, which never writes some tokens.
    """
    batch, tokenizers = translator.pairs([source], [target]), translator.tokenizers
    with torch.inference_mode():
        logits = translator.model.scores(**batch.inputs)[0].float()
    probabilities, written = logits.softmax(-1), batch.targets[0]
    own = probabilities.gather(-1, written[:, None])
    ranked = probabilities.clone()
    if not forced:
        ranked[:, list(NEVER_WRITTEN)] = 0  # search passes over them, however likely they are
    ranks = (ranked > own).sum(-1) + 1
    best = ranked.topk(min(LIKELIEST, ranked.shape[-1]))
    tokens = tokenizers.target.tokens(written.tolist())
    steps = zip(tokens, own[:, 0].tolist(), ranks.tolist(), best.indices.tolist(), best.values.tolist(), strict=True)
    return {
        "source": source,
        "target": target,
        "forced": forced,
        "read": tokenizers.source.tokens(batch.source[0].tolist()),
        "start": SPECIAL_TOKENS[SOS],
        "steps": [
            {
                "token": token,
                "probability": probability,
                "rank": rank,
                "likeliest": list(zip(tokenizers.target.tokens(ids), shares, strict=True)),
            }
            for token, probability, rank, ids, shares in steps
        ],
    }


def _choice(folder: Path) -> AlignmentChoice | None:
    for path in sorted((folder / "evaluation").glob("*.json")):
        place = json.loads(path.read_text(encoding="utf-8")).get("alignment")
        if place is not None:
            return AlignmentChoice(**place)
    return None
