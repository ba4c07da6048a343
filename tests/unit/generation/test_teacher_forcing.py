import pytest
import torch

from regardant.data.vocabulary import EOS, SOS
from regardant.generation.teacher_forcing import score_pairs, score_tokens

SOURCE = torch.tensor([[5, 6, EOS], [7, EOS, 0]])
TARGET = torch.tensor([[SOS, 5, 6, EOS], [SOS, EOS, 0, 0]])


def test_each_token_gets_the_log_probability_it_has_after_those_before(table_model):
    model = table_model(seed=1)
    tokens = score_tokens(model, SOURCE, TARGET)
    expected = [model.after([5, 6, EOS], [])[5], model.after([5, 6, EOS], [5])[6], model.after([5, 6, EOS], [5, 6])[2]]
    assert tokens[0].tolist() == pytest.approx(expected)


def test_padding_adds_nothing(table_model):
    model = table_model(seed=1)
    assert score_tokens(model, SOURCE, TARGET)[1, 1:].tolist() == [0.0, 0.0]
    torch.testing.assert_close(
        score_pairs(model, SOURCE, TARGET)[1:], score_pairs(model, SOURCE[1:, :2], TARGET[1:, :2])
    )


def test_scores_are_float32_whatever_the_model_computes_in(table_model):
    model = table_model(seed=1)
    model.table = model.table.bfloat16()
    assert score_pairs(model, SOURCE, TARGET).dtype == torch.float32
