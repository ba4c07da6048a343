"""The machine: its device, its memory, and settings that make a CPU train faster."""

import contextlib
import ctypes
import math
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import nn

from regardant.errors import OutOfMemory
from regardant.layers import products

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's mallopt
_LARGEST_MMAP_THRESHOLD = 32 << 20
_MIB = 1 << 20

NO_BFLOAT16 = "this processor has no instructions for bfloat16, in which training takes many times as long"
"""Message for a run in bfloat16 where `multiplies_bfloat16` is False."""


def the_device() -> torch.device:
    """Return the accelerator, or the CPU if there is none."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def multiplies_bfloat16(device: torch.device) -> bool:
    """Return whether a device multiplies bfloat16 itself, instead of converting it element by element."""
    return device.type == "cuda" or products.has_narrow_onednn()


def keep_freed_memory() -> None:
    """Make glibc keep large blocks instead of returning them to the system after each use.

    Otherwise every step has page faults for all its activations. The price is a heap larger than the memory in use.
    """
    _set_allocator(_LARGEST_MMAP_THRESHOLD, 2**31 - 1)


def return_freed_memory() -> None:
    """Make glibc return large blocks to the system after each use, and those that it already keeps at once.

    Weights that are gathered for each sublayer would otherwise leave a heap of twice the memory in use. A block that
    fits into a hole of the heap is put there, and its pages stay.
    """
    _set_allocator(_MIB, _MIB)
    trim_heap()


def trim_heap() -> None:
    """Make glibc return the free pages of its heap to the system, once.

    The texts of a corpus fragment it, more and more for a while as one buffer follows another.
    """
    if libc := _glibc():
        libc.malloc_trim(0)


def _set_allocator(mmap_threshold: int, trim_threshold: int) -> None:
    """Set the size in bytes from which a block is mapped by itself, and the free bytes that the heap keeps."""
    if libc := _glibc():
        libc.mallopt(_MMAP_THRESHOLD, mmap_threshold)
        libc.mallopt(_TRIM_THRESHOLD, trim_threshold)


def _glibc() -> ctypes.CDLL | None:
    """Return glibc. None: this system has another C library."""
    if sys.platform.startswith("linux"):
        with contextlib.suppress(OSError):
            libc = ctypes.CDLL("libc.so.6")
            return libc if hasattr(libc, "mallopt") else None  # musl has none
    return None


def bound_kernel_cache() -> None:
    """Make oneDNN cache the kernels of at most 256 shapes. Call it before the first matrix product.

    An entry holds half a megabyte. oneDNN keeps a thousand by default, though few shapes recur: docs/decisions/0014.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "256")


def available_memory() -> int:
    """Return the bytes that this process may still allocate: free main memory, or less inside a container."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with contextlib.suppress(OSError):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    with contextlib.suppress(OSError, ValueError, KeyError):
        free = min(free, _left_in_group(Path("/sys/fs/cgroup")))
    return free


def _left_in_group(group: Path) -> int:
    limit, used = (int((group / name).read_text(encoding="ascii")) for name in ("memory.max", "memory.current"))
    lines = (group / "memory.stat").read_text(encoding="ascii").splitlines()
    stat = {name: int(value) for name, value in map(str.split, lines)}
    cached = stat["inactive_file"] + stat["active_file"]  # the kernel drops cached files when memory is needed
    return limit - used + cached


def require_memory(build: Callable[[], nn.Module]) -> None:
    """Raise OutOfMemory if the weights of a model and their gradients need more memory than there is.

    The model is built on the meta device, which allocates nothing.
    """
    with torch.device("meta"):
        model = build()
    needed, free = 2 * sum(parameter.nbytes for parameter in model.parameters()), available_memory()
    if needed > free:
        count = sum(parameter.numel() for parameter in model.parameters())
        raise OutOfMemory(
            f"{count:,} parameters and their gradients take {needed / 2**30:,.1f} GiB, and {free / 2**30:,.1f} GiB are "
            "free: take a smaller model"
        )


@contextlib.contextmanager
def memory_guard(what: str, advice: str, most: int | None = None) -> Iterator[None]:
    """Turn running out of memory into an OutOfMemory error: `what` does not fit, `advice` says what to do.

    `most` is the number of bytes that may be allocated, if that is less than what is free.

    Linux grants more memory than there is and kills the process that uses it. A limit makes the allocation itself fail,
    in time to tell the user what to change.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    held = _data_segment()
    if held:
        limit = held + (available_memory() if most is None else min(most, available_memory()))
        resource.setrlimit(resource.RLIMIT_DATA, (limit if hard < 0 else min(limit, hard), hard))
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if ran_out_of_memory(error):
            raise OutOfMemory(f"{what} does not fit into memory: {advice}") from error
        raise
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


class MemoryLimit:
    """Context in which an allocation beyond the free memory fails, as `memory_guard` describes.

    Cheap enough for every update: free memory is read at most once a second.
    """

    def __init__(self) -> None:
        self.looked_at = -math.inf
        self.limit: int | None = None
        self.before = (0, 0)

    def __enter__(self) -> None:
        now = time.monotonic()
        if now - self.looked_at >= 1:
            held, self.looked_at = _data_segment(), now
            self.limit = held + available_memory() if held else None
        self.before = resource.getrlimit(resource.RLIMIT_DATA)
        _, hard = self.before
        if self.limit is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (self.limit if hard < 0 else min(self.limit, hard), hard))

    def __exit__(self, *exception: object) -> None:
        resource.setrlimit(resource.RLIMIT_DATA, self.before)


def ran_out_of_memory(error: RuntimeError | MemoryError) -> bool:
    """Return whether an error means that main memory, or an accelerator's, was exhausted."""
    message = str(error).lower()
    phrases = ("out of memory", "can't allocate memory", "storage size calculation overflowed")
    return isinstance(error, MemoryError) or any(phrase in message for phrase in phrases)


def _data_segment() -> int:
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData"))
    return 0
