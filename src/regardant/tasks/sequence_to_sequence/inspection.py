"""Inspection of an encoder-decoder over an item and a text: the generated one, or a given one by teacher forcing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from regardant.data.vocabulary import NEVER_WRITTEN, SOS, SPECIAL_TOKENS
from regardant.errors import DataError
from regardant.generation.beam_tree import beam_tree
from regardant.generation.config import GenerationConfig
from regardant.generation.search import length_limits, require_repeated_brackets
from regardant.generation.trees import TreeTokens
from regardant.modalities.text import word_units
from regardant.tasks.inspection import Elements, Inspection, likeliest, look, shown_inputs
from regardant.tasks.sequence_to_sequence.generator import Candidate, TextGenerator

LIKELIEST = 10
"""Number of likeliest tokens at each step."""


@dataclass(frozen=True, eq=False)
class PairInspection(Inspection):
    """An item, its text, and the tensors recorded at the places of the model."""

    @property
    def source(self) -> str:
        """The item."""
        return self.item

    @property
    def target(self) -> str:
        """The text of the item."""
        return self.answer

    def as_dict(self) -> dict[str, Any]:
        read, written = self.inputs["source"], self.written["target"]
        return {
            "source": self.source,
            "target": self.target,
            "source_tokens": read.labels,
            "source_words": read.units,
            "target_tokens": written.labels,
            "target_words": written.units,
            **super().as_dict(),
        }


def inspect_pair(
    generator: TextGenerator, item: str, target: str | None, generation: GenerationConfig
) -> PairInspection:
    """Inspect a model over an item and a text: `target`, or the generated text if that is None.

    Raises:
        DataError: a blank item, or one longer than the model.
    """
    if not item.strip():
        raise DataError("the text is blank: give a sentence to look at")
    candidates: list[Candidate] = []
    notes: Sequence[str] = ()
    generator.encoded([item], [target or ""])  # refuses an item that is too long before the search for its text
    if target is None:
        (found,) = generator.generate([item], generation)
        target, candidates, notes = found.text, found.candidates, found.notes
    batch, tokenizer, codec = generator.pairs([item], [target]), generator.tokenizer, generator.codec
    (encoded,) = generator.encode([item])
    inputs = batch.read
    records, logits = look(generator.model, inputs)
    log_probabilities = logits.log_softmax(-1).gather(1, batch.targets[0][:, None])
    labels = tokenizer.tokens(batch.targets[0].tolist())
    written = Elements(labels, word_units(tokenizer, target, labels))
    start = SPECIAL_TOKENS[SOS]
    read = {
        "source": Elements(codec.labels(encoded), codec.units(item, encoded), codec.layout(encoded)),
        "target": Elements([start, *written.labels[:-1]], [(start, 1), *written.units[:-1]]),
    }
    return PairInspection(
        item=item,
        answer=target,
        note=f"{generator.answer_name}: {target}",
        **shown_inputs(generator.model, inputs, read),
        records=records,
        details={
            "next_tokens": likeliest(logits, tokenizer),
            "log_probability": float(log_probabilities.sum()),
            "candidates": [{"text": one.text, "score": one.score} for one in candidates],
            "notes": list(notes),
        },
        written={"target": written},
        title=codec.title(item),
    )


def beam_search(generator: TextGenerator, item: str, config: GenerationConfig) -> dict[str, Any]:
    """Return all steps of a beam search as a tree: candidates that were kept, that ended, and that were dropped.

    Raises DataError for an item longer than the model.
    """
    (encoded,) = generator.encode([item])
    (length,) = generator.codec.lengths(np.array([len(encoded)])).tolist()
    if length > generator.max_length:
        raise DataError(f"the text has {length} tokens, the model takes {generator.max_length}: shorten it")
    (limit,) = length_limits([length], config, [[]], generator.longest_written)
    require_repeated_brackets(config)
    source = generator.codec.collate([encoded]).to(generator.device)
    trees = TreeTokens.of(generator.tokenizer.pieces, generator.device) if config.trees else None
    tree = beam_tree(generator.model, source, limit, config, trees)
    tokens = generator.tokenizer.tokens([one.token for one in tree.candidates])
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


def token_by_token(generator: TextGenerator, item: str, target: str, *, forced: bool) -> dict[str, Any]:
    """Return each token of a text with its probability given those before it, its rank, and the likeliest tokens.

    forced: True if the text was given (teacher forcing). False: greedy search wrote it, so that ranks leave out tokens
        that search never writes.
    """
    batch, tokenizer = generator.pairs([item], [target]), generator.tokenizer
    with torch.inference_mode():
        logits = generator.model.scores(**batch.inputs)[0].float()
    probabilities, written = logits.softmax(-1), batch.targets[0]
    own = probabilities.gather(-1, written[:, None])
    ranked = probabilities.clone()
    if not forced:
        ranked[:, list(NEVER_WRITTEN)] = 0  # search passes over them, however likely they are
    ranks = (ranked > own).sum(-1) + 1
    best = ranked.topk(min(LIKELIEST, ranked.shape[-1]))
    tokens = tokenizer.tokens(written.tolist())
    steps = zip(tokens, own[:, 0].tolist(), ranks.tolist(), best.indices.tolist(), best.values.tolist(), strict=True)
    return {
        "source": item,
        "target": target,
        "forced": forced,
        "read": generator.codec.labels(generator.encode([item])[0]),
        "start": SPECIAL_TOKENS[SOS],
        "steps": [
            {
                "token": token,
                "probability": probability,
                "rank": rank,
                "likeliest": list(zip(tokenizer.tokens(ids), shares, strict=True)),
            }
            for token, probability, rank, ids, shares in steps
        ],
    }
