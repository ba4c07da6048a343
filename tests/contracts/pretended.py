"""An accelerator without numbers, for a process of its own: torch asks once which devices there are.

Tensors on it have shapes alone. Whoever asks them for a number, or how many of them are true, is refused, and so is who
mixes them with a CPU's.
"""

import traceback
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensorMode
from torch.utils.backend_registration import _DummyBackendModule, _setup_privateuseone_for_python_backend

from tests.models import loss_of_pairs, loss_of_text

from .test_heads import HEADS, IMAGES, ITEMS, build, dual
from .test_models import MODELS, SOURCE, TARGET, Unconditioned

NAME = "pretended"
BEAM_SIZE = 3


class Backend(_DummyBackendModule):
    """What else is asked of a device: a generator that dropout draws on, and what it narrows numbers to."""

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16]

    def get_rng_state(self, device: Any = None) -> Tensor:
        return torch.empty(16, dtype=torch.uint8)

    def set_rng_state(self, state: Tensor, device: Any = None) -> None: ...


def begin() -> None:
    """Once in a process, before anything else."""
    _setup_privateuseone_for_python_backend(NAME, backend_module=Backend())


def told(function: Callable[..., Any], *given: Any) -> Any:
    """What a function says, or its error in words: torch's cannot be sent to another process."""
    try:
        return function(*given)
    except Exception as error:
        raise AssertionError("".join(traceback.format_exception(error))) from None


def on_it(model: nn.Module) -> nn.Module:
    """The model with weights of the same shapes there; `to` would put them into the CPU's tensors."""
    moved: dict[Tensor, Tensor] = {}
    for module in model.modules():
        for tensors in (module._parameters, module._buffers):
            for name, tensor in tensors.items():
                if tensor is not None and tensor not in moved:
                    moved[tensor] = torch.empty(tensor.shape, dtype=tensor.dtype, device=NAME)
                    if isinstance(tensor, nn.Parameter):
                        moved[tensor] = nn.Parameter(moved[tensor])
                tensors[name] = None if tensor is None else moved[tensor]
    return model


def ids(*shape: int) -> Tensor:
    return torch.empty(shape, dtype=torch.int64, device=NAME)


def train(name: str) -> set[str]:
    """Forward and backward on a batch; the devices of what comes of it."""
    with FakeTensorMode():
        model = on_it(MODELS[name]().train())
        if isinstance(model, Unconditioned):
            loss = loss_of_text(model.model, ids(*TARGET.shape))
        else:
            loss = loss_of_pairs(model, ids(*SOURCE.shape), ids(*TARGET.shape))
        loss.total.backward()
        gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
        assert gradients
        return {one.device.type for one in [loss.total, loss.plain, loss.count, *gradients]}


def train_head(name: str) -> str:
    """Forward and backward of a head on an encoder; the device of the loss."""
    with FakeTensorMode():
        model, targets = on_it(build("encoder only", name).train()), HEADS[name].targets
        there = torch.empty(targets.shape, dtype=targets.dtype, device=NAME)
        loss = model(input=ids(*ITEMS.shape), targets=there)
        loss.total.backward()
        return loss.total.device.type


def train_pairs() -> str:
    """Forward and backward of two encoders; the device of the loss."""
    with FakeTensorMode():
        model = on_it(dual("encoder only", "encoder only").train())
        loss = model(first=ids(*ITEMS.shape), second=torch.empty(IMAGES.shape, device=NAME), targets=ids(len(ITEMS), 2))
        loss.total.backward()
        return loss.total.device.type


def decode(name: str) -> list[tuple[str, tuple[int, ...]]]:
    """Three steps of all sentences and one of two; device and shape of the last scores of either."""
    with FakeTensorMode(), torch.no_grad():
        model = on_it(MODELS[name]().eval())
        beams = ids(len(SOURCE), BEAM_SIZE)
        state = model.start(model.encode(ids(*SOURCE.shape)), BEAM_SIZE, 9)
        model.step(beams[:, :1], state)
        for _ in range(2):
            state.reorder(beams)
            logits = model.step(beams, state)
        state.keep(ids(2))
        kept = model.step(beams[:2], state)
        return [(one.device.type, tuple(one.shape)) for one in (logits, kept)]


def refused() -> list[str]:
    """What is refused of all that would wait, and of what mixes devices."""
    with FakeTensorMode():
        numbers, said = torch.empty(3, device=NAME), []
        asked = {
            "item": numbers.sum().item,
            "list": numbers.tolist,
            "nonzero": numbers.nonzero,
            "mask": lambda: numbers[numbers > 0],
            "bool": lambda: bool(numbers.any()),
            "mixed": lambda: numbers + torch.ones(3),
        }
        for name, ask in asked.items():
            try:
                ask()
            except (DataDependentOutputException, DynamicOutputShapeException, RuntimeError):
                said.append(name)
        return said
