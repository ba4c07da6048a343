"""Chunked processing of a sequence, with a state carried from chunk to chunk. The backward pass recomputes each chunk.

Between the two passes only the sequence and the carried states are in memory, not the activations inside a chunk. The
gradient of each chunk is written to its place in the gradient of the sequence: `torch.utils.checkpoint` would collect
the gradients and then concatenate them, at twice the memory, and import a compiler that takes even more.

Shape legend: B batch, H heads, N tokens, L tokens of a chunk.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regardant.attention.softmax import exact
from regardant.attention.tiles import blocks

Carried = tuple[Tensor, ...]
"""State that is carried from chunk to chunk."""

ChunkFunction = Callable[[Sequence[Tensor], Carried], tuple[Tensor, Carried]]
"""Function of a chunk [B, H, L, .] of each sequence and the state before it. Returns outputs [B, H, L, .] and state."""


def in_chunks(
    run: ChunkFunction, sequences: Sequence[Tensor], carried: Carried, parameters: Sequence[Tensor], *, size: int
) -> tuple[Tensor, Carried]:
    """Return the outputs of chunks of `size` tokens, concatenated, and the state after the last one.

    `parameters` are all tensors that need a gradient and that `run` reads in addition to its inputs.
    """
    if sequences[0].shape[2] <= size:
        return run(sequences, carried)
    counts = (len(carried), len(sequences))
    given, *left = _InChunks.apply(run, size, counts, *carried, *sequences, *parameters)  # type: ignore[no-untyped-call]
    return given, tuple(left)


class _InChunks(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, run: ChunkFunction, size: int, counts: tuple[int, int], *tensors: Tensor
    ) -> tuple[Tensor, ...]:
        carried, sequences, parameters = _cut(tensors, counts)
        before: list[Tensor] = []
        given: Tensor | None = None
        for rows in blocks(0, sequences[0].shape[2], size):
            before += carried
            piece, carried = run([x[:, :, rows] for x in sequences], carried)
            if given is None:
                given = piece.new_empty(*piece.shape[:2], sequences[0].shape[2], piece.shape[3])
            given[:, :, rows] = piece
        ctx.run, ctx.size, ctx.counts, ctx.parameters = run, size, counts, parameters
        ctx.save_for_backward(*sequences, *before)
        assert given is not None
        return given, *carried

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, to_given: Tensor, *to_carried: Tensor) -> tuple[Tensor | None, ...]:
        num_carried, num_sequences = ctx.counts
        sequences, before = ctx.saved_tensors[:num_sequences], ctx.saved_tensors[num_sequences:]
        to_sequences = [torch.empty_like(x) if x.is_floating_point() else None for x in sequences]
        to_parameters = [torch.zeros_like(x) if x.requires_grad else None for x in ctx.parameters]
        with exact(sequences[0]):  # as in the forward pass, wherever this one begins
            for number, rows in reversed(list(enumerate(blocks(0, sequences[0].shape[2], ctx.size)))):
                carried = tuple(_leaf(x) for x in before[number * num_carried : (number + 1) * num_carried])
                chunk = [_leaf(x[:, :, rows]) for x in sequences]
                with torch.enable_grad():
                    given, left = ctx.run(chunk, carried)
                found = _gradients(
                    (given, *left), (*carried, *chunk, *ctx.parameters), (to_given[:, :, rows], *to_carried)
                )
                to_carried, of_chunk, of_parameters = _cut(found, ctx.counts)
                for whole, part in zip(to_sequences, of_chunk, strict=True):
                    if whole is not None:
                        whole[:, :, rows] = part
                for whole, part in zip(to_parameters, of_parameters, strict=True):
                    if whole is not None:
                        whole += part
        return None, None, None, *to_carried, *to_sequences, *to_parameters


def _cut(tensors: Sequence[Any], counts: tuple[int, int]) -> tuple[Any, Any, Any]:
    """Return the carried state, the sequences and the parameters."""
    end = sum(counts)
    return tuple(tensors[: counts[0]]), tuple(tensors[counts[0] : end]), tuple(tensors[end:])


def _leaf(x: Tensor) -> Tensor:
    return x.detach().requires_grad_(x.is_floating_point())


def _gradients(outputs: Sequence[Tensor], inputs: Sequence[Tensor], of: Sequence[Tensor]) -> list[Tensor | None]:
    """Return the gradient of each input: None if the input needs none. An output may depend on no input."""
    learning = [(output, gradient) for output, gradient in zip(outputs, of, strict=True) if output.requires_grad]
    wanted = [x for x in inputs if x.requires_grad]
    roots, gradients = zip(*learning, strict=True)
    found = iter(torch.autograd.grad(roots, wanted, gradients, materialize_grads=True))
    return [next(found) if x.requires_grad else None for x in inputs]
