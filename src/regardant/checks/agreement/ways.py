"""Ways to compute the scores of a trained model: in steps, alone, unpadded, in parts, exactly, in bfloat16.

Shape legend: N rows, T elements of an input, V answers.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from regardant.attention import Attention
from regardant.checks.agreement.comparison import Compared, compare_scores
from regardant.checks.doctor.case import Case, LeftOut, worst
from regardant.checks.doctor.self_tests import future_change, padding_change, written_input
from regardant.data.vocabulary import PAD
from regardant.inspection import attention_places, capture
from regardant.models.base import CausalModel, SequenceToSequenceModel
from regardant.training.gradients import add_gradients
from regardant.training.job import Loss

IN_BFLOAT16 = 0.5
"""Bound of the differences by bfloat16, whose significand has eight bits: ten times those of rounding one product."""

GRADIENTS = 1e-3
"""Bound of the norm of the difference of gradients, as a share of the gradient's norm."""

WEIGHTS = 1e-4
"""Bound of the difference between a kernel's output and weights times values, as a share of the largest value."""


def repeated(case: Case) -> Compared:
    """Compare the scores with those of a second pass over the same rows: evaluation draws no random numbers."""
    return compare_scores(case, case.answers, case.scores(case.probe.inputs), bound=0.0)


def cached(case: Case) -> Compared:
    """Compare the scores of decoding step by step with those of one pass. Beams, if any, swap places at each step."""
    model = case.trained.model
    name = written_input(model)
    if name is None:
        raise LeftOut("this model is not autoregressive: it reads its input at once")
    written = case.probe.inputs[name]
    with torch.inference_mode():
        if isinstance(model, CausalModel):
            return compare_scores(case, _steps_of_text(model, written), case.answers)
        assert isinstance(model, SequenceToSequenceModel)
        others = written.roll(1, 0)
        beams = _steps_of_beams(model, case.probe.inputs["source"], torch.stack([written, others], 1))
    own = compare_scores(case, beams[:, 0], case.answers, among=written != PAD)
    other = compare_scores(case, beams[:, 1], case.scores(case.probe.replaced(name, others)), among=others != PAD)
    return worst((own, other), lambda one: one.difference)


def _steps_of_text(model: CausalModel, text: Tensor) -> Tensor:
    state = model.start(1, text.shape[1])
    return torch.stack([model.step(tokens, state) for tokens in text.split(1, 1)], 1)


def _steps_of_beams(model: SequenceToSequenceModel, source: Any, texts: Tensor) -> Tensor:
    """Return the scores [N, 2, T, V] of two texts [N, 2, T] of each source, as beams that swap places at each step."""
    rows, _, length = texts.shape
    state, found = model.start(model.encode(source), 2, length), []
    order = torch.arange(2, device=texts.device).expand(rows, -1)
    for at in range(length):
        tokens = texts.gather(1, order[..., None].expand(-1, -1, length))[..., at]
        logits = model.step(tokens if at else tokens[:, :1], state).expand(-1, 2, -1)
        found.append(logits.gather(1, order.argsort(1)[..., None].expand_as(logits)))
        if at:
            state.reorder(torch.tensor([[1, 0]], device=texts.device).expand(rows, -1))
            order = order.flip(1)
        else:
            state.reorder(torch.zeros_like(order))
    return torch.stack(found, 2)


def batched(case: Case) -> Compared:
    """Compare the scores of rows in one batch with those of each row alone, padded as in the batch."""
    inputs, rows = case.probe.inputs, len(case.probe.targets)
    if rows < 2 or not all(isinstance(value, Tensor) and len(value) == rows for value in inputs.values()):
        raise LeftOut("the batch is one graph or block, which cannot be divided into rows")
    alone = [case.scores({name: value[row : row + 1] for name, value in inputs.items()}) for row in range(rows)]
    return compare_scores(case, torch.cat(alone), case.answers)


def padded(case: Case) -> Compared:
    """Compare the scores of rows in a padded batch with those of the same rows without padding."""
    change = padding_change(case)
    return Compared(change.size, change.bound, where=change.where)


def future(case: Case) -> Compared:
    """Compare the scores of the first positions before and after a change of later tokens."""
    change = future_change(case)
    return Compared(change.size, change.bound, where=change.where)


def accumulated(case: Case) -> Compared:
    """Compare the gradients of all rows in one batch with those accumulated over micro-batches of unequal size."""
    model, probe = case.trained.model, case.probe
    count = len(probe.targets)
    divisible = all(isinstance(value, Tensor) and len(value) == count for value in probe.inputs.values())
    if not model.head.divisible or count < 3 or not divisible:
        raise LeftOut("the batches of this task cannot be divided into micro-batches")

    def loss_of(rows: "_Rows") -> Loss:
        inputs = {name: value[rows.numbers] for name, value in probe.inputs.items()}
        found: Loss = model(**inputs, targets=probe.targets[rows.numbers])
        return found

    def gradients(*batches: "_Rows") -> Tensor:
        model.zero_grad(set_to_none=True)
        device = probe.targets.device
        with torch.enable_grad():
            add_gradients(batches, loss_of, torch.Tensor.backward, key=model.dropout_key, device=device)
        found = [one.grad.flatten() for one in model.parameters() if one.grad is not None]
        model.zero_grad(set_to_none=True)
        return torch.cat(found)

    order = list(range(count))
    per_row = [int((probe.targets[row] != model.head.ignored).sum()) for row in order]
    whole = gradients(_Rows(order, per_row))
    parts = gradients(_Rows(order[:1], per_row), _Rows(order[1:], per_row))
    largest = float((whole - parts).norm() / whole.norm().clamp_min(1e-12))
    return Compared(largest, GRADIENTS, "of the gradient's norm", f"{count} rows in batches of 1 and {count - 1}")


class _Rows:
    """Rows of the probe as a training batch."""

    def __init__(self, numbers: list[int], per_row: list[int]) -> None:
        self.numbers, self.per_row = numbers, per_row
        self.count = sum(per_row[number] for number in numbers)

    def part(self, number: int, parts: int) -> "_Rows":
        return _Rows(self.numbers[number::parts], self.per_row)


def kernel(case: Case) -> Compared:
    """Compare the output of fast attention kernels with explicit weights times values."""
    model = case.trained.model
    places = [place for layers in attention_places(model).values() for place in layers]
    if not places:
        raise LeftOut("this model has no attention")
    with torch.inference_mode(), capture(model, [f"{place}.*" for place in places]) as records:
        model.scores(**case.probe.inputs)
    found = []
    for place in places:
        if not {f"{place}.{name}" for name in ("weights", "value", "mixed")} <= set(records):
            continue
        for weights, value, mixed in zip(
            *(records[f"{place}.{n}"] for n in ("weights", "value", "mixed")), strict=True
        ):
            value = value.repeat_interleave(weights.shape[1] // value.shape[1], 1)
            if value.shape[-2] != weights.shape[-1] or mixed.shape != (*weights.shape[:-1], value.shape[-1]):
                continue
            largest = float(((weights @ value) - mixed).abs().max() / value.abs().max().clamp_min(1e-12))
            found.append(Compared(largest, WEIGHTS, "of the largest value", place))
    if not found:
        raise LeftOut("no attention of this model mixes values by a matrix of weights")
    return worst(found, lambda one: one.difference)


def bfloat16(case: Case) -> Compared:
    """Compare the scores in float32 with those under autocast to bfloat16."""
    model = case.trained.model
    if any(isinstance(module, Attention) and module.discontinuous for module in model.modules()):
        raise LeftOut("its attention chooses keys by comparing scores, and rounding may change the choice")
    device = case.probe.targets.device.type
    with torch.autocast(device, torch.bfloat16):
        rounded = case.scores(case.probe.inputs)
    return compare_scores(case, rounded, case.answers, bound=IN_BFLOAT16)


WAYS: dict[str, Callable[[Case], Compared]] = {
    "repeated = first": repeated,
    "cached = uncached": cached,
    "batched = single": batched,
    "padded = unpadded": padded,
    "future masked = shown": future,
    "accumulated = full batch": accumulated,
    "fast kernel = explicit": kernel,
    "bfloat16 = float32": bfloat16,
}
