"""Work shared among processes or threads that use one core each.

Most operations of a decoding step are too small to divide: two threads on one batch wait for each other, two batches on
a core each do not. Processes are forked, so that they share the model's memory without a copy; the parent process works
as well. Threads wait for Python's global interpreter lock: they replace processes where forking is unsafe or too slow.
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

WorkFunction = Callable[[Iterator[Item]], Result]
"""Function that takes items one by one until there are none left."""


def share_out(
    work: WorkFunction[Item, Result], items: Sequence[Item], workers: int, *, fork: bool = True
) -> Iterator[Result]:
    """Yield the result of each worker; an idle worker takes the next item.

    fork: use processes where they are safe. Side effects of a forked worker are lost with its process. Raises RunError
    if a process is killed.
    """
    if fork and _may_fork():
        yield from _by_processes(work, items, workers)
    else:
        yield from _by_threads(work, items, workers)


def _may_fork() -> bool:
    """Return whether forking is safe: no other thread may hold a lock, and no accelerator may be in use."""
    return (
        sys.platform == "linux"
        and threading.active_count() == 1
        and not torch.cuda.is_initialized()
        and not multiprocessing.current_process().daemon  # which may have no children
    )


def _by_processes(work: WorkFunction[Item, Result], items: Sequence[Item], workers: int) -> Iterator[Result]:
    context = multiprocessing.get_context("fork")
    taken = context.Value("q", 0)
    pool = ProcessPoolExecutor(workers - 1, mp_context=context, initializer=_begin, initargs=(work, items, taken))
    others: list[Future[Result]] = []
    try:
        others += [pool.submit(_work) for _ in range(workers - 1)]
        with one_thread():
            # This process works too: kernels that oneDNN compiles in it are inherited by the processes forked later.
            mine = work(_untaken(items, taken, others))
        yield mine
        for done in as_completed(others):
            yield done.result()
    except BrokenProcessPool as error:
        raise RunError(
            "a process of the search was killed, perhaps for lack of memory: lower the beam size or the number of "
            "threads"
        ) from error
    finally:
        taken.value = len(items)  # after an error no further item is begun
        pool.shutdown(cancel_futures=True)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute in the calling thread alone."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


_given: tuple[WorkFunction[Any, Any], Sequence[Any], Any]
"""Work of a forked process: its function, the items, and the shared number of items taken so far."""


def _begin(*given: Any) -> None:
    global _given
    _given = given
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets it too, and ends this process
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    gc.freeze()  # a garbage collection would write to the pages of all objects, and so copy them
    torch.set_num_threads(1)


def _work() -> Any:
    work, items, taken = _given
    return work(_untaken(items, taken))


def _untaken(items: Sequence[Item], taken: Any, others: Sequence[Future[Any]] = ()) -> Iterator[Item]:
    """Yield unclaimed items; stop if another worker has failed."""
    while not any(other.done() and other.exception() for other in others):
        with taken.get_lock():
            number = taken.value
            taken.value += 1
        if number >= len(items):
            return
        yield items[number]


def _by_threads(work: WorkFunction[Item, Result], items: Sequence[Item], workers: int) -> Iterator[Result]:
    before = torch.get_num_threads()
    untaken = iter(items)
    pool = ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,))
    try:
        for done in as_completed([pool.submit(work, untaken) for _ in range(workers)]):
            yield done.result()
    finally:
        for _ in untaken:  # after an error no further item is begun
            pass
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(before)  # a new thread begins with the number that the last thread set for itself
