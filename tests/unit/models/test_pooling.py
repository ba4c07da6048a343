import pytest
import torch

from regardant.models.heads.pooling import pool
from regardant.models.vectors import Vectors


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [("mean", [[2.0], [0.0]]), ("max", [[3.0], [-torch.inf]]), ("first", [[1.0], [5.0]])],
)
def test_padding_is_not_pooled(pooling, expected):
    values = torch.tensor([[[1.0], [3.0], [9.0]], [[5.0], [6.0], [7.0]]])
    real = torch.tensor([[True, True, False], [False, False, False]])
    assert torch.equal(pool(Vectors(values, real), pooling), torch.tensor(expected))


def test_gradients_of_padding_alone_are_zero():
    values = torch.ones(1, 2, 1, requires_grad=True)
    pool(Vectors(values, torch.zeros(1, 2, dtype=torch.bool)), "mean").sum().backward()
    assert torch.equal(values.grad, torch.zeros(1, 2, 1))
