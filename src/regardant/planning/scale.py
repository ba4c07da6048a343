"""The cost of training a model on several devices, as an estimate: no data is read, and no device is needed.

Models of translation and language modelling are built over the vocabulary of WMT14 English-German and run on one and
two rows. So parameters and floating-point operations are exact, and activations kept for the backward pass are counted
tensor by tensor. Speed is estimated from the rates of a device and the assumptions, which are printed.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode

from regardant.config.did_you_mean import did_you_mean
from regardant.errors import ConfigError
from regardant.modalities import TextModalityConfig
from regardant.models import CausalConfig, Model, SequenceToSequenceConfig, next_token, tokens
from regardant.planning.flops import flop_counter
from regardant.planning.published import VOCABULARY
from regardant.tasks.base import TaskConfig
from regardant.training.config import COPIES
from regardant.training.devices import require_memory
from regardant.training.strategies import sublayers

ParallelStrategy = Literal["ddp", "fsdp"]

LENGTH = 28
"""Tokens of a sentence of WMT14 English-German (Vaswani et al. 2017, section 5.1), on average: an assumption."""

UPDATES = 100_000
"""Updates of a recipe without max_updates: those of Vaswani's `base`. `big` took 300,000."""

OPTIMIZER_BYTES = 40
"""Bytes read and written for each parameter by an update of Adam, its clipping and the average."""

BFLOAT16_SHARE = 0.55
"""Memory of activations in bfloat16, as a share of that in float32: an assumption, since some stay in float32."""


@dataclass(frozen=True)
class Device:
    """The rates of one device, per second, and its memory."""

    name: str
    memory: float
    """Bytes."""
    flops: float
    """Floating-point operations per second in large matrix products."""
    share: float
    """Share of `flops` that training reaches where products take most of its time: an assumption, except on an H200."""
    bandwidth: float
    """Memory bandwidth, in bytes per second."""
    link: float
    """Bytes per second to other devices of its machine, one way: an assumption."""
    resident: float = 1e9
    """Bytes of libraries and their buffers."""
    launch: float = 40e-6
    """Seconds to launch one operation; Python launches them one by one. An assumption, except on an H200."""


DEVICES = {
    "a100": Device("a100", 80e9, 312e12, 0.35, 2.0e12, 250e9),
    "h100": Device("h100", 80e9, 989e12, 0.34, 3.3e12, 400e9),
    "h200": Device("h200", 141e9, 989e12, 0.34, 4.8e12, 400e9),
}
"""Memory, bandwidth and dense bfloat16 rates of the data sheets of NVIDIA's SXM modules. Their links have 300 GB/s
(A100) and 450 GB/s one way; less is assumed here. Share and launch of the H200 were measured: docs/decisions/0025."""


@dataclass(frozen=True)
class ScalingCost:
    """The cost of training on several devices with one strategy."""

    strategy: ParallelStrategy
    devices: int
    parameters: int
    memory_bytes: float
    """Peak memory of one rank."""
    state_bytes: float
    """Weights, gradients, optimizer state and average of one rank, a part of `memory_bytes`."""
    sent_bytes: float
    """Bytes that a rank sends in an update."""
    tokens_per_second: float
    """Target tokens of all devices together."""
    hours: float
    price: float | None
    """hours x devices x the given rate. None: no rate was given."""
    fits: bool

    def as_dict(self) -> dict[str, Any]:
        """Return the content of --json."""
        return asdict(self)

    def lines(self) -> list[str]:
        """Return the lines to print."""
        cost = "" if self.price is None else f", price {self.price:,.0f}"
        room = "" if self.fits else ", which does not fit"
        return [
            f"{self.strategy} on {self.devices}",
            f"  memory        {self.memory_bytes / 2**30:.1f} GiB a rank, {self.state_bytes / 2**30:.1f} of them "
            f"weights, gradients and optimizer state{room}",
            f"  sent          {self.sent_bytes / 2**20:,.0f} MiB by each rank in an update",
            f"  speed         {self.tokens_per_second:,.0f} target tokens per second",
            f"  time          {self.hours:,.1f} hours{cost}",
        ]


@dataclass(frozen=True)
class Workload:
    """Computation, memory and communication of one update of a model."""

    parameters: int
    units: tuple[int, ...]
    """Number of parameters of each part that is gathered at once: sublayers, then all others together."""
    rows: int
    """Sequences of an update."""
    passes: int
    """Gradient accumulation steps of an update."""
    flops: float
    """Floating-point operations of an update, forward and backward."""
    operations: int
    """Number of operations launched for one batch, forward and backward."""
    kept_bytes: float
    """Bytes of activations kept for the backward pass of one batch over all ranks, in float32."""
    targets: int
    updates: int


def costs(
    config: TaskConfig, device: Device, devices: int, ways: tuple[ParallelStrategy, ...], rate: float | None = None
) -> list[ScalingCost]:
    """Return the cost of a recipe with each strategy. `rate` is the price of a device per hour.

    Raises ConfigError for a task whose model has no vocabulary, and for items that are not texts.
    """
    load = workload(config)
    return [cost(load, device, devices, way, rate) for way in ways]


def ways_named(name: str | None) -> tuple[ParallelStrategy, ...]:
    """Return the strategies to compare: the named one, or all. Raises ConfigError for an unknown name."""
    allowed = get_args(ParallelStrategy)
    if name is not None and name not in allowed:
        raise ConfigError(f"--strategy: given {name!r}; allowed: {', '.join(allowed)}")
    return tuple(way for way in allowed if name in (None, way))


def device_named(name: str) -> Device:
    """Return a known device. Raises ConfigError for any other."""
    if name not in DEVICES:
        raise ConfigError(f"--device: given {name!r}; allowed: {', '.join(DEVICES)}{did_you_mean(name, DEVICES)}")
    return DEVICES[name]


def assumptions(config: TaskConfig, device: Device) -> list[str]:
    """Return the assumptions behind the numbers, a line each."""
    training, sizes = config.training, config.model
    length = f"{_row_length(sizes, LENGTH):,} tokens"
    rows = f"windows of {length}" if isinstance(sizes, CausalConfig) else f"pairs of {length} a side"
    return [
        f"{rows}; a vocabulary of {VOCABULARY:,} entries, that of WMT14 English-German",
        f"an update is {training.accumulate} x {training.batch_tokens:,} tokens of all ranks together (training."
        f"batch_tokens, training.accumulate); {training.max_updates or UPDATES:,} updates",
        f"{device.name}: {device.memory / 1e9:.0f} GB, {device.flops / 1e12:,.0f} TFLOP/s, of which training reaches "
        f"{device.share:.0%}; launching an operation takes {device.launch * 1e6:.0f} us",
        f"{device.name}: {device.bandwidth / 1e9:,.0f} GB/s of memory, {device.link / 1e9:,.0f} GB/s to each other",
        f"weights, gradients, two moments and an average in float32; activations in bfloat16; "
        f"{device.resident / 1e9:.1f} GB for libraries",
        "ddp sends during the backward pass, fsdp during all passes; sending that takes longer adds to the time",
    ]


def cost(
    load: Workload, device: Device, devices: int, strategy: ParallelStrategy, rate: float | None = None
) -> ScalingCost:
    """Return the cost of a workload with one strategy."""
    weights, others = 4.0 * load.parameters, (devices - 1) / devices
    rows = load.rows // load.passes
    share = math.ceil(rows / devices) / rows  # of the rank with most rows, for which the others wait
    gathered = 0.0
    if strategy == "ddp":
        state = COPIES * weights
        sent = 2 * others * weights
    else:
        *parts, rest = (4 * unit for unit in load.units)
        state = COPIES * weights / devices
        gathered = 2 * (rest + 2 * max(parts, default=0))  # weights and gradients; one sublayer ahead
        # Sublayers are gathered for both passes, the rest once; gradients are summed after each backward pass.
        sent = others * load.passes * (3 * sum(parts) + 2 * rest)
    kept = load.kept_bytes * BFLOAT16_SHARE * share
    memory = device.resident + state + (gathered if devices > 1 and strategy == "fsdp" else 0) + kept
    starting = load.passes * load.operations * device.launch
    computing = max(starting, load.flops * share / (device.flops * device.share))
    hidden = computing * (2 / 3 / load.passes if strategy == "ddp" else 1)
    own = load.parameters / (devices if strategy == "fsdp" else 1)
    seconds = computing + max(0.0, sent / device.link - hidden) + own * OPTIMIZER_BYTES / device.bandwidth
    hours = load.updates * seconds / 3600
    return ScalingCost(
        strategy=strategy,
        devices=devices,
        parameters=load.parameters,
        memory_bytes=memory,
        state_bytes=state,
        sent_bytes=sent if devices > 1 else 0.0,
        tokens_per_second=load.targets / seconds,
        hours=hours,
        price=None if rate is None else hours * devices * rate,
        fits=memory <= device.memory,
    )


def workload(config: TaskConfig, vocabulary: int = VOCABULARY, length: int = LENGTH) -> Workload:
    """Return the workload of an update of a recipe's model, by default at the size of WMT14.

    Raises OutOfMemory if one model does not fit into main memory, ConfigError if it has no vocabulary or preset `auto`
    or reads items that are not texts.
    """
    training = config.training
    model, inputs = _model(config, vocabulary, length)
    rows = max(1, training.batch_tokens // inputs[0].shape[1])
    model.train()
    kept = [_kept(model, [block.expand(count, -1) for block in inputs]) for count in (1, 2)]
    with _Operations() as operations, flop_counter() as counter:
        _loss(model, inputs).backward()
    passes = training.accumulate
    parameters = sum(one.numel() for one in model.parameters())
    units = [sum(one.numel() for one in part.parameters()) for part in sublayers(model)]
    return Workload(
        parameters=parameters,
        units=(*units, parameters - sum(units)),
        rows=rows * passes,
        passes=passes,
        operations=operations.count,
        flops=counter.get_total_flops() * rows * passes,
        kept_bytes=kept[0] + (kept[1] - kept[0]) * (rows - 1),
        targets=rows * passes * inputs[-1].shape[1],
        updates=training.max_updates or UPDATES,
    )


def _row_length(sizes: Any, length: int) -> int:
    """Return the tokens of a row: a whole window of a text, or a sentence of `length` tokens if the model takes it."""
    longest: int = sizes.max_length
    return longest if isinstance(sizes, CausalConfig) else min(length, longest)


def _model(config: TaskConfig, vocabulary: int, length: int) -> tuple[Model, list[Tensor]]:
    """Return a model and one row of each of its inputs, and of its targets.

    Raises ConfigError for a model that does not read and write texts, and for preset `auto`.
    """
    sizes: Any = getattr(config, "model", None)
    if getattr(sizes, "preset", None) == "auto":
        raise ConfigError(
            "plan --devices reads no corpus, and model.preset=auto depends on one: set model.preset to tiny, small, "
            "base or big"
        )
    if not isinstance(sizes, SequenceToSequenceConfig | CausalConfig):
        raise ConfigError(
            f"plan --devices needs a vocabulary, and a model of {config.task} has none: leave out --devices"
        )
    if config.modality is not None and type(config.modality) is not TextModalityConfig:
        raise ConfigError("plan --devices needs texts, and the items of this recipe are none: leave out --devices")
    words, head = tokens(vocabulary), next_token(vocabulary)
    row = torch.ones(1, _row_length(sizes, length), dtype=torch.int64)
    if isinstance(sizes, CausalConfig):
        require_memory(lambda: sizes.build(words, head))
        return sizes.build(words, head), [row, row]
    require_memory(lambda: sizes.build(words, words, head))
    return sizes.build(words, words, head), [row, row, row]


class _Operations(TorchDispatchMode):
    """Counter of the operations that run inside the context."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += not func.is_view
        return func(*args, **(kwargs or {}))


def _loss(model: nn.Module, rows: list[Tensor]) -> Tensor:
    *inputs, targets = rows
    total: Tensor = model(*inputs, targets=targets).total
    return total


def _kept(model: nn.Module, rows: list[Tensor]) -> float:
    """Return the bytes that a forward pass keeps for the backward pass, without parameters."""
    found: dict[int, Any] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        found[storage._cdata] = storage  # held, so that no other storage gets its address
        return tensor

    with saved_tensors_hooks(keep, lambda tensor: tensor):
        _loss(model, rows)
    mine = {parameter.untyped_storage()._cdata for parameter in model.parameters()}
    return float(sum(storage.nbytes() for address, storage in found.items() if address not in mine))
