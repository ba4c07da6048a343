"""Joined search: the last sentences of several batches are searched as one batch.

A batch ends with its longest target. A step reads all weights, however few sentences are left. The last sentences of a
batch therefore wait for those of other batches, and are joined when they have the same number of tokens.
"""

from regardant.generation.beam import Search
from regardant.generation.length_penalty import Hypothesis

SHARE, FEW = 1 / 4, 8
"""Largest share and number of its sentences that are left when a search waits. With more sentences a step takes longer,
so that joining saves less."""

MOST_WAITING = 16
"""Maximum number of waiting searches: each keeps the keys of its sentences in memory."""


class Searches:
    """Searches of batches, run to their ends; with `joined` the last sentences of several run as one batch."""

    def __init__(self, *, joined: bool) -> None:
        self.joined = joined
        self.found: dict[int, list[Hypothesis]] = {}
        """Best hypotheses by sentence number."""
        self._waiting: list[Search] = []

    def add(self, search: Search) -> None:
        """Search a batch to its end, or until its last sentences wait for others. Sentence numbers must be unique."""
        while len(search.sentences) > min(SHARE * search.size, FEW):
            search.step()
        if len(search.sentences) and self.joined and search.joins:
            search.state.join()  # copies the last sentences, which frees the memory of the others
            self._waiting.append(search)
        else:
            self._end(search)
        if len(self._waiting) == MOST_WAITING:
            self.end()

    def end(self) -> None:
        """Run all waiting searches to their ends, the one with the fewest tokens first."""
        self._waiting.sort(key=lambda search: -search.length)
        while self._waiting:
            self._end(self._waiting.pop())

    def _end(self, search: Search) -> None:
        """Run a search to its end. If it `joins`, it takes over each waiting search when their lengths are equal."""
        while len(search.sentences):
            for other in tuple(self._waiting):
                if search.takes(other) and search.joins:  # the cheap question first
                    search.join(other)
                    self._waiting.remove(other)
            search.step()
        self.found |= search.found
