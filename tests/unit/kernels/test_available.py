import pytest
import torch

from regardant import kernels


def test_nothing_runs_on_a_cpu():
    assert not kernels.available(torch.device("cpu"))
    assert not kernels.supports(torch.ones(1))


@pytest.mark.parametrize(
    ("dtype", "supported"), [(torch.bfloat16, True), (torch.float32, True), (torch.float64, False)]
)
def test_double_precision_is_left_to_pytorch(monkeypatch, dtype, supported):
    monkeypatch.setattr(kernels, "available", lambda device: True)
    assert kernels.supports(torch.ones(1, dtype=dtype)) == supported
