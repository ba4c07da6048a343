"""Scores of labels of words, and of the spans that BIO labels make.

A label B-X begins a span of the type X, I-X continues it, O is outside of spans (Ramshaw and Marcus 1995, "Text
chunking using transformation-based learning", https://aclanthology.org/W95-0107). Spans are counted as the shared task
of CoNLL-2003 counts them: an I-X after anything but B-X or I-X begins a span too.

Shape legend: B texts of a batch, T tokens, C labels.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from regardant.models.heads import IGNORED

TypedSpan = tuple[int, int, str]
"""(first word, word after the last, type)."""

OUTSIDE = "O"


@dataclass(frozen=True)
class TaggingScores:
    """Accuracy of the likeliest labels, and the loss of their probabilities."""

    accuracy: float
    """Share of words whose likeliest label is right."""
    loss: float
    """Mean cross-entropy, in nats per word."""
    span_f1: float | None
    """Micro-averaged F1 of spans. None: the labels are not BIO."""
    words: int
    items: int
    """Number of texts."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for --json, without scores that these labels lack."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def score_tags(answers: Sequence[tuple[Tensor, Tensor]], labels: Sequence[str]) -> TaggingScores:
    """Score logits [B, T, C] against targets [B, T], IGNORED where no word begins, batch by batch."""
    nats, right, words = 0.0, 0, 0
    for scores, targets in answers:
        counted = targets != IGNORED
        nats += float(F.cross_entropy(scores[counted], targets[counted], reduction="sum"))
        right += int((scores.argmax(-1) == targets)[counted].sum())
        words += int(counted.sum())
    pairs = [pair for batch in answers for pair in _labelled(*batch, labels)]
    return TaggingScores(
        accuracy=right / words,
        loss=nats / words,
        span_f1=span_f1(pairs) if is_bio(labels) else None,
        words=words,
        items=len(pairs),
    )


def is_bio(labels: Iterable[str]) -> bool:
    """Return whether labels are BIO: some begin or continue a span, and all others are O."""
    others = set(labels) - {OUTSIDE}
    return bool(others) and all(label.startswith(("B-", "I-")) for label in others)


def spans(labels: Sequence[str]) -> set[TypedSpan]:
    """Return the spans that BIO labels make."""
    found: set[TypedSpan] = set()
    start, kind = 0, None
    for place, label in enumerate([*labels, OUTSIDE]):
        prefix, _, name = label.partition("-")
        if kind is not None and (prefix != "I" or name != kind):
            found.add((start, place, kind))
            kind = None
        if kind is None and prefix in ("B", "I"):
            start, kind = place, name
    return found


def span_f1(pairs: Iterable[tuple[Sequence[str], Sequence[str]]]) -> float:
    """Return the F1 of spans over all (given labels, right labels): 1 where there is no span on either side."""
    both = either = 0
    for given, right in pairs:
        predicted, gold = spans(given), spans(right)
        both, either = both + len(predicted & gold), either + len(predicted) + len(gold)
    return 2 * both / either if either else 1.0


def _labelled(scores: Tensor, targets: Tensor, labels: Sequence[str]) -> Iterator[tuple[list[str], list[str]]]:
    """Yield (given labels, right labels) of each text of a batch."""
    for best, row in zip(scores.argmax(-1), targets, strict=True):
        counted = row != IGNORED
        yield [labels[n] for n in best[counted].tolist()], [labels[n] for n in row[counted].tolist()]
