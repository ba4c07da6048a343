"""Key-value caches for decoding: one for each row, or one shared by all beams of a sentence.

In the shared cache keys and values stay where they were written when beams are reordered. Each step writes one key per
beam, side by side. `BeamOrigin` records the parent of each beam once for all layers of a stack, and only this record is
reordered. The beams are then queries of one sequence, in a product with all keys of the sentence: W times as many as
each beam may attend to, which for texts costs less than moving keys and values at every step.

Shape legend: N rows (sentences or beams), B sentences, W beams, A beams at the current step (1 at the first, then W),
G key heads, C capacity in tokens, T new tokens, t tokens so far, D size of a key, E size of a value.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regardant.attention.masks import View

FIRST_ROOM = 16
"""Smallest capacity of a new buffer, in keys."""


def with_room(
    buffer: Float[Tensor, "N G R E"] | None, new: Float[Tensor, "N G T E"], filled: int, needed: int, capacity: int
) -> Float[Tensor, "N G R2 E"]:
    """Return the buffer if `needed` entries fit, else a copy with room for twice the filled part, at most `capacity`.

    Most texts end long before their limit, and memory costs time when it is first touched.
    """
    if buffer is not None and needed <= buffer.shape[2]:
        return buffer
    larger = new.new_empty(*new.shape[:2], min(max(FIRST_ROOM, 2 * filled, needed), capacity), new.shape[3])
    if buffer is not None:
        larger[:, :, :filled] = buffer[:, :, :filled]
    return larger


def move_rows(rows: Int[Tensor, " N2"], *tensors: Float[Tensor, "N *S"]) -> None:
    """Copy row `rows[i]` of each tensor to row i, in place. N2 <= N. On a CPU rows that stay are not touched."""
    if rows.device.type != "cpu":  # learning which rows move would wait for the device
        for tensor in tensors:
            tensor[: len(rows)] = tensor.index_select(0, rows)
        return
    moved = (rows != torch.arange(len(rows), device=rows.device)).nonzero().squeeze(1)
    if len(moved):
        origins = rows[moved]
        for tensor in tensors:
            tensor[moved] = tensor.index_select(0, origins)  # faster than an index


def stacked(parts: Sequence[Float[Tensor, "N *S"]], dim: int) -> Float[Tensor, "N2 *S"]:
    """Return the rows of all parts as one tensor; zeros pad shorter parts at the end of dimension `dim`."""
    first, sizes = parts[0], [part.shape[dim] for part in parts]
    rows = first.new_zeros(sum(map(len, parts)), *first.shape[1:dim], max(sizes), *first.shape[dim + 1 :])
    for own, part, size in zip(rows.split([len(part) for part in parts]), parts, sizes, strict=True):
        own.narrow(dim, 0, size).copy_(part)
    return rows


@dataclass(frozen=True)
class AppendedKeys:
    """Decoding state of all keys and values so far, a row per beam, in buffers with room for more."""

    capacity: int
    length: int = 0
    keys: Float[Tensor, "N G C D"] | None = None
    values: Float[Tensor, "N G C E"] | None = None

    def append(self, k: Tensor, v: Tensor) -> "AppendedKeys":
        """Return the state with keys and values [N, G, T, .] appended."""
        end = self.length + k.shape[2]
        keys = with_room(self.keys, k, self.length, end, self.capacity)
        values = with_room(self.values, v, self.length, end, self.capacity)
        keys[:, :, self.length : end] = k
        values[:, :, self.length : end] = v
        return AppendedKeys(self.capacity, end, keys, values)

    def reorder(self, rows: Int[Tensor, " N2"]) -> "AppendedKeys":
        """Return the state whose row i continues row `rows[i]`."""
        if self.keys is None or self.values is None:
            return self
        keys, values = self.keys, self.values
        if len(rows) > len(keys):
            return AppendedKeys(self.capacity, self.length, keys.index_select(0, rows), values.index_select(0, rows))
        # In place: only the filled part moves, nothing is allocated for the rest.
        move_rows(rows, keys[:, :, : self.length], values[:, :, : self.length])
        return AppendedKeys(self.capacity, self.length, keys[: len(rows)], values[: len(rows)])

    def join(self, *others: "AppendedKeys") -> "AppendedKeys":
        """Return the state of these rows followed by those of other states with as many keys, copied."""
        states = [self, *others]
        keys, values = (torch.cat(parts) for parts in zip(*(state.filled() for state in states), strict=True))
        return AppendedKeys(max(state.capacity for state in states), self.length, keys, values)

    def filled(self) -> tuple[Float[Tensor, "N G t D"], Float[Tensor, "N G t E"]]:
        """Return the keys and values so far."""
        assert self.keys is not None and self.values is not None
        return self.keys[:, :, : self.length], self.values[:, :, : self.length]


@dataclass
class BeamOrigin:
    """Record of the ancestors of each beam: a beam attends to the keys of its ancestors and to its own newest key."""

    beam_size: int
    capacity: int
    num_beams: int = 1
    """Number of beams of a sentence at the current step: 1 at the first step, then `beam_size`."""
    length: int = 0
    """Number of tokens so far."""
    _beam_mask: Float[Tensor, "B W C W"] | None = None
    """Minus infinity at keys of other beams, else 0."""
    _at: Int[Tensor, " CW"] | None = None
    """Positions of the keys of all beams."""
    _step: tuple[View, View] | None = None
    """Views of the current step: the one that the stack passes, and the one for the keys of all beams."""

    def view(self, view: View, length: int, num_sentences: int, device: torch.device) -> View:
        """Return the view for queries of beams on the keys of all beams, at the step that appends token `length`.

        All layers of a stack that pass the same view get the same result.
        """
        if self._step is None or self._step[0] is not view or self.length != length:
            if self._beam_mask is None:
                self._beam_mask = self._unrelated(num_sentences, device)
            if self._at is None:
                self._at = torch.arange(self.capacity, device=device).repeat_interleave(self.beam_size)
            self.length = length
            # Copied, since `reorder` overwrites the record and a captured view is read later: one copy for all layers.
            mask = self._beam_mask[:, : self.num_beams, :length].flatten(2)[:, None].clone()
            at = self._at[: length * self.beam_size]
            bias = partial(_with_beam_mask, mask, view)
            of_beams = replace(view, causal=False, bias=bias, query_positions=at[-self.num_beams :], key_positions=at)
            self._step = view, of_beams
        return self._step[1]

    def _unrelated(self, num_sentences: int, device: torch.device) -> Float[Tensor, "B W C W"]:
        """Return a beam mask under which each beam attends only to its own keys."""
        others = torch.full((self.beam_size, self.beam_size), -torch.inf, device=device).fill_diagonal_(0)
        return others[:, None].expand(num_sentences, -1, self.capacity, -1).clone()

    def reorder(self, beams: Int[Tensor, "B W"]) -> None:
        """Let beam w of sentence b continue beam `beams[b, w]`."""
        self.num_beams = beams.shape[1]
        if self._beam_mask is not None:
            written = self._beam_mask[:, :, : self.length]
            self._beam_mask[:, :, : self.length] = written.gather(1, beams[..., None, None].expand_as(written))

    def keep(self, sentences: Int[Tensor, " B2"]) -> None:
        """Drop all other sentences."""
        if self._beam_mask is not None:
            self._beam_mask = self._beam_mask.index_select(0, sentences)

    def join(self, *others: "BeamOrigin") -> None:
        """Append the beams of other sentences, with as many beams per sentence and as many tokens so far."""
        records = [self, *others]
        self.capacity = max(record.capacity for record in records)
        written = [record._beam_mask[:, :, : self.length] for record in records if record._beam_mask is not None]
        if written:
            self._beam_mask = self._unrelated(sum(map(len, written)), written[0].device)
            self._beam_mask[:, :, : self.length] = torch.cat(written)
            self._at = None


def _with_beam_mask(mask: Tensor, view: View, queries: Tensor, keys: Tensor) -> Tensor:
    return mask if view.bias is None else view.bias(queries, keys) + mask


@dataclass(frozen=True)
class SharedBeamCache:
    """Decoding state of the keys and values of all beams of a sentence, step by step, in buffers with room for more."""

    origin: BeamOrigin
    length: int = 0
    """Number of tokens so far."""
    keys: Float[Tensor, "B G CW D"] | None = None
    values: Float[Tensor, "B G CW E"] | None = None

    def append(self, k: Float[Tensor, "B G A D"], v: Float[Tensor, "B G A E"]) -> "SharedBeamCache":
        """Return the cache with the newest token of every beam appended; the one of the first step stands for all."""
        beam_size = self.origin.beam_size
        newest = slice(self.length * beam_size, (self.length + 1) * beam_size)
        capacity = self.origin.capacity * beam_size
        keys = with_room(self.keys, k, newest.start, newest.stop, capacity)
        values = with_room(self.values, v, newest.start, newest.stop, capacity)
        keys[:, :, newest] = k
        values[:, :, newest] = v
        return SharedBeamCache(self.origin, self.length + 1, keys, values)

    def filled(self) -> tuple[Float[Tensor, "B G tW D"], Float[Tensor, "B G tW E"]]:
        """Return the keys and values written so far."""
        assert self.keys is not None and self.values is not None
        end = self.length * self.origin.beam_size
        return self.keys[:, :, :end], self.values[:, :, :end]

    def keep(self, sentences: Int[Tensor, " B2"]) -> "SharedBeamCache":
        """Return the cache of these sentences alone, moved within its buffers."""
        if self.keys is None or self.values is None:
            return self
        move_rows(sentences, *self.filled())
        return replace(self, keys=self.keys[: len(sentences)], values=self.values[: len(sentences)])

    def join(self, *others: "SharedBeamCache") -> "SharedBeamCache":
        """Return the cache of these sentences followed by those of other caches with as many keys, copied.

        `origin` must have joined their origins before.
        """
        keys, values = (torch.cat(parts) for parts in zip(*(one.filled() for one in [self, *others]), strict=True))
        return replace(self, keys=keys, values=values)
