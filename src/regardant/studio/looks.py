"""A sentence, its translation, all attention in between, and the search that found it."""

import json
from pathlib import Path
from typing import Any

import torch
from fastapi import APIRouter

from regardant.data.vocabulary import EOS
from regardant.data.words import words
from regardant.errors import DataError
from regardant.generation.beam_tree import beam_tree
from regardant.generation.search import length_limits
from regardant.pictures.page import packed, record
from regardant.studio.opened import Asked, Opened
from regardant.tasks.translation.alignment import MEAN_OF_HEADS, AlignmentChoice, links_by, word_attention
from regardant.tasks.translation.inspection import Inspection
from regardant.tasks.translation.trained import TrainedTranslator

NBEST = 5
"""Translations that are told of, where the beam has as many."""


def routes(opened: Opened) -> APIRouter:
    """`/api/look` and `/api/beam`."""
    router = APIRouter(prefix="/api")

    @router.post("/look")
    def look(asked: Asked) -> dict[str, Any]:
        with opened.translator(asked.run, asked.off) as translator:
            return look_at(translator, asked)

    @router.post("/beam")
    def beam(asked: Asked) -> dict[str, Any]:
        with opened.translator(asked.run, asked.off) as translator:
            return search_of(translator, asked)

    return router


def look_at(trained: TrainedTranslator, asked: Asked) -> dict[str, Any]:
    """The translation or the given target, all weights, the next tokens, the alignment of words."""
    target, candidates, notes = asked.target, [], []
    if target is None:
        beam_size = trained.generation(beam_size=asked.beam_size).beam_size
        nbest = min(NBEST, beam_size)
        (translation,) = trained.translate([asked.text], beam_size=beam_size, nbest=nbest)
        candidates = [{"text": one.text, "score": one.score} for one in translation.candidates]
        target, notes = translation.text, translation.notes
    found = trained.inspect(asked.text, target)
    return {
        "source": found.source,
        "target": found.target,
        "candidates": candidates,
        "notes": notes,
        "log_probability": trained.score([found.source], [found.target])[0],
        "pictures": _pictures(found),
        "alignment": _alignment(trained, found),
    }


def search_of(trained: TrainedTranslator, asked: Asked) -> dict[str, Any]:
    """Every step of the beam search, as a tree: what was kept, what ended, what fell out of the beam."""
    translator, config = trained.translator, trained.generation(beam_size=asked.beam_size, nbest=1)
    tokenizer = translator.tokenizers
    source = [*tokenizer.source.encode(asked.text), EOS]
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


def _pictures(found: Inspection) -> dict[str, Any] | None:
    """What `view.js` draws, and the place of each kind's layers; None for a model without attention."""
    if not found.pictures:
        return None
    return {
        **record(found.pictures),
        "weights": [[packed(layer) for layer in picture.weights] for picture in found.pictures],
        "places": list(found.layers.values()),
    }


def _alignment(trained: TrainedTranslator, found: Inspection) -> dict[str, Any] | None:
    """Links between words, where the run's evaluation has chosen to read them, else in the last layer's mean."""
    layers = [layers for kind, layers in found.layers.items() if "cross" in kind]
    if not layers:
        return None
    choice, chosen = _choice(trained.folder), True
    if choice is None:
        choice, chosen = AlignmentChoice(len(layers[0]) - 1, MEAN_OF_HEADS, False, 1.0, 1.0), False
    (links,) = links_by(choice, word_attention(trained.translator, [found.source], [found.target]))
    return {
        "source": [word.text for word in words(found.source)],
        "target": [word.text for word in words(found.target)],
        "links": sorted(links),
        "layer": choice.layer,
        "head": choice.head,
        "shift": choice.shift,
        "chosen": chosen,
    }


def _choice(folder: Path) -> AlignmentChoice | None:
    for path in sorted((folder / "evaluation").glob("*.json")):
        place = json.loads(path.read_text(encoding="utf-8")).get("alignment")
        if place is not None:
            return AlignmentChoice(**place)
    return None
