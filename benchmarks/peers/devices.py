"""Device of a peer: the accelerator if there is one, else the CPU."""

import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def memory() -> dict[str, int]:
    """Return the peak bytes of tensors on the accelerator, if there is one."""
    return {"peak_bytes": torch.cuda.max_memory_allocated()} if DEVICE.type == "cuda" else {}


def wait() -> None:
    """Wait for all work queued on the device, before a clock is read."""
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
