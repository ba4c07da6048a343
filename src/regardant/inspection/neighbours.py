"""Nearest neighbours of a token in an embedding table.

Shape legend: V vocabulary, M size of a vector.
"""

import torch
from jaxtyping import Float
from torch import Tensor


def nearest(table: Float[Tensor, "V M"], id: int, count: int, first: int = 0) -> list[tuple[int, float]]:
    """Return the `count` ids whose vectors have the largest cosine with that of `id`, best first, with the cosines.

    first: lowest id to return, such as the first after the special tokens.
    """
    with torch.no_grad():
        cosines = torch.cosine_similarity(table.float(), table[id].float()[None], dim=-1)
    cosines[id] = -2.0
    cosines[:first] = -2.0
    best = cosines.topk(min(count, max(0, len(table) - first - (id >= first))))
    return [(int(one), float(value)) for one, value in zip(best.indices, best.values, strict=True)]
