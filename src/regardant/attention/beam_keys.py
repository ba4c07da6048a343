"""One memory for all beams of a sentence: keys and values stay where they were written, whatever becomes of the beams.

Each step writes one key a beam, side by side. Whose ancestor wrote which is kept once for all layers of a stack, and
that alone is moved when beams change places. The beams are then queries of one sequence, in a product with all keys of
the sentence: W times as many as each may see, which for texts costs less than to move keys and values at every step.

Shape legend: B sentences, W beams, A of them that ask, G key heads, C capacity in tokens, t tokens taken in, D size of
a key, E size of a value.
"""

from dataclasses import dataclass, field, replace
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regardant.attention.base import View, move_rows, with_room


@dataclass
class Ancestry:
    """Which of the keys of all beams each beam may see: those of its ancestors, and its own newest."""

    beam_size: int
    capacity: int
    asking: int = 1
    """Beams of a sentence, so far: what the one before the first token says is remembered for all."""
    length: int = 0
    """Tokens taken in."""
    _hidden: Float[Tensor, "B W C W"] | None = None
    """Minus infinity where a beam does not see, else 0."""
    _last: tuple[View, View] | None = field(default=None, metadata={"rows": None})

    def view(self, view: View, length: int, num_sentences: int, device: torch.device) -> View:
        """The demands of a step that takes in the token `length`, for the beams on the keys of all of them."""
        if self._last is None or self._last[0] is not view or self.length != length:  # all layers of a step share it
            if self._hidden is None:
                self._hidden = self._of_their_own(num_sentences, device)
            self.length = length
            self._last = view, self._seen(view, self._hidden[:, : self.asking, :length].flatten(2)[:, None])
        return self._last[1]

    def reorder(self, beams: Int[Tensor, "B W"]) -> None:
        """From now on beam w of sentence b continues what was beam `beams[b, w]`."""
        self.asking = beams.shape[1]
        if self._hidden is not None:
            written = self._hidden[:, :, : self.length]
            self._hidden[:, :, : self.length] = written.gather(1, beams[..., None, None].expand_as(written))

    def keep(self, sentences: Int[Tensor, " B2"]) -> None:
        """Go on with these sentences alone."""
        if self._hidden is not None:
            self._hidden = self._hidden.index_select(0, sentences)

    def _of_their_own(self, num_sentences: int, device: torch.device) -> Tensor:
        others = torch.full((self.beam_size, self.beam_size), -torch.inf, device=device).fill_diagonal_(0)
        return others[:, None].expand(num_sentences, -1, self.capacity, -1).clone()

    def _seen(self, view: View, hidden: Tensor) -> View:
        at = torch.arange(self.length, device=hidden.device).repeat_interleave(self.beam_size)
        bias = partial(_biased, hidden, view)
        return replace(view, causal=False, bias=bias, query_positions=at[-self.asking :], key_positions=at)


def _biased(hidden: Tensor, view: View, queries: Tensor, keys: Tensor) -> Tensor:
    given = view.bias_between(queries, keys, hidden.dtype)
    return hidden if given is None else given + hidden


@dataclass(frozen=True)
class BeamKeys:
    """All keys and values so far of all beams, step after step, in buffers with room for more."""

    ancestry: Ancestry
    length: int = 0
    """Tokens taken in."""
    keys: Float[Tensor, "B G CW D"] | None = None
    values: Float[Tensor, "B G CW E"] | None = None

    def append(self, k: Float[Tensor, "B G A D"], v: Float[Tensor, "B G A E"]) -> "BeamKeys":
        """With the newest token of every beam, or of the one that all of them will continue."""
        beam_size = self.ancestry.beam_size
        newest = slice(self.length * beam_size, (self.length + 1) * beam_size)
        capacity = self.ancestry.capacity * beam_size
        keys = with_room(self.keys, k, newest.start, newest.stop, capacity)
        values = with_room(self.values, v, newest.start, newest.stop, capacity)
        keys[:, :, newest] = k
        values[:, :, newest] = v
        return BeamKeys(self.ancestry, self.length + 1, keys, values)

    def seen(self) -> tuple[Float[Tensor, "B G tW D"], Float[Tensor, "B G tW E"]]:
        """What has been written."""
        assert self.keys is not None and self.values is not None
        end = self.length * self.ancestry.beam_size
        return self.keys[:, :, :end], self.values[:, :, :end]

    def keep(self, sentences: Int[Tensor, " B2"]) -> "BeamKeys":
        """Go on with these sentences alone. Only what is written and stands elsewhere is moved, within its buffer."""
        if self.keys is None or self.values is None:
            return self
        move_rows(sentences, *self.seen())
        return replace(self, keys=self.keys[: len(sentences)], values=self.values[: len(sentences)])
