"""Batches at the same time, each by one process or thread of one.

Most operations of a decoding step are too small to divide: two threads on one batch wait for each other, two batches on
a core each do not. Processes are forked, so that they have the model at once and copy nothing of it; threads wait for
each other's Python, and take their place where forking is not safe or not worth its while.
"""

import multiprocessing
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

import torch

from regardant.errors import RunError

Item = TypeVar("Item")
Result = TypeVar("Result")

FEW = 4
"""Items of each worker. Of fewer, forking and memory that is new to each process take too large a share: a tenth of a
second and more."""


def each_in_parallel(
    function: Callable[[Item], Result], items: Sequence[Item], workers: int, *, in_turn: bool = False
) -> Iterator[Result]:
    """What `function` makes of each item, in their order, as many at a time as there are workers; in turn: one by one,
    by a thread of this process.

    What `function` does beside its result is lost with the process that did it. A single item is left to torch's own
    threads. Raises RunError where a process is killed.
    """
    if min(workers, len(items)) < 2:
        yield from map(function, items)
    elif not in_turn and len(items) >= FEW * workers and _may_fork():
        yield from _by_processes(function, items, workers)
    else:
        yield from _by_threads(function, items, 1 if in_turn else workers)


def _may_fork() -> bool:
    """Whether nothing is lost in a copy of this process: no lock that another thread holds, no accelerator."""
    return (
        sys.platform == "linux"
        and threading.active_count() == 1
        and not torch.cuda.is_initialized()
        and not multiprocessing.current_process().daemon  # which may have no children
    )


def _by_processes(function: Callable[[Item], Result], items: Sequence[Item], workers: int) -> Iterator[Result]:
    fork = multiprocessing.get_context("fork")
    pool = ProcessPoolExecutor(workers, mp_context=fork, initializer=_begin, initargs=(function, items))
    try:
        yield from pool.map(_work_on, range(len(items)))
    except BrokenProcessPool as error:
        raise RunError(
            "a process that translates was killed, perhaps for want of memory: lower the beam size"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


_given: tuple[Callable[[Any], Any], Sequence[Any]]
"""In a forked process: what it is for."""


def _begin(function: Callable[[Any], Any], items: Sequence[Any]) -> None:
    global _given
    _given = function, items
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that forked it is asked too, and ends it
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    torch.set_num_threads(1)


def _work_on(number: int) -> Any:
    function, items = _given
    return function(items[number])


def _by_threads(function: Callable[[Item], Result], items: Sequence[Item], workers: int) -> Iterator[Result]:
    before = torch.get_num_threads()
    pool = ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,))
    try:
        yield from pool.map(function, items)
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(before)  # what a thread sets for itself is what the next new thread begins with
