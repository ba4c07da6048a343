"""Kernels for accelerators, written in Triton: one pass over memory in place of many.

Each kernel computes the same as the PyTorch code of the layer that calls it, which is the reference and runs everywhere
else. The modules of this package import Triton: import them only where `supports` or `available` is true.
"""

from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor


def supports(x: Tensor) -> bool:
    """Return whether the kernels support a tensor: on an accelerator, and in float32 at most."""
    return x.dtype != torch.float64 and available(x.device)


def available(device: torch.device) -> bool:
    """Return whether the kernels run on a device."""
    return device.type == "cuda" and _compiles()


@cache
def _compiles() -> bool:
    """Return whether Triton is installed, and the accelerator multiplies bfloat16 (NVIDIA's from 2020 on)."""
    if find_spec("triton") is None or torch.version.cuda is None:
        return False
    major, _ = torch.cuda.get_device_capability()
    return major >= 8
