"""Batches one after the other, and what is left of several together.

Sentences of a batch do not end together: of a step for the last two of 32 most is the model's overhead, and they may
go on for as long as all that came before. So a batch of which few are left waits, every few steps, for others that have
come as far, and they go on as one batch. What waits keeps no memory of those that are done: to get as much anew for the
next batch takes longer than is saved.

Shape legend: B sentences being written.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Protocol

from torch import Tensor

from regardant.generation.hypothesis import Hypothesis
from regardant.generation.joining import joined

EVERY = 4
"""Steps between two places where batches wait: fewer let more of them meet, and are more to join."""

FEWER = 2
"""A batch waits when one in so many of its sentences is left."""

FEW_ROWS = 16
"""And no more rows than these: a step for more takes longer by their number, so that nothing is saved."""

Found = dict[int, list[Hypothesis]]
"""The best targets by the number of the sentence; of one being written, those that have ended."""


class Search(Protocol):
    """Some sentences being written, one token a step. See `joining` for what it may consist of."""

    sentences: Tensor
    """[B] int64, their numbers."""

    @property
    def length(self) -> int:
        """Tokens written."""

    @property
    def rows(self) -> int:
        """What a step multiplies: sentences, or their beams."""

    def step(self, found: Found) -> None:
        """Write a token more of all; those that are done leave."""


Fits = Callable[[list[int]], bool]
"""Whether these sentences may be one batch."""


def search_together(searches: Iterable[Search], fits: Fits) -> Found:
    """What all of them find. Each is opened when those before it are done, or wait."""
    together = _Together(fits)
    for search in searches:
        together.go_on(search)
    while together.waiting:
        together.go_on(together.take(min(together.waiting)), to_the_end=True)
    return together.found


class _Together:
    def __init__(self, fits: Fits) -> None:
        self.fits = fits
        self.found: Found = {}
        self.waiting: dict[int, list[Search]] = defaultdict(list)
        """By how far they have come."""

    def go_on(self, search: Search, *, to_the_end: bool = False) -> None:
        """Until it is done, or waits: after the last batch, where others do; before, where half of it is done."""
        begun = len(search.sentences)
        while len(search.sentences):
            search.step(self.found)
            meets = search.length in self.waiting if to_the_end else _may_meet(search, begun)
            if meets and len(search.sentences):
                return self.wait(search)

    def wait(self, search: Search) -> None:
        others = self.waiting.get(search.length, [])
        if others and not self.fits([number for one in (*others, search) for number in one.sentences.tolist()]):
            self.go_on(self.take(search.length))
        self.waiting[search.length].append(joined([search]))

    def take(self, place: int) -> Search:
        """Those that wait there, as one."""
        searches = self.waiting.pop(place)
        return joined(searches) if len(searches) > 1 else searches[0]


def _may_meet(search: Search, begun: int) -> bool:
    """Whether it stands where others will, with few enough of the sentences that it began with."""
    few = FEWER * len(search.sentences) <= begun and search.rows <= FEW_ROWS
    return few and search.length % EVERY == 0
