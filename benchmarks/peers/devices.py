"""What a peer computes on: the accelerator there is, else the CPU."""

import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def wait() -> None:
    """For all that the device was sent, before a clock is read."""
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
