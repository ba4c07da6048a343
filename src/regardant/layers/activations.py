"""Activation functions by the names that recipes give them."""

from collections.abc import Callable
from functools import partial
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

Activation = Literal["relu", "gelu", "gelu_tanh", "silu", "sigmoid", "elu"]
"""gelu: x Phi(x) (Hendrycks and Gimpel 2016, https://arxiv.org/abs/1606.08415); gelu_tanh: the same by tanh."""

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "silu": F.silu,
    "sigmoid": torch.sigmoid,
    "elu": F.elu,
}
"""Functions of each element, [*B] to [*B]."""
