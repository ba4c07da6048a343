"""What a peer computes on: the accelerator there is, else the CPU."""

import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def memory() -> dict[str, int]:
    """Return the most bytes of the accelerator that tensors have held, if there is one."""
    return {"peak_bytes": torch.cuda.max_memory_allocated()} if DEVICE.type == "cuda" else {}


def wait() -> None:
    """For all that the device was sent, before a clock is read."""
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
