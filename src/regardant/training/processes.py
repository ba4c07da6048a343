"""Processes that train one model together: their start, rendezvous and agreement. A small model leaves threads of one
process idle, and a large one needs several accelerators.

Each process computes its rows of every batch, and all make the same update. The first process (rank 0) alone validates,
reports and writes, and decides when to stop.

A process reads its rank from the environment variables of torchrun (RANK, WORLD_SIZE, ...). Either torchrun starts all
processes, on any number of machines, or `started` starts the others of this machine, which meet through a file in a
private folder and listen on loopback alone.
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import IntEnum
from pathlib import Path
from typing import IO, Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from regardant.errors import RunError
from regardant.training.config import Strategy
from regardant.training.devices import the_device

STORE = "REGARDANT_STORE"
"""Environment variable with the path of the file through which the processes of this machine meet."""

ARRIVED = "arrived"
"""Key of the store that counts the processes that wait for rank 0."""

LONGEST_WAIT = timedelta(days=1)
"""Time that the others wait for rank 0, which prepares the data and validates alone."""

TIMEOUT = timedelta(minutes=10)
"""Time that processes wait for each other within an update."""

ROLL_CALL = 5.0
"""Seconds that a process has to answer after a failed exchange. One that does not answer is named as the cause."""


class Act(IntEnum):
    """The next act of all processes, which rank 0 decides."""

    STOP = 0
    UPDATE = 1
    GATHER = 2
    """Gather the whole weights in rank 0, averaged as validations read them."""
    GATHER_NEWEST = 3
    """Gather the whole weights in rank 0, as the last update left them."""
    SAVE = 4
    """Write a checkpoint of all shards."""
    KEEP = 5
    """Keep a snapshot of the weights, to return to after a spike of the loss."""
    RETURN = 6
    """Return to the snapshot."""


class FailedExchange(RunError):
    """Error for an exchange with a rank that has ended or does not answer."""


@dataclass(frozen=True)
class Group:
    """Processes of a training, from the view of one of them."""

    rank: int = 0
    size: int = 1
    local_size: int = 1
    """Number of processes on this machine."""
    others: tuple[int, ...] = ()
    """Process ids of the processes that rank 0 has started. Empty in other ranks."""
    store: Any = None
    """Key-value store through which the processes met. None: there is one process."""
    control: Any = None
    """Process group of rank 0's decisions, for which the others wait as long as LONGEST_WAIT."""
    share: int = 1
    """Number of processes that divide the CPU threads among them."""
    strategy: Strategy = "sum"
    """Strategy by which the processes share the model."""

    @property
    def leads(self) -> bool:
        """True if this is rank 0."""
        return self.rank == 0

    def divide_threads(self) -> None:
        """Limit torch to this process's share of the CPU threads."""
        torch.set_num_threads(max(1, torch.get_num_threads() // self.share))

    def wait_for_all(self) -> None:
        """Wait until all processes call this."""
        if self.size > 1:
            dist.barrier(group=self.control)

    @contextlib.contextmanager
    def undivided(self) -> Iterator[None]:
        """Let rank 0 use the threads of all processes while the others wait."""
        threads = torch.get_num_threads()
        torch.set_num_threads(threads * self.share)
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
        """Return the numbers of rank 0 in all processes."""
        if self.size == 1:
            return list(numbers)
        shared = torch.tensor(numbers, dtype=torch.float64)
        dist.broadcast(shared, 0, group=self.control)
        return shared.tolist()

    def gathered(self, numbers: Sequence[float]) -> Tensor:
        """Return the numbers of all processes, [processes, numbers] float64 on the CPU."""
        rows = torch.zeros(self.size, len(numbers), dtype=torch.float64)
        rows[self.rank] = torch.tensor(numbers, dtype=torch.float64)
        if self.size > 1:
            dist.all_reduce(rows, group=self.control)  # the default group may exchange tensors of accelerators alone
        return rows

    @contextlib.contextmanager
    def named_failures(self) -> Iterator[None]:
        """Turn a failed exchange into a RunError that names the ranks that have ended or do not answer."""
        try:
            yield
        except RuntimeError as error:
            if not _is_of_an_exchange(error) or not (absent := self._absent()):
                raise
            ranks = f"rank {absent[0]}" if len(absent) == 1 else f"ranks {', '.join(map(str, absent))}"
            raise FailedExchange(
                f"{ranks} of {self.size} ended or did not answer: start the command again to resume"
            ) from error

    def _absent(self) -> list[int]:
        """Return the ranks that do not answer within ROLL_CALL seconds."""
        dist.destroy_process_group()  # closes the connections, so that no other rank keeps waiting for this one
        end = time.monotonic() + ROLL_CALL
        absent = [rank for rank in range(self.size) if rank != self.rank]
        with contextlib.suppress(RuntimeError):  # the machine that holds the store is gone: nobody answers
            self.store.set(f"present/{self.rank}", "")
            while absent and time.monotonic() < end:
                time.sleep(0.1)
                absent = [rank for rank in absent if not self.store.check([f"present/{rank}"])]
        return absent


ALONE = Group()


def launched_rank() -> int | None:
    """Return the rank that torchrun gave this process. None: torchrun did not start it, or started it alone."""
    if dist.is_available() and dist.is_torchelastic_launched() and int(os.environ["WORLD_SIZE"]) > 1:
        return int(os.environ["RANK"])
    return None


@contextlib.contextmanager
def joined() -> Iterator[Group]:
    """Meet the other processes of a training, as the rank that the environment variables give, and yield the group."""
    rank, size, local, local_size = (
        int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
    )
    if rank:
        with contextlib.suppress(ValueError):  # not in the main thread
            for stopper in (signal.SIGINT, signal.SIGTERM):  # service managers send them to all processes; rank 0 saves
                signal.signal(stopper, signal.SIG_IGN)
    if path := os.environ.get(STORE):
        store, share = _file_store(Path(path), size), size
        store.add(ARRIVED, 1)
    else:
        store, share = _network_store(rank), 1
    if the_device().type == "cuda":
        torch.cuda.set_device(local)
    group = _meet(store, rank, size, local_size, share)
    try:
        with group.named_failures():
            yield group
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


@contextlib.contextmanager
def started(size: int, command: Sequence[str]) -> Iterator[Group]:
    """Start the other processes of a training on this machine with `command`, which calls `joined`, and meet them. They
    end with the context.

    Afterwards this process has the threads that it had. Raises RunError if another process ends early.
    """
    if size == 1:
        yield ALONE
        return
    threads = torch.get_num_threads()
    # The folder can be read by its owner alone (mode 0700).
    with tempfile.TemporaryDirectory(prefix="regardant-") as folder, _Others() as others:
        path = Path(folder) / "store"
        store = _file_store(path, size)
        for rank in range(1, size):
            others.start(command, _variables(rank, size, path))
        try:
            with others.named_failures():
                while store.add(ARRIVED, 0) < size - 1:
                    if others.have_ended():
                        raise RuntimeError("a process never arrived")
                    time.sleep(0.05)
                group = _meet(store, 0, size, size, size, others.ids)
                with group.named_failures():
                    yield group
            others.wait()
        finally:
            torch.set_num_threads(threads)
            if dist.is_initialized():
                dist.destroy_process_group()


def end_with_starter() -> None:
    """End this process as soon as the one that started it has ended, even by a kill.

    Otherwise a process that computes would notice at its next exchange, and one that waits for rank 0 after
    LONGEST_WAIT. Rank 0 holds the other end of standard input, which is closed when it ends.
    """
    threading.Thread(target=_exit_at_end_of_input, daemon=True).start()


@dataclass
class _Others:
    """The processes that rank 0 has started. Killed at the end of the context, if they still run."""

    running: list[subprocess.Popen[bytes]] = field(default_factory=list)
    errors: list[IO[bytes]] = field(default_factory=list)

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(one.pid for one in self.running)

    def __enter__(self) -> "_Others":
        return self

    def __exit__(self, *exception: object) -> None:
        for one, errors in zip(self.running, self.errors, strict=True):
            one.kill()
            one.communicate()  # waits, and closes the pipe
            errors.close()

    def start(self, command: Sequence[str], variables: Mapping[str, str]) -> None:
        self.errors.append(tempfile.TemporaryFile())  # noqa: SIM115  # closed at the end of the context
        self.running.append(
            subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=self.errors[-1],
                env={**os.environ, **variables},
                start_new_session=True,  # so that Ctrl-C reaches rank 0 alone, which stops the others
            )
        )

    def have_ended(self) -> bool:
        return any(one.poll() is not None for one in self.running)

    def wait(self) -> None:
        for one in self.running:
            one.wait()

    @contextlib.contextmanager
    def named_failures(self) -> Iterator[None]:
        """Turn a failed exchange into a RunError that says which rank has ended, and why."""
        try:
            yield
        except (RuntimeError, FailedExchange) as error:
            for rank, (one, errors) in enumerate(zip(self.running, self.errors, strict=True), 1):
                if code := _exit_code(one):
                    cause = _last_line(errors) or (f"signal {-code}" if code < 0 else f"exit code {code}")
                    size = len(self.running) + 1
                    raise RunError(
                        f"rank {rank} of {size} ended ({cause}): start the command again to resume"
                    ) from error
            raise


def _variables(rank: int, size: int, path: Path) -> dict[str, str]:
    """Return the environment variables with which torchrun would start a rank, and the path of the store."""
    numbers = {"RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": size}
    return {STORE: str(path), **{name: str(number) for name, number in numbers.items()}}


def _file_store(path: Path, size: int) -> Any:
    store = dist.FileStore(str(path), size)  # type: ignore[attr-defined]
    store.set_timeout(LONGEST_WAIT)
    return store


def _network_store(rank: int) -> Any:
    """Return a client of torchrun's store, or of one that rank 0 hosts if torchrun does not."""
    holds = rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    return dist.TCPStore(  # type: ignore[attr-defined]
        address, port, is_master=holds, timeout=LONGEST_WAIT, wait_for_workers=False
    )


def _meet(store: Any, rank: int, size: int, local_size: int, share: int, others: tuple[int, ...] = ()) -> Group:
    if share > 1:
        loopback = "lo0" if sys.platform == "darwin" else "lo"
        os.environ["GLOO_SOCKET_IFNAME"] = loopback  # by default gloo listens on a network interface
    backend = "nccl" if the_device().type == "cuda" else "gloo"
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=TIMEOUT)
    control = dist.new_group(backend="gloo", timeout=LONGEST_WAIT)
    return Group(rank, size, local_size, others, store, control, share)


def _is_of_an_exchange(error: RuntimeError) -> bool:
    """Return whether an error comes from the exchange between processes: gloo's have no class of their own."""
    return isinstance(error, dist.DistError) or "gloo" in str(error)


def _exit_at_end_of_input() -> None:
    while os.read(0, 1):  # past Python's buffer, whose lock a daemon thread would hold at the end of the process
        pass
    os._exit(1)


def _exit_code(process: subprocess.Popen[bytes]) -> int | None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.wait(1)  # its connection closes shortly before it ends
    return None


def _last_line(errors: IO[bytes]) -> str:
    errors.seek(0)
    lines = errors.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
