"""How much memory one piece of work needs at most, over what its inputs take. Linux and glibc.

The kernel keeps a high-water mark of each process (VmHWM; `ru_maxrss` reads it too). It stands for all that the process
ever did, the import of torch included, a child may begin with its parent's, and an allocator that keeps what was freed
hides what is in use. So each piece of work has

- a process of its own, forked from a server that has imported torch and computed nothing;
- an allocator that gives back every larger block as soon as it is freed;
- a run on something tiny before, for what is made once: threads, buffers of the matrix library;
- the mark set back to what is held when the inputs are made.
"""

import gc
import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from regardant.training.reporting import memory

Work = Callable[[], object]

GIVE_BACK = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
"""Read by glibc as the server starts. Slow, so nothing is timed there."""

SERVER = multiprocessing.get_context("forkserver")
# The last is what torch imports, for half a second of symbols, at the first gradient.
SERVER.set_forkserver_preload(
    ["regardant.models", "regardant.training.reporting", "torch.fx.experimental.symbolic_shapes"]
)
os.environ |= GIVE_BACK


def in_a_fresh_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what `function`, of the top level of a module, returns in a fresh process."""
    here, there = SERVER.Pipe(duplex=False)
    process = SERVER.Process(target=_answer, args=(there, function, arguments))
    process.start()
    there.close()
    try:
        return here.recv()
    except EOFError:
        process.join()
        raise SystemExit(f"{function.__name__}{arguments} ended with exit code {process.exitcode}") from None
    finally:
        process.join()


def peak_over_inputs(tiny: Work, prepare: Callable[[], Work]) -> int:
    """Bytes that the work needs at most beside what `prepare` made for it. What the work returns counts as needed."""
    tiny()
    work = prepare()
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = memory().peak
    kept = work()
    peak = memory().peak
    del kept
    return peak - before


def _answer(pipe: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    pipe.send(function(*arguments))
