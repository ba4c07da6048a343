"""The elements of a model's inputs: which vectors are real, and which belong to no element.

Shape legend: B batch, T vectors of an input.
"""

from typing import Any

import torch
from torch import Tensor

from regardant.models.base import Model

CLASS_TOKEN = "<class>"
"""The label of a class token."""


def real_elements(model: Model, name: str, value: Any) -> Tensor:
    """Return which vectors of an input are real [B, T], on the CPU, as its representation says."""
    with torch.inference_mode():
        vectors = model.representation(name)(value)
    if vectors.real is None:
        return torch.ones(vectors.values.shape[:2], dtype=torch.bool)
    return vectors.real.cpu()


def class_tokens(model: Model, name: str) -> list[str]:
    """Return the labels of the vectors that stand before the elements of an input: one class token, or none."""
    return [CLASS_TOKEN] if hasattr(model.representation(name), "class_token") else []
