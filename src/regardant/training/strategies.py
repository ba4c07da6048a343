"""Lightning Fabric for a group of processes, and the strategies by which they share a model.

sum     each process has all weights; gradients are summed in one block after the backward passes of an update
ddp     the same, summed in blocks during the last backward pass, so that sending overlaps with computing
fsdp    each process has a shard of weights, gradients and optimizer state (FSDP2), and gathers the weights of a
        sublayer just before its computation. Zhao et al. 2023, "PyTorch FSDP", https://arxiv.org/abs/2304.11277.
"""

import logging
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import torch
from lightning_fabric import Fabric
from lightning_fabric.plugins.environments.cluster_environment import ClusterEnvironment
from lightning_fabric.strategies.ddp import DDPStrategy
from lightning_fabric.strategies.model_parallel import ModelParallelStrategy
from torch import nn

from regardant.errors import ConfigError
from regardant.models.stacks import DecoderLayer, EncoderLayer
from regardant.training.averaging import LastConfig
from regardant.training.config import COPIES, Precision, Strategy, TrainingConfig
from regardant.training.devices import the_device
from regardant.training.optimizers import MuonConfig
from regardant.training.processes import ALONE, Group

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh


def make_fabric(precision: Precision, group: Group = ALONE) -> Fabric:
    """Return Lightning Fabric on the device of this process, for a group whose processes have met."""
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)  # it reports the precision, as the plan does
    name_in_fabric: Literal["bf16-mixed", "32-true"] = "bf16-mixed" if precision == "bfloat16" else "32-true"
    accelerator = the_device().type
    if group.size == 1:
        fabric = Fabric(accelerator=accelerator, devices=1, precision=name_in_fabric)
    else:
        fabric = Fabric(
            accelerator=accelerator,
            devices=group.local_size,
            num_nodes=group.size // group.local_size,
            strategy=_strategy(group),
            precision=name_in_fabric,
            plugins=[_Met(group)],
        )
    fabric.launch()
    return fabric


def require_shareable(model: nn.Module, config: TrainingConfig, strategy: Strategy) -> None:
    """Raise ConfigError if the strategy does not support the model or these settings."""
    if strategy == "sum":
        return
    reason = None
    if getattr(getattr(model, "config", None), "residual", None) == "reversible":
        reason = "reversible residuals compute gradients where ddp and fsdp cannot see them: set training.strategy=sum"
    elif strategy == "fsdp" and isinstance(config.optimizer, MuonConfig):
        reason = "muon needs whole matrices: set training.optimizer.kind=adamw, or training.strategy=ddp"
    elif strategy == "fsdp" and isinstance(config.averaging, LastConfig):
        reason = "the average of the last weights keeps whole models: set training.averaging.kind=ema or none"
    elif strategy == "fsdp" and config.spike_factor is not None:
        reason = "training.spike_factor keeps whole models: leave it out, or set training.strategy=ddp"
    elif strategy == "fsdp" and config.lora is not None:
        reason = "training.lora needs whole matrices: leave it out, or set training.strategy=ddp"
    elif strategy == "fsdp" and any(parameter.ndim == 0 for parameter in model.parameters()):
        reason = "this model has a scalar parameter, which cannot be sharded: set training.strategy=ddp"
    if reason is not None:
        raise ConfigError(f"training.strategy: given {strategy}; {reason}")


def chosen_strategy(model: nn.Module, config: TrainingConfig) -> Strategy:
    """Return the strategy of several processes on this device: the simplest that is fast and fits."""
    device = the_device()
    if device.type == "cpu":  # sum alone can split a batch when memory runs out: docs/decisions/0024
        return "sum"
    strategy: Strategy = "ddp"
    held = COPIES * sum(parameter.nbytes for parameter in model.parameters())
    if held > torch.cuda.get_device_properties(device).total_memory / 2:
        strategy = "fsdp"
    try:
        require_shareable(model, config, strategy)
    except ConfigError:
        return "sum"
    return strategy


def _strategy(group: Group) -> DDPStrategy | ModelParallelStrategy:
    if group.strategy == "fsdp":
        return ModelParallelStrategy(_shard, data_parallel_size=group.size, tensor_parallel_size=1)
    if group.strategy == "sum":
        return _Sum()
    # Which parameters take part may differ between batches and ranks: experts, edges.
    return DDPStrategy(find_unused_parameters=True, gradient_as_bucket_view=True, forward_sync_buffers=False)


class _Sum(DDPStrategy):
    """Replicas whose gradients the trainer sums itself, by `Group.add_up`."""

    def setup_module(self, module: nn.Module) -> nn.Module:  # type: ignore[override]
        return module


def _shard(model: nn.Module, mesh: "DeviceMesh") -> nn.Module:
    """Shard the parameters of each sublayer of a stack, then all others together.

    Parameters that a sublayer shares with other parts, such as a position bias, are sharded with the others.
    """
    from torch.distributed.fsdp import fully_shard  # takes two seconds

    # A sublayer returns a view of a product, which is never changed in place.
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module", category=UserWarning)
    units = sublayers(model)
    uses = Counter(parameter for unit in units for parameter in set(unit.parameters()))
    outside = set(_outside(model, units))
    for unit in units:
        shared = {parameter for parameter in unit.parameters() if parameter in outside or uses[parameter] > 1}
        if shared <= outside:
            fully_shard(unit, mesh=mesh["data_parallel"], ignored_params=shared)
    fully_shard(model, mesh=mesh["data_parallel"])
    return model


def sublayers(model: nn.Module) -> list[nn.Module]:
    """Return the parts of the layers of a model that have parameters: attention and feed-forward networks."""
    layers = [layer for layer in model.modules() if isinstance(layer, EncoderLayer | DecoderLayer)]
    names = ("self_attention", "cross_attention", "feed_forward")
    parts = [getattr(layer, name, None) for layer in layers for name in names]
    return [part for part in parts if isinstance(part, nn.Module) and any(True for _ in part.parameters())]


def _outside(module: nn.Module, units: list[nn.Module]) -> Iterator[nn.Parameter]:
    """Yield the parameters of `module` that are not inside `units`."""
    if not any(module is unit for unit in units):
        yield from module.parameters(recurse=False)
        for child in module.children():
            yield from _outside(child, units)


class _Met(ClusterEnvironment):
    """Environment, for Fabric, of processes that have met already: their ranks, and no process to start."""

    def __init__(self, group: Group) -> None:
        self.group = group

    @property
    def creates_processes_externally(self) -> bool:
        return True

    @property
    def main_address(self) -> str:
        return "127.0.0.1"  # read only for the rendezvous, which is over

    @property
    def main_port(self) -> int:
        return 0

    @staticmethod
    def detect() -> bool:
        return False

    def world_size(self) -> int:
        return self.group.size

    def set_world_size(self, size: int) -> None:
        pass

    def global_rank(self) -> int:
        return self.group.rank

    def set_global_rank(self, rank: int) -> None:
        pass

    def local_rank(self) -> int:
        return self.group.rank % self.group.local_size

    def node_rank(self) -> int:
        return self.group.rank // self.group.local_size
