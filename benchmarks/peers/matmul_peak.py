"""The machine's own matmul rate, which other rates are compared with."""

import time
from statistics import median

import torch
from devices import DEVICE, wait
from serve import Driver

ROWS, INNER, COLUMNS = (4096, 512, 2048) if DEVICE.type == "cpu" else (8192, 8192, 8192)
"""Sizes of the product. An accelerator reaches its peak rate with large matrices alone."""

REPEATS = 15


def by_onednn(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    return torch.ops.mkldnn._linear_pointwise(left, right.T, None, "none", [], "")


def gigaflops(dtype: torch.dtype) -> float:
    """Return the median GFLOP/s of one product; on a CPU, that of PyTorch or of oneDNN, whichever is faster."""
    left, right = torch.randn(ROWS, INNER).to(DEVICE, dtype), torch.randn(INNER, COLUMNS).to(DEVICE, dtype)
    rates = []
    for multiply in (torch.mm, by_onednn) if DEVICE.type == "cpu" else (torch.mm,):
        taken = []
        for number in range(3 + REPEATS):  # three to warm up
            start = time.perf_counter()
            multiply(left, right)
            wait()
            if number >= 3:
                taken.append(time.perf_counter() - start)
        rates.append(2 * ROWS * INNER * COLUMNS / median(taken) / 1e9)
    return max(rates)


def main() -> None:
    driver = Driver()
    driver.answer(versions={"torch": str(torch.__version__)}, threads=torch.get_num_threads())
    for request in driver.requests():
        driver.answer(**{precision: gigaflops(getattr(torch, precision)) for precision in request["precisions"]})


if __name__ == "__main__":
    main()
