"""Processes that train one model together, where a small model leaves threads of one process idle.

Each holds the model and takes its rows of every batch; gradients are summed, and all make the same update. So an
update is what it is in one process, but for dropout, whose masks each draws for its own rows. The first process leads:
it alone validates, reports and writes, and says how long to go on.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import IO, Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from regardant.errors import RunError

HOST = "127.0.0.1"

HERE = "here"
"""Under which the store counts those that have come."""

PATIENCE = timedelta(days=1)
"""How long processes wait for each other: the others do nothing while the first one validates."""


@dataclass(frozen=True)
class Group:
    """The processes of a training, as one of them sees them."""

    rank: int = 0
    size: int = 1
    others: tuple[int, ...] = ()
    """Process numbers of those that follow, for the first to measure."""

    @property
    def leads(self) -> bool:
        """Whether this is the first."""
        return self.rank == 0

    @contextlib.contextmanager
    def undivided(self) -> Iterator[None]:
        """While the others wait, the first process has the threads of all."""
        threads = torch.get_num_threads()
        torch.set_num_threads(threads * self.size)
        try:
            yield
        finally:
            torch.set_num_threads(threads)

    def add_up(self, parameters: Sequence[nn.Parameter], *sums: Tensor) -> None:
        """Replace gradients, and `sums`, by their sums over all processes: bit by bit the same in each."""
        if self.size == 1:
            return
        for parameter in parameters:
            if parameter.requires_grad and parameter.grad is None:  # others may have a gradient of it
                parameter.grad = torch.zeros_like(parameter)
        parts = [*(parameter.grad for parameter in parameters if parameter.grad is not None), *sums]
        block = torch.cat([part.flatten() for part in parts])
        dist.all_reduce(block)
        for part, summed in zip(parts, block.split([part.numel() for part in parts]), strict=True):
            part.copy_(summed.view_as(part))

    def agree(self, *numbers: float) -> list[float]:
        """The numbers of the first process, in all of them."""
        if self.size == 1:
            return list(numbers)
        told = torch.tensor(numbers, dtype=torch.float64)
        dist.broadcast(told, 0)
        return told.tolist()


ALONE = Group()


@contextlib.contextmanager
def lead(size: int, command: Sequence[str]) -> Iterator[Group]:
    """Start the others as `command RANK SIZE PORT`, each of which calls `join`; they end with the block.

    The threads of this process are divided among all.

    Raises RunError where one of them has ended before.
    """
    if size == 1:
        yield ALONE
        return
    threads = torch.get_num_threads()
    store = dist.TCPStore(HOST, 0, size, is_master=True, wait_for_workers=False)  # type: ignore[attr-defined]
    with tempfile.TemporaryFile() as told:
        others = [_start([*command, str(rank), str(size), str(store.port)], told) for rank in range(1, size)]
        try:
            while store.add(HERE, 0) < size - 1:
                if any(other.poll() is not None for other in others):
                    raise RuntimeError("one never came")
                time.sleep(0.05)
            _meet(store, 0, size)
            torch.set_num_threads(max(1, threads // size))
            yield Group(0, size, tuple(other.pid for other in others))
        except RuntimeError as error:
            if not any(_has_failed(other) for other in others):
                raise
            why = _last_line(told)
            raise RunError(f"a process of this training has ended ({why}): start the command again") from error
        else:
            for other in others:
                other.wait()
        finally:
            torch.set_num_threads(threads)
            for other in others:
                other.kill()
                other.wait()
            if dist.is_initialized():
                dist.destroy_process_group()


def join(rank: int, size: int, port: int) -> Group:
    """Become one of the processes that `lead` has started."""
    store = dist.TCPStore(HOST, port, size, is_master=False)  # type: ignore[attr-defined]
    store.add(HERE, 1)
    _meet(store, rank, size)
    torch.set_num_threads(max(1, torch.get_num_threads() // size))
    return Group(rank, size)


def _start(command: Sequence[str], told: IO[bytes]) -> subprocess.Popen[bytes]:
    # In a session of its own: Ctrl-C is for the first process, which tells the others.
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=told, start_new_session=True
    )


def _meet(store: Any, rank: int, size: int) -> None:
    loopback = "lo0" if sys.platform == "darwin" else "lo"
    os.environ.setdefault("GLOO_SOCKET_IFNAME", loopback)  # gloo would listen to the network
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=PATIENCE)


def _has_failed(other: subprocess.Popen[bytes]) -> bool:
    with contextlib.suppress(subprocess.TimeoutExpired):
        return other.wait(1) != 0  # its connection closes a moment before it ends
    return False


def _last_line(told: IO[bytes]) -> str:
    told.seek(0)
    lines = told.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "it did not say why")
