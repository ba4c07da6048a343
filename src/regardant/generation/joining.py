"""The last sentences of several batches, searched as one batch.

A batch ends with its longest target. A step reads all weights, however few sentences are left, so those of a batch wait
for those of others and go on with them, once as many tokens are written of each.
"""

from regardant.generation.beam import Search
from regardant.generation.length_penalty import Hypothesis

SHARE, FEW = 1 / 4, 8
"""A search waits when at most this share of its sentences is left, and so many. A step of more takes longer, so that
joining saves less."""

MOST_WAITING = 16
"""Searches that wait at a time: each keeps the keys of its sentences."""


class Searches:
    """Searches of batches, taken to their ends; with `joined` the last sentences of several as one batch."""

    def __init__(self, *, joined: bool) -> None:
        self.joined = joined
        self.found: dict[int, list[Hypothesis]] = {}
        """Best targets by the number of the sentence."""
        self._waiting: list[Search] = []

    def add(self, search: Search) -> None:
        """Search a batch, or wait for others with its last sentences. Numbers of sentences are those of no other."""
        while len(search.sentences) > min(SHARE * search.size, FEW):
            search.step()
        if len(search.sentences) and self.joined and search.joins:
            search.state.join()  # frees the memory of the others
            self._waiting.append(search)
        else:
            self._end(search)
        if len(self._waiting) == MOST_WAITING:
            self.end()

    def end(self) -> None:
        """Search for all that waits, that with the fewest tokens first."""
        self._waiting.sort(key=lambda search: -search.length)
        while self._waiting:
            self._end(self._waiting.pop())

    def _end(self, search: Search) -> None:
        """Search to the end. A search that `joins` takes each waiting one that it reaches."""
        while len(search.sentences):
            for other in tuple(self._waiting):
                if search.joins and search.takes(other):
                    search.join(other)
                    self._waiting.remove(other)
            search.step()
        self.found |= search.found
