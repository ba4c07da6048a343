"""The lectures' two sentences as a page: the translator's cross-attention with the gold links over it."""

from collections.abc import Callable
from typing import Any

from regardant.data.grammar import LECTURE_SENTENCES
from regardant.data.words import words
from regardant.generation.config import GenerationConfig
from regardant.pictures import AttentionPicture, attention_page
from regardant.tasks.translation.alignment import word_attention
from regardant.tasks.translation.translator import Translator


def lecture_page(
    translator: Translator, generation: GenerationConfig, scores: dict[str, Any], say: Callable[[str], None]
) -> str:
    """Translates both and draws them; `scores` are those of the run's test set."""
    sources = [pair.source for pair in LECTURE_SENTENCES]
    translations = [translation.text for translation in translator.translate(sources, generation)]
    place = scores["alignment"]
    pictures = []
    for pair, text, attention in zip(
        LECTURE_SENTENCES, translations, word_attention(translator, sources, translations), strict=True
    ):
        say(f"{pair.source}\n  {text}")
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
    summary = [
        ("BLEU", f"{scores['bleu']:.1f}"),
        ("chrF", f"{scores['chrf']:.1f}"),
        ("alignment error rate", f"{scores['alignment_error_rate']:.3f}"),
    ]
    return attention_page(pictures, title="Where each word comes from", summary=summary)
