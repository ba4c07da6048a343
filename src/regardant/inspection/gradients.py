"""Norms of the loss gradient, by layer depth and by the distance from a target back to an input vector.

    depth       |dL / dx_l|, x_l all vectors after layer l, L the mean loss per target
    distance    mean over targets of |dL_t / dx_s|, L_t the loss of the target at position t, x_s the vector that the
                model reads at position s = t - d

Both are of the loss that training minimises, with label smoothing and z-loss, but without dropout.

A gradient that vanishes with distance makes long dependencies hard to learn: Bengio et al. 1994, "Learning long-term
dependencies with gradient descent is difficult"; Pascanu et al. 2013, https://arxiv.org/abs/1211.5063, eq. 5. Residual
connections keep it from vanishing with depth: He et al. 2016, https://arxiv.org/abs/1512.03385; by depth for pre-norm
and post-norm: Xiong et al. 2020, https://arxiv.org/abs/2002.04745, section 3.

Shape legend: B batch, S vectors of an input, T targets of a row, M size of a vector.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from regardant.inspection.capture import class_tokens
from regardant.layers.residual import EagerTwoStreams, ResidualStream
from regardant.models.base import Model, SequenceToSequenceModel
from regardant.models.heads import ElementClass, NextToken
from regardant.models.vectors import Vectors

LAYER = re.compile(r"(.+\.)?layers\.\d+")
"""Pattern of layer names, such as `encoder.layers.0`."""

TARGETS_OF_ROW = 4
"""Targets of a row whose gradients are taken one at a time: evenly spread, the last one included."""


@dataclass(frozen=True)
class GradientNorms:
    """Gradient norms of one batch."""

    depth: Mapping[str, float]
    """Norms by the name of an input or a layer, in the order in which these are computed."""
    distance: Mapping[str, list[float]]
    """Mean norms by the name of an input, at distance 0, 1, 2, ... positions; NaN where no vector has the distance.
    Empty if elements have no one-dimensional order, the model ignores it or has no layers, several inputs are compared,
    or the loss is no sum over rows."""


@dataclass
class _Pass:
    """Vectors of one forward pass."""

    read: dict[str, Vectors] = field(default_factory=dict)
    """The vectors of each input."""
    layers: dict[str, list[Tensor]] = field(default_factory=dict)
    """The tensors that each layer returned or left in the residual stream."""


def gradient_norms(model: Model, inputs: Mapping[str, Any], targets: Tensor) -> GradientNorms:
    """Measure a model in evaluation mode on a batch. Costs up to TARGETS_OF_ROW + 1 forward and backward passes.

    Source positions precede target positions: the last source vector has distance 1 from the first target. The single
    target of a whole item has the position of the last element.
    """
    with _listening(model) as passed:
        loss = model(**inputs, targets=targets)
    known = {name: [passed.read[name].values] for name in _read_inputs(model)} | passed.layers
    depth = dict(zip(known, _norms(loss.total / loss.count, list(known.values())), strict=True))
    if not _has_distances(model, passed):
        return GradientNorms(depth, {})
    means = {name: _Means() for name in _read_inputs(model)}
    for some, at in _single_targets(model, targets, passed.read):
        with _listening(model) as again:
            loss = model(**inputs, targets=some)
        gradients = _gradients(loss.total, [vectors.values for vectors in again.read.values()])
        for (name, vectors), gradient in zip(again.read.items(), gradients, strict=True):
            means[name].add(_distances(model, name, vectors, at), gradient.norm(dim=-1).cpu())
    return GradientNorms(depth, {name: one.means() for name, one in means.items()})


class _Means:
    """Means of norms by distance."""

    def __init__(self) -> None:
        self.total, self.count = torch.zeros(0), torch.zeros(0)

    def add(self, distances: Tensor, norms: Tensor) -> None:
        """Add norms [B, S] at distances [B, S]; negative distances are left out."""
        real = distances >= 0
        at, most = distances[real], max(len(self.total), int(distances.max()) + 1)
        for name, values in (("total", norms[real]), ("count", torch.ones(len(at)))):
            known = getattr(self, name)
            grown = nn.functional.pad(known, (0, most - len(known)))
            setattr(self, name, grown.index_add(0, at, values.to(grown.dtype)))

    def means(self) -> list[float]:
        means: list[float] = (self.total / self.count).tolist()
        return means


def _has_distances(model: Model, passed: _Pass) -> bool:
    in_line = all(vectors.positions is None and vectors.grid is None for vectors in passed.read.values())
    one_line = len(passed.read) == 1 or isinstance(model, SequenceToSequenceModel)
    return bool(passed.layers) and in_line and one_line and model.reads_order and model.head.divisible


def _single_targets(model: Model, targets: Tensor, read: Mapping[str, Vectors]) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the targets with all but one of each row ignored, and the position of that one [B]."""
    if not isinstance(model.head, NextToken | ElementClass):
        ((name, vectors),) = read.items()
        yield targets, _real(model, name, vectors).sum(1) - 1
        return
    counted = targets != model.head.ignored
    order, counts = counted.cumsum(1), counted.sum(1)
    for number in range(1, TARGETS_OF_ROW + 1):
        wanted = (counts * number / TARGETS_OF_ROW).ceil()
        alone = counted & (order == wanted[:, None])
        yield targets.masked_fill(~alone, model.head.ignored), alone.int().argmax(1).cpu()


def _distances(model: Model, name: str, vectors: Vectors, at: Tensor) -> Tensor:
    """Return the positions from each vector to the target `at` [B]: [B, S], negative for later vectors, padding and
    class tokens."""
    real, special = _real(model, name, vectors), len(class_tokens(model, name))
    places = torch.arange(real.shape[1]).expand(len(real), -1)
    if name == "source" and len(_read_inputs(model)) == 2:
        places = places - real.sum(1, keepdim=True)
    distances = at[:, None] - places
    distances = distances.masked_fill(~real, -1)
    return nn.functional.pad(distances, (special, 0), value=-1)


def _real(model: Model, name: str, vectors: Vectors) -> Tensor:
    """Return a mask of the real elements [B, S], on the CPU, without a class token: False at padding."""
    real = torch.ones(vectors.values.shape[:2], dtype=torch.bool) if vectors.real is None else vectors.real.cpu()
    return real[:, len(class_tokens(model, name)) :]


def _read_inputs(model: Model) -> list[str]:
    """Return the inputs that have a representation: only the source for a one-to-one tagger."""
    return [name for name in model.inputs if hasattr(model, name)]


@contextmanager
def _listening(model: Model) -> Iterator[_Pass]:
    """Yield the outputs of representations and layers, recorded with autograd's graph."""
    passed = _Pass()

    def read(name: str) -> Any:
        def listen(module: nn.Module, inputs: tuple[Any, ...], output: Vectors) -> Vectors:
            values = output.values if output.values.requires_grad else output.values.requires_grad_()
            passed.read[name] = replace(output, values=values)
            return passed.read[name]

        return listen

    def left(name: str) -> Any:
        def listen(module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
            passed.layers.setdefault(name, []).extend(_tensors(inputs[0] if output is None else output))

        return listen

    with ExitStack() as stack:
        for name in _read_inputs(model):
            stack.callback(model.representation(name).register_forward_hook(read(name)).remove)
        for name, module in model.named_modules():
            if LAYER.fullmatch(name):
                stack.callback(module.register_forward_hook(left(name)).remove)
        # cuDNN's cells have no gradient in evaluation mode.
        with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
            yield passed


def _tensors(left: Any) -> list[Tensor]:
    """Return the tensors that a layer leaves in the residual stream, or all states and the final ones of a cell."""
    if isinstance(left, Tensor):
        return [left] if left.is_floating_point() else []
    if isinstance(left, tuple):  # of a recurrent cell; its first part may be packed
        return [tensor for part in left for tensor in _tensors(part)]
    if isinstance(left, Vectors):
        return [left.values]
    if isinstance(left, EagerTwoStreams):  # the output is the mean of both: add one offset to each
        moved = torch.zeros_like(left.read, requires_grad=True)
        left.written, left.read = left.written + moved, left.read + moved
        return [moved]
    return [left.close()] if isinstance(left, ResidualStream) else []


def _norms(loss: Tensor, groups: list[list[Tensor]]) -> list[float]:
    """Return the norm of the gradient with respect to the tensors of each group together."""
    gradients = iter(_gradients(loss, [tensor for group in groups for tensor in group]))
    return [float(torch.stack([next(gradients).norm() for _ in group]).norm()) for group in groups]


def _gradients(loss: Tensor, of: list[Tensor]) -> list[Tensor]:
    found = torch.autograd.grad(loss, of, allow_unused=True)
    return [torch.zeros_like(x) if one is None else one for x, one in zip(of, found, strict=True)]
