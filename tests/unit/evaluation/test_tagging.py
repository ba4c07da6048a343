"""Labels of words and spans, against counts by hand."""

import pytest
import torch

from regardant.evaluation.tagging import is_bio, score_tags, span_f1, spans
from regardant.models.heads import IGNORED


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("O B-PER I-PER O", {(1, 3, "PER")}),
        ("B-PER B-PER", {(0, 1, "PER"), (1, 2, "PER")}),  # adjacent, of one type
        ("B-PER I-PER B-LOC I-LOC", {(0, 2, "PER"), (2, 4, "LOC")}),
        ("I-PER I-PER O I-LOC", {(0, 2, "PER"), (3, 4, "LOC")}),  # without B-, as in CoNLL-2003
        ("B-PER I-LOC I-LOC", {(0, 1, "PER"), (1, 3, "LOC")}),  # another type goes on
        ("O I-PER B-PER I-PER", {(1, 2, "PER"), (2, 4, "PER")}),
        ("B-work-of-art I-work-of-art", {(0, 2, "work-of-art")}),
        ("B-PER O I-PER", {(0, 1, "PER"), (2, 3, "PER")}),
        ("B-PER", {(0, 1, "PER")}),
        ("O O", set()),
    ],
)
def test_spans_are_read_off_labels(labels, expected):
    assert spans(labels.split()) == expected


@pytest.mark.parametrize(
    ("given", "right", "f1"),
    [
        ("B-PER I-PER O B-LOC", "B-PER I-PER O B-LOC", 1.0),
        ("B-PER O O B-LOC", "B-PER I-PER O B-LOC", 0.5),  # a part of a span is no span
        ("B-LOC I-LOC O O", "B-PER I-PER O O", 0.0),
        ("B-PER I-PER", "B-PER B-PER", 0.0),
        ("I-PER I-PER", "B-PER I-PER", 1.0),
        ("O O", "B-PER I-PER", 0.0),
        ("O O", "O O", 1.0),
        ("B-PER B-PER B-PER", "B-PER O O", 0.5),  # precision 1/3, recall 1
    ],
)
def test_span_f1_counts_whole_spans_of_the_right_type(given, right, f1):
    assert span_f1([(given.split(), right.split())]) == pytest.approx(f1)


def test_span_f1_is_over_all_spans_and_no_mean_over_texts():
    texts = [("B-X O O", "B-X O O"), ("O O O", "B-X B-X B-X")]
    assert span_f1([(given.split(), right.split()) for given, right in texts]) == pytest.approx(2 * 1 / (1 + 4))


def test_a_span_ends_with_its_text():
    texts = [(["B-X"], ["B-X"]), (["I-X"], ["O"])]
    assert span_f1(texts) == pytest.approx(2 * 1 / 3)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["B-PER", "I-PER", "O"], True),
        (["I-PER", "O"], True),
        (["NOUN", "VERB"], False),
        (["O"], False),
        (["B-PER", "X"], False),
    ],
)
def test_labels_are_known_as_bio(labels, expected):
    assert is_bio(labels) == expected


def answers(labels, batches):
    """Return logits that are sure of labels, and targets, of rows (given, right); "_" is no first token."""
    made = []
    for batch in batches:
        rows = [[row.split() for row in pair] for pair in batch]
        width = max(len(given) for given, _ in rows)
        scores = torch.zeros(len(rows), width, len(labels))
        targets = torch.full((len(rows), width), IGNORED)
        for number, (given, right) in enumerate(rows):
            for place, (one, other) in enumerate(zip(given, right, strict=True)):
                scores[number, place, labels.index(one)] = 3.0
                if other != "_":
                    targets[number, place] = labels.index(other)
        made.append((scores, targets))
    return made


def test_words_are_scored_at_their_first_tokens_alone():
    labels = ["B-X", "I-X", "O"]
    found = score_tags(
        answers(labels, [[("B-X O I-X", "B-X _ I-X"), ("O", "O")], [("I-X B-X O O", "O B-X _ B-X")]]), labels
    )
    assert (found.words, found.items) == (6, 3)
    assert found.accuracy == pytest.approx(4 / 6)
    right, wrong = (-torch.tensor([3.0, 0, 0]).log_softmax(0)[place].item() for place in (0, 1))
    assert found.loss == pytest.approx((4 * right + 2 * wrong) / 6)
    # Given: (0, 2), (), (0, 1), (1, 2); right: (0, 2), (), (1, 2), (2, 3).
    assert found.span_f1 == pytest.approx(2 * 2 / (3 + 3))


def test_other_labels_have_no_span_f1():
    labels = ["NOUN", "VERB"]
    found = score_tags(answers(labels, [[("NOUN VERB", "NOUN NOUN")]]), labels)
    assert found.accuracy == 0.5 and found.span_f1 is None and "span_f1" not in found.as_dict()
