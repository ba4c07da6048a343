"""A sentence and its translation in a translator: its own, or one that is given, by teacher forcing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from regardant.data.tokenizers import Tokenizer
from regardant.data.vocabulary import SOS, SPECIAL_TOKENS
from regardant.errors import DataError
from regardant.generation.config import GenerationConfig
from regardant.modalities.text import word_units
from regardant.tasks.inspection import Elements, Inspection, likeliest, look, shown_inputs
from regardant.tasks.translation.look.attended import probe_of
from regardant.tasks.translation.use.translator import Candidate, Translator


@dataclass(frozen=True, eq=False)
class TranslationInspection(Inspection):
    """A sentence, its translation, and what passed the places of the model in between."""

    @property
    def source(self) -> str:
        """The sentence."""
        return self.item

    @property
    def target(self) -> str:
        """Its translation."""
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
    translator: Translator, source: str, target: str | None, generation: GenerationConfig
) -> TranslationInspection:
    """Inspect a translator over a sentence and its translation, its own one where none is given.

    Raises:
        DataError: a blank source, or a text longer than the model.
    """
    if not source.strip():
        raise DataError("the text is blank: give a sentence to look at")
    candidates: list[Candidate] = []
    notes: Sequence[str] = ()
    if target is None:
        (translation,) = translator.translate([source], generation)
        target, candidates, notes = translation.text, translation.candidates, translation.notes
    batch, tokenizers = translator.pairs([source], [target]), translator.tokenizers
    probe = probe_of(tokenizers, batch)
    records, logits = look(translator.model, probe.inputs)
    log_probabilities = logits.log_softmax(-1).gather(1, batch.targets[0][:, None])
    written = _elements(tokenizers.target, target, batch.targets[0].tolist())
    start = SPECIAL_TOKENS[SOS]
    read = {
        "source": _elements(tokenizers.source, source, batch.source[0].tolist()),
        "target": Elements([start, *written.labels[:-1]], [(start, 1), *written.units[:-1]]),
    }
    return TranslationInspection(
        item=source,
        answer=target,
        note=f"Translation: {target}",
        **shown_inputs(translator.model, probe.inputs, read),
        records=records,
        details={
            "next_tokens": likeliest(logits, tokenizers.target),
            "log_probability": float(log_probabilities.sum()),
            "candidates": [{"text": one.text, "score": one.score} for one in candidates],
            "notes": list(notes),
        },
        written={"target": written},
    )


def _elements(tokenizer: Tokenizer, text: str, ids: list[int]) -> Elements:
    labels = tokenizer.tokens(ids)
    return Elements(labels, word_units(tokenizer, text, labels))
