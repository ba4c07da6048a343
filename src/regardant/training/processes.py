"""Processes that train one model together. A small model leaves threads of one process idle.

Each process holds the model and computes its rows of every batch. Gradients are summed, and all processes make the same
update. An update is the same as in one process, except for dropout, whose masks each process draws for its own rows.
The first process leads: it alone validates, reports and writes, and decides when to stop.

Processes find each other through a file in a private folder, and exchange gradients over loopback: nothing listens on a
network.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import IO, Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from regardant.errors import RunError

ARRIVED = "arrived"
"""Key of the store that counts the followers."""

PATIENCE = timedelta(days=1)
"""Time that processes wait for each other: followers wait while the first one validates."""


@dataclass(frozen=True)
class Group:
    """The processes of a training, from the view of one of them."""

    rank: int = 0
    size: int = 1
    others: tuple[int, ...] = ()
    """Process ids of the followers, known to the first."""

    @property
    def leads(self) -> bool:
        """Whether this is the first process."""
        return self.rank == 0

    @contextlib.contextmanager
    def undivided(self) -> Iterator[None]:
        """Give the first process the threads of all while the others wait."""
        threads = torch.get_num_threads()
        torch.set_num_threads(threads * self.size)
        try:
            yield
        finally:
            torch.set_num_threads(threads)

    def add_up(self, parameters: Sequence[nn.Parameter], *sums: Tensor) -> None:
        """Replace gradients and `sums` by their sums over all processes, bit by bit the same in each."""
        if self.size == 1:
            return
        for parameter in parameters:
            if parameter.requires_grad and parameter.grad is None:  # others may have one
                parameter.grad = torch.zeros_like(parameter)
        parts = [*(parameter.grad for parameter in parameters if parameter.grad is not None), *sums]
        block = torch.cat([part.flatten() for part in parts])
        dist.all_reduce(block)
        for part, summed in zip(parts, block.split([part.numel() for part in parts]), strict=True):
            part.copy_(summed.view_as(part))

    def agree(self, *numbers: float) -> list[float]:
        """Return the numbers of the first process in all of them."""
        if self.size == 1:
            return list(numbers)
        shared = torch.tensor(numbers, dtype=torch.float64)
        dist.broadcast(shared, 0)
        return shared.tolist()


ALONE = Group()


@contextlib.contextmanager
def lead(size: int, command: Sequence[str]) -> Iterator[Group]:
    """Start the followers as `command RANK SIZE STORE`, each of which calls `join`. They end with the context.

    The threads of this process are divided among all. Raises RunError if a follower ends early.
    """
    if size == 1:
        yield ALONE
        return
    threads = torch.get_num_threads()
    # The folder can be read by its owner alone (mode 0700).
    with tempfile.TemporaryDirectory(prefix="regardant-") as folder, tempfile.TemporaryFile() as errors:
        path = Path(folder) / "store"
        store = _open_store(path, size)
        others = [_start([*command, str(rank), str(size), str(path)], errors) for rank in range(1, size)]
        try:
            while store.add(ARRIVED, 0) < size - 1:
                if any(other.poll() is not None for other in others):
                    raise RuntimeError("a follower never arrived")
                time.sleep(0.05)
            _meet(store, 0, size)
            torch.set_num_threads(max(1, threads // size))
            yield Group(0, size, tuple(other.pid for other in others))
        except RuntimeError as error:
            if not any(_has_failed(other) for other in others):
                raise
            cause = _last_line(errors)
            raise RunError(f"a process of this training has ended ({cause}): start the command again") from error
        else:
            for other in others:
                other.wait()
        finally:
            torch.set_num_threads(threads)
            for other in others:
                other.kill()
                other.communicate()  # waits, and closes the pipe
            if dist.is_initialized():
                dist.destroy_process_group()


def end_with_leader() -> None:
    """End this process as soon as the one that started it has ended, even by a kill.

    A follower that computes would notice at its next exchange, and one that waits to meet its leader only after
    PATIENCE. The leader holds the other end of standard input, which is closed when the leader ends.
    """
    threading.Thread(target=_exit_at_end_of_input, daemon=True).start()


def join(rank: int, size: int, path: str) -> Group:
    """Become one of the processes that `lead` has started, with the path of its store."""
    store = _open_store(Path(path), size)
    store.add(ARRIVED, 1)
    _meet(store, rank, size)
    torch.set_num_threads(max(1, torch.get_num_threads() // size))
    return Group(rank, size)


def _open_store(path: Path, size: int) -> Any:
    store = dist.FileStore(str(path), size)  # type: ignore[attr-defined]
    store.set_timeout(PATIENCE)
    return store


def _exit_at_end_of_input() -> None:
    while os.read(0, 1):  # past Python's buffer, whose lock a daemon thread would hold at the end of the process
        pass
    os._exit(1)


def _start(command: Sequence[str], errors: IO[bytes]) -> subprocess.Popen[bytes]:
    # In its own session, so that Ctrl-C reaches the first process alone, which stops the others.
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True
    )


def _meet(store: Any, rank: int, size: int) -> None:
    loopback = "lo0" if sys.platform == "darwin" else "lo"
    os.environ["GLOO_SOCKET_IFNAME"] = loopback  # by default gloo listens on a network interface
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=PATIENCE)


def _has_failed(other: subprocess.Popen[bytes]) -> bool:
    with contextlib.suppress(subprocess.TimeoutExpired):
        return other.wait(1) != 0  # its connection closes shortly before it ends
    return False


def _last_line(errors: IO[bytes]) -> str:
    errors.seek(0)
    lines = errors.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "it gave no reason")
