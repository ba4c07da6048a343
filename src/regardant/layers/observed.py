"""Modules that inspection records or changes.

A search of observed modules runs in one thread: the records of hooks are lost in a forked process, and mixed up in
several threads.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

OBSERVED: Counter[nn.Module] = Counter()
"""Number of open contexts that observe each module. Unobserved modules have no entry."""


@contextmanager
def observing(module: nn.Module) -> Iterator[None]:
    """Record that a module is observed while the context is open."""
    OBSERVED[module] += 1
    try:
        yield
    finally:
        OBSERVED[module] -= 1
        if not OBSERVED[module]:
            del OBSERVED[module]
