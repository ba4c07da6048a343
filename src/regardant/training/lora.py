"""Low-rank adaptation: the matrices of an earlier run are frozen, and each learns an added product of low rank.

Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large Language Models", https://arxiv.org/abs/2106.09685, section 4.1:
W' = W + alpha / rank * B A, with B = 0 at the start.

The sum is formed in each pass, so that every layer and kernel reads one matrix. This takes the memory of a full
gradient for one matrix at a time, and saves the optimizer's state. Saved weights are the sums, so that the run can be
used like any other.

Shape legend: I inputs, O outputs, R rank.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn
from torch.nn.utils import parametrize

from regardant.config import Config
from regardant.errors import ConfigError

_MATRIX, _FACTORS = ".parametrizations.weight.original", ".parametrizations.weight.0."
"""Names of an adapted layer's parameters after the layer's own name."""


class LoraConfig(Config):
    """Low-rank adaptation of linear layers."""

    rank: int = Field(8, gt=0)
    """Inner size of the two matrices that each linear layer learns."""

    alpha: float = Field(16.0, gt=0, allow_inf_nan=False)
    """Scale of the product times the rank: one learning rate suits several ranks."""


class LowRankSum(nn.Module):
    """W + alpha / rank * B A."""

    def __init__(self, num_outputs: int, num_inputs: int, config: LoraConfig) -> None:
        super().__init__()
        self.down = nn.Parameter(torch.empty(config.rank, num_inputs))
        self.up = nn.Parameter(torch.zeros(num_outputs, config.rank))
        self.scale = config.alpha / config.rank
        self.merged = False
        """True if W contains the product already."""
        nn.init.kaiming_uniform_(self.down, a=5**0.5)

    def forward(self, weight: Float[Tensor, "O I"]) -> Float[Tensor, "O I"]:
        """Return the sum, in the precision of W."""
        if self.merged:
            return weight
        with torch.autocast(weight.device.type, enabled=False):  # it would round the sum that is kept
            return torch.addmm(weight, self.up, self.down, alpha=self.scale)


def adapt(model: nn.Module, config: LoraConfig, parts: Sequence[str]) -> None:
    """Freeze parts of a model, and add trainable products of low rank to their linear layers.

    A matrix that several layers share is frozen without a product.

    Raises ConfigError if the parts have no linear layer of their own.
    """
    users = Counter(id(parameter) for module in model.modules() for parameter in module._parameters.values())
    adapted = [
        layer
        for part in parts
        for layer in model.get_submodule(part).modules()
        if isinstance(layer, nn.Linear) and users[id(layer.weight)] == 1
    ]
    if not adapted:
        raise ConfigError(f"training.lora: found no linear layer of its own in {', '.join(parts)}: leave it out")
    for part in parts:
        model.get_submodule(part).requires_grad_(False)
    for layer in adapted:
        parametrize.register_parametrization(layer, "weight", LowRankSum(layer.out_features, layer.in_features, config))


@contextmanager
def merged(model: nn.Module) -> Iterator[None]:
    """Merge the products into the model's matrices inside the context. Costs a copy of each matrix."""
    own: list[tuple[LowRankSum, Tensor, Tensor]] = []
    with torch.no_grad():
        for layer in model.modules():
            if isinstance(layer, parametrize.ParametrizationList) and isinstance(layer[0], LowRankSum):
                own.append((layer[0], layer.original, layer.original.clone()))
                layer.original.copy_(layer[0](layer.original))
                layer[0].merged = True
        try:
            yield
        finally:
            for sum_, weight, before in own:
                weight.copy_(before)
                sum_.merged = False


def plain_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return the weights of a merged model by the names that they have without adaptation."""
    return {
        name.replace(_MATRIX, ".weight"): weight for name, weight in model.state_dict().items() if _FACTORS not in name
    }
