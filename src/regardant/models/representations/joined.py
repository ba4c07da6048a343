"""Items of several parts to vectors: the elements of all parts in one sequence, each marked with its part.

Kim et al. 2021, "ViLT", https://arxiv.org/abs/2102.03334, section 3.1: a learned vector for each modality is added to
its elements, which have the positions of their own modality; then all stand in one sequence.

Shape legend: B batch, P parts, T elements of all parts, M d_model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from regardant.models.representations.base import InputShape, Representation, RepresentationBuilder
from regardant.models.vectors import Vectors
from regardant.positions.none import NoPositions


class Blocks:
    """Inputs of a batch of items of several parts, which can be moved to a device and sliced like one tensor.

    Args:
        parts: a block [B, ...] for each part, as its own codec collates it.
        lengths: number of elements of each part [P] of each batch element. Empty: unknown, such as after slicing.
    """

    def __init__(self, parts: Sequence[Tensor], lengths: Sequence[Sequence[int]] = ()) -> None:
        self.parts = parts
        self.lengths = lengths

    def __len__(self) -> int:
        return len(self.parts[0])

    def __getitem__(self, rows: slice) -> "Blocks":
        return Blocks([part[rows] for part in self.parts])

    def alone(self, row: int) -> "Blocks":
        """Return one batch element as a batch, without the padding of its parts. Needs `lengths`."""
        longest = [max(of_part) for of_part in zip(*self.lengths, strict=True)]
        parts = [
            part[row : row + 1] if length == most else part[row : row + 1, :length]
            for part, length, most in zip(self.parts, self.lengths[row], longest, strict=True)
        ]
        return Blocks(parts, [self.lengths[row]])

    @property
    def device(self) -> torch.device:
        """The device of all blocks."""
        return self.parts[0].device

    def to(self, device: torch.device, *, non_blocking: bool = False) -> "Blocks":
        """Return the blocks on a device."""
        return Blocks([part.to(device, non_blocking=non_blocking) for part in self.parts], self.lengths)

    def pin_memory(self) -> "Blocks":
        """Return the blocks in pinned memory."""
        return Blocks([part.pin_memory() for part in self.parts], self.lengths)


class JoinedParts(Representation):
    """The representations of all parts side by side, each with a learned marker added to its elements.

    Positions that are added to elements or concatenated with them are counted in each part by itself, those that act
    in attention, such as rotary ones, over all parts. The padding of all parts is moved to the end of the
    sequence, so that it separates no elements.
    """

    unit = "element"

    def __init__(self, shape: InputShape, parts: Mapping[str, RepresentationBuilder]) -> None:
        super().__init__(replace(shape, positions=NoPositions(), scale=False))
        of_part = replace(shape, dropout=0.0, class_token=False, normalisation=None)  # applied after joining
        self.parts = nn.ModuleDict({name: part(of_part) for name, part in parts.items()})
        self.markers = nn.Parameter(torch.randn(len(parts), shape.d_model) * shape.d_model**-0.5)

    def embed(self, inputs: Blocks) -> Vectors:
        """Return the vectors of the elements of all parts [B, T, M], in the order of the parts.

        Raises:
            ValueError: a part has pairs or edges, such as those of a graph.
        """
        found = [part(block) for part, block in zip(self.parts.values(), inputs.parts, strict=True)]
        if any(one.pairs is not None or one.edges is not None for one in found):
            raise ValueError("a part with pairs or edges among its elements cannot be joined with others")
        marked = [one.values + marker for one, marker in zip(found, self.markers, strict=True)]
        values = torch.cat(marked, 1)
        if all(one.real is None for one in found):
            return Vectors(values)
        real = torch.cat([_real(one) for one in found], 1)
        order = (~real).to(torch.uint8).argsort(dim=1, stable=True)
        return Vectors(values.gather(1, order[..., None].expand_as(values)), real.gather(1, order))


@dataclass(frozen=True)
class JoinedBuilder:
    """The builder of a representation of several parts, and those of the parts by name."""

    parts: Mapping[str, RepresentationBuilder]

    def __call__(self, shape: InputShape) -> JoinedParts:
        return JoinedParts(shape, self.parts)


def _real(vectors: Vectors) -> Tensor:
    if vectors.real is not None:
        return vectors.real
    return torch.ones(vectors.values.shape[:2], dtype=torch.bool, device=vectors.values.device)
