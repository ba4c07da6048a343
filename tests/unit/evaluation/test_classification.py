"""Scores of classes, compared with scikit-learn and with Wilson's table."""

import pytest
import torch
from sklearn.metrics import accuracy_score, f1_score, log_loss

from regardant.evaluation.classification import score_classes


def answers(num_items, num_classes, seed=0):
    """Return logits and targets in two batches of different sizes."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(num_items, num_classes, generator=generator)
    targets = torch.randint(num_classes, (num_items,), generator=generator)
    return [(logits[:7], targets[:7]), (logits[7:], targets[7:])]


def test_macro_f1_is_scikit_learn_s():
    given = answers(50, 4)
    found = score_classes(given)
    logits, targets = (torch.cat(parts) for parts in zip(*given, strict=True))
    predicted = logits.argmax(1)
    assert found.macro_f1 == pytest.approx(f1_score(targets, predicted, average="macro"))
    assert found.accuracy == pytest.approx(accuracy_score(targets, predicted))
    assert found.loss == pytest.approx(log_loss(targets, logits.double().softmax(1), labels=range(4)), rel=1e-5)
    assert found.items == 50


def test_a_class_that_does_not_occur_is_left_out_of_macro_f1():
    logits, targets = torch.eye(4)[[0, 1, 1]], torch.tensor([0, 1, 0])
    assert score_classes([(logits, targets)]).macro_f1 == pytest.approx((2 / 3 + 2 / 3) / 2)


@pytest.mark.parametrize(("right", "interval"), [(8, (0.4902, 0.9433)), (10, (0.7225, 1.0))])
def test_the_interval_of_ten_items_is_wilson_s(right, interval):
    """Newcombe 1998, "Two-sided confidence intervals for the single proportion", method 3."""
    targets = torch.zeros(10, dtype=torch.int64)
    logits = torch.eye(2)[[0] * right + [1] * (10 - right)]
    assert score_classes([(logits, targets)]).interval == pytest.approx(interval, abs=1e-4)


@pytest.mark.parametrize(("right", "count"), [(0, 15), (19, 19)])
def test_the_interval_is_within_0_and_1(right, count):
    """Of these counts, the bounds are rounded to less than 0 and more than 1."""
    targets = torch.zeros(count, dtype=torch.int64)
    logits = torch.eye(2)[[0] * right + [1] * (count - right)]
    low, high = score_classes([(logits, targets)]).interval
    assert 0 <= low < high <= 1
    assert f"{low:.2%}"[0] != "-"
