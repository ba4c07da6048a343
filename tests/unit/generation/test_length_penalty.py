import pytest
import torch

from regardant.data.vocabulary import EOS
from regardant.errors import RunError
from regardant.generation.length_penalty import Hypothesis, length_penalised


def test_the_end_counts_in_the_length_but_is_not_shown():
    assert Hypothesis.of([5, 6, EOS], -6.0, 1.0) == Hypothesis([5, 6], -2.0, -6.0, finished=True)


def test_a_text_without_end_is_not_finished():
    assert Hypothesis.of([5, 6], -6.0, 2.0) == Hypothesis([5, 6], -1.5, -6.0, finished=False)


def test_no_length_penalty_leaves_the_log_probability():
    assert length_penalised(torch.tensor([-6.0, -1.0]), 3, 0.0).tolist() == [-6.0, -1.0]


@pytest.mark.parametrize("log_probability", [float("nan"), float("-inf")])
def test_an_impossible_hypothesis_is_refused(log_probability):
    with pytest.raises(RunError, match="use a checkpoint whose weights are finite"):
        Hypothesis.of([5, EOS], log_probability, 1.0)
