"""Peak memory of a computation beyond the memory of its inputs. Linux and glibc.

The kernel keeps a high-water mark of each process (VmHWM; `ru_maxrss` reads it too). The mark covers the whole life of
the process, the import of torch included; a child may inherit its parent's; and an allocator that keeps freed memory
hides how much is in use. So each computation has

- a process of its own, forked from a server that has imported torch and computed nothing;
- an allocator that returns every larger block to the system as soon as it is freed;
- a warm-up run on a tiny input, which allocates once what is kept: threads, buffers of the matrix library;
- the mark reset to the memory in use once the inputs are made.
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
"""Variables by which glibc returns freed memory, read as the server starts. This is slow: nothing is timed there."""

SERVER = multiprocessing.get_context("forkserver")
# torch imports the last module at the first gradient, which takes half a second.
SERVER.set_forkserver_preload(
    ["regardant.models", "regardant.training.reporting", "torch.fx.experimental.symbolic_shapes"]
)
os.environ |= GIVE_BACK


def in_a_fresh_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of `function`, defined at the top level of a module, from a fresh process."""
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
    """Return the peak bytes of the work that `prepare` returns, its result included and its inputs excluded."""
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
