"""Modules that inspection listens to or intervenes in.

A search asks, since what a hook records in a forked process is lost, and in several threads it is mixed up.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

OBSERVED: Counter[nn.Module] = Counter()
"""How many open contexts observe each module. Modules that nothing observes are not in it."""


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
