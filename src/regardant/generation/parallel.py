"""Work on many things at the same time, by processes or threads of one thread each.

Most operations of a decoding step are too small to divide: two threads on one batch wait for each other, two batches on
a core each do not. Processes are forked, so that they have the model at once and copy nothing of it, and this one works
beside them; threads wait for each other's Python, and take their place where forking is not safe or not worth its
while.
"""

import gc
import multiprocessing
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, TypeVar

import torch

from regardant.errors import RunError

Item = TypeVar("Item")
Result = TypeVar("Result")

Work = Callable[[Iterator[Item]], Result]
"""Takes one item after the other, as long as there are any."""


def share_out(
    work: Work[Item, Result], items: Sequence[Item], workers: int, *, in_turn: bool = False, fork: bool = True
) -> Iterator[Result]:
    """What each of the workers makes of its items: who asks gets the next one. In turn: one thread of this process
    gets them all. `fork`: processes are worth their while, where they are safe.

    What a forked worker does beside its result is lost with its process. A single item is left to torch's own
    threads. Raises RunError where a process is killed.
    """
    if min(workers, len(items)) < 2:
        yield work(iter(items))
    elif fork and not in_turn and _may_fork():
        yield from _by_processes(work, items, workers)
    else:
        yield from _by_threads(work, items, 1 if in_turn else workers)


def _may_fork() -> bool:
    """Whether nothing is lost in a copy of this process: no lock that another thread holds, no accelerator."""
    return (
        sys.platform == "linux"
        and threading.active_count() == 1
        and not torch.cuda.is_initialized()
        and not multiprocessing.current_process().daemon  # which may have no children
    )


def _by_processes(work: Work[Item, Result], items: Sequence[Item], workers: int) -> Iterator[Result]:
    context = multiprocessing.get_context("fork")
    taken = context.Value("q", 0)
    pool = ProcessPoolExecutor(workers - 1, mp_context=context, initializer=_begin, initargs=(work, items, taken))
    others: list[Future[Result]] = []
    try:
        others += [pool.submit(_work) for _ in range(workers - 1)]
        with _one_thread():
            # This one works too: what oneDNN compiles here is there when processes are forked the next time.
            mine = work(_untaken(items, taken, others))
        yield mine
        for done in as_completed(others):
            yield done.result()
    except BrokenProcessPool as error:
        raise RunError(
            "a process that translates was killed, perhaps for want of memory: lower the beam size"
        ) from error
    finally:
        taken.value = len(items)  # after an error nothing is begun
        pool.shutdown(cancel_futures=True)


@contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


_given: tuple[Work[Any, Any], Sequence[Any], Any]
"""In a forked process: what it is for, and how many items have been taken by all of them."""


def _begin(*given: Any) -> None:
    global _given
    _given = given
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that forked it is asked too, and ends it
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    gc.freeze()  # else the pages of all objects are written to, and thereby copied, when they are next looked through
    torch.set_num_threads(1)


def _work() -> Any:
    work, items, taken = _given
    return work(_untaken(items, taken))


def _untaken(items: Sequence[Item], taken: Any, others: Sequence[Future[Any]] = ()) -> Iterator[Item]:
    """As long as none of the others has failed."""
    while not any(other.done() and other.exception() for other in others):
        with taken.get_lock():
            number = taken.value
            taken.value += 1
        if number >= len(items):
            return
        yield items[number]


def _by_threads(work: Work[Item, Result], items: Sequence[Item], workers: int) -> Iterator[Result]:
    before = torch.get_num_threads()
    untaken = iter(items)
    pool = ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,))
    try:
        for done in as_completed([pool.submit(work, untaken) for _ in range(workers)]):
            yield done.result()
    finally:
        for _ in untaken:  # after an error nothing is begun
            pass
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(before)  # what a thread sets for itself is what the next new thread begins with
