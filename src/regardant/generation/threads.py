"""Batches at the same time, each by one thread.

Most operations of a decoding step are too small to divide: two threads on one batch wait for each other, two batches on
a thread each do not. Python's lock is no hindrance, since torch lets go of it in every operation.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def each_by_a_thread(
    function: Callable[[Item], Result], items: Sequence[Item], threads: int, *, in_turn: bool = False
) -> Iterator[Result]:
    """What `function` makes of each item, in their order, as many at a time as there are threads; in turn: one by one.

    A single item is left to torch's own threads.
    """
    if min(threads, len(items)) < 2:
        yield from map(function, items)
        return
    before = torch.get_num_threads()
    pool = ThreadPoolExecutor(1 if in_turn else threads, initializer=torch.set_num_threads, initargs=(1,))
    try:
        yield from pool.map(function, items)
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(before)  # what a thread sets for itself is what the next new thread begins with
