"""Word alignments read off a translator's cross-attention, teacher-forced over given translations.

The layer, the head (or the mean of heads), a shift of rows by one step and the threshold of links are chosen on
validation pairs with gold links, and are fixed for other data.

Shape legend: L layers, H heads, T target tokens with EOS, S source tokens with EOS, V target words, W source words.
"""

import json
from collections.abc import Sequence, Set
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from regardant.config.run_files import EVALUATION
from regardant.data.tokenizers import Tokenizer
from regardant.data.words import words
from regardant.evaluation.alignment import (
    NO_WORD,
    CharacterSpan,
    Link,
    alignment_error_rate,
    choose_threshold,
    extract_links,
    merge_to_words,
    shifted,
    word_of_token,
)
from regardant.inspection import capture
from regardant.tasks.translation.use.translator import Translator

BATCH = 50

MEAN_OF_HEADS = -1


@dataclass(frozen=True)
class AlignmentChoice:
    """Place in the model to read alignments from."""

    layer: int
    head: int
    """-1: the mean of the layer's heads."""
    shift: bool
    """True if a word's row is that of the step that reads it, one after the step that wrote it (Chen et al. 2020)."""
    threshold: float
    """Weight above which a source word is also linked to its heaviest target word, see `extract_links`."""
    validation_error_rate: float

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for --json."""
        return asdict(self)


def word_attention(translator: Translator, sources: Sequence[str], targets: Sequence[str]) -> list[NDArray[Any]]:
    """Return the cross-attention between words, an array [2, L, H + 1, V, W] for each pair.

    First index: as it is, and shifted by one step. The last head is the mean of the others.
    """
    found: list[NDArray[Any]] = []
    for start in range(0, len(sources), BATCH):
        rows = slice(start, start + BATCH)
        batch = translator.pairs(sources[rows], targets[rows], first_line=start + 1)
        with torch.inference_mode(), capture(translator.model, "*cross_attention.weights") as records:
            translator.model.scores(batch.source, batch.target[:, :-1])
        layers = torch.stack([records.whole(place) for place in records], 1).numpy()  # [B, L, H, T, S]
        for pair, source, target in zip(layers, sources[rows], targets[rows], strict=True):
            found.append(_between_words(pair, translator, source, target))
    return found


def choose_alignment(attention: Sequence[NDArray[Any]], gold: Sequence[Set[Link]]) -> AlignmentChoice:
    """Return the place with the lowest error rate on these pairs."""
    _, num_layers, num_heads = attention[0].shape[:3]
    best: AlignmentChoice | None = None
    for shift in (False, True):
        for layer in range(num_layers):
            for head in range(num_heads):
                weights = [pair[int(shift), layer, head] for pair in attention]
                threshold = choose_threshold(weights, gold)
                error = alignment_error_rate([extract_links(w, threshold) for w in weights], gold)
                if best is None or error < best.validation_error_rate:
                    named = MEAN_OF_HEADS if head == num_heads - 1 else head
                    best = AlignmentChoice(layer, named, shift, threshold, error)
    assert best is not None
    return best


def error_rates(attention: Sequence[NDArray[Any]], gold: Sequence[Set[Link]]) -> NDArray[np.float64]:
    """Return the error rate of links from each target word to its heaviest source word, by shift, layer and head
    [2, L, H + 1]. The last head is the mean of the others."""
    rates = np.empty(attention[0].shape[:3])
    for place in np.ndindex(rates.shape):
        rates[place] = alignment_error_rate([extract_links(pair[place]) for pair in attention], gold)
    return rates


def links_of_run(translator: Translator, folder: Path, source: str, target: str, num_layers: int) -> dict[str, Any]:
    """Return links between the words of a pair, read at the place that the run's evaluation has chosen. Without such a
    choice: in the mean of the last layer's heads."""
    choice, chosen = _kept_choice(folder), True
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


def links_by(choice: AlignmentChoice, attention: Sequence[NDArray[Any]]) -> list[set[Link]]:
    """Return the links of pairs, given their attention from `word_attention`."""
    return [extract_links(pair[int(choice.shift), choice.layer, choice.head], choice.threshold) for pair in attention]


def _between_words(weights: NDArray[Any], translator: Translator, source: str, target: str) -> NDArray[Any]:
    source_words = words_of_tokens(translator.tokenizers.source, source)
    target_words = words_of_tokens(translator.tokenizers.target, target)
    weights = weights[:, :, : len(target_words), : len(source_words)]
    by_head = [[[*layer, layer.mean(0)] for layer in weights]]
    by_head.append([[shifted(head) for head in layer] for layer in by_head[0]])
    return np.stack(
        [[[merge_to_words(head, source_words, target_words) for head in layer] for layer in way] for way in by_head]
    )


def words_of_tokens(tokenizer: Tokenizer, text: str, spans: Sequence[CharacterSpan] | None = None) -> list[int]:
    """Return the number of each token's word, NO_WORD for EOS. `spans` of words replace those of `data.words`."""
    # Gold links count the words of the given text. Normalised, an unknown word would be the three words < unk >.
    spans = spans_of_words(text) if spans is None else spans
    return [*word_of_token(tokenizer.locate(text)[1], spans), NO_WORD]


def spans_of_words(text: str) -> list[CharacterSpan]:
    """Return the spans of the words of `data.words`."""
    return [(word.start, word.end) for word in words(text)]


def _kept_choice(folder: Path) -> AlignmentChoice | None:
    for path in sorted((folder / EVALUATION).glob("*.json")):
        place = json.loads(path.read_text(encoding="utf-8")).get("alignment")
        if place is not None:
            return AlignmentChoice(**place)
    return None
