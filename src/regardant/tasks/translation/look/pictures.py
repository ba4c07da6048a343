"""The lectures' two sentences as a page: the translator's cross-attention with the gold links over it."""

from collections.abc import Sequence
from typing import Any

from regardant.data.grammar import LECTURE_SENTENCES
from regardant.data.words import words
from regardant.generation.config import GenerationConfig
from regardant.pictures import AttentionPicture, attention_page, heat_map_svg
from regardant.tasks.translation.look.alignment import MEAN_OF_HEADS, word_attention
from regardant.tasks.translation.use.translator import Translator


def lecture_pictures(
    translator: Translator, generation: GenerationConfig, scores: dict[str, Any]
) -> list[AttentionPicture]:
    """Translate both sentences and return their pictures. `scores` of the run's test set name the head to show.

    A sentence that is longer than the model, or whose translation is, has no picture.
    """
    sources = [pair.source for pair in LECTURE_SENTENCES]
    translations = [translation.text for translation in translator.generate(sources, generation)]
    fits, place = translator.fitting(sources, translations), scores["alignment"]
    attentions = word_attention(translator, [sources[n] for n in fits], [translations[n] for n in fits])
    pictures = []
    for index, attention in zip(fits, attentions, strict=True):
        pair, text = LECTURE_SENTENCES[index], translations[index]
        weights = attention[int(place["shift"])]  # [layers, heads + 1, target words, source words]
        pictures.append(
            AttentionPicture(
                title=pair.source,
                source=[word.text for word in words(pair.source)],
                target=[word.text for word in words(text)],
                weights=weights[:, :-1],
                gold=pair.links if text == pair.target else (),
                chosen=(place["layer"], place["head"]),
                note="" if text == pair.target else f"The grammar's own translation is: {pair.target}",
            )
        )
    return pictures


def lecture_page(pictures: Sequence[AttentionPicture], scores: dict[str, Any]) -> str:
    """Return the page, with the run's scores above the pictures."""
    summary = [("BLEU", f"{scores['bleu']:.1f}"), ("chrF", f"{scores['chrf']:.1f}")]
    if scores["alignment_error_rate"] is not None:
        summary.append(("alignment error rate", f"{scores['alignment_error_rate']:.3f}"))
    return attention_page([[picture] for picture in pictures], title="Word alignment", summary=summary)


def lecture_drawing(picture: AttentionPicture) -> str:
    """Draw a picture as SVG, with the head that the page shows first."""
    layer, head = picture.chosen if picture.chosen is not None else (0, MEAN_OF_HEADS)
    return heat_map_svg(picture, layer, None if head == MEAN_OF_HEADS else head)
