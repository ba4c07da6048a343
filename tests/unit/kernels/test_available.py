import pytest
import torch

from regardant import kernels


def test_nothing_runs_on_a_cpu():
    assert not kernels.available(torch.device("cpu"))
    assert not kernels.compute(torch.ones(1))


@pytest.mark.parametrize(("dtype", "computes"), [(torch.bfloat16, True), (torch.float32, True), (torch.float64, False)])
def test_double_precision_is_left_to_pytorch(monkeypatch, dtype, computes):
    monkeypatch.setattr(kernels, "available", lambda device: True)
    assert kernels.compute(torch.ones(1, dtype=dtype)) == computes
