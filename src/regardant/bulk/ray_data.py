"""Bulk work on Ray Data: actors that hold the model answer the shards. The only module that imports Ray.

Ray restarts an actor that was killed, and its shard.
"""

import logging
import socket
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from regardant.bulk.work import Numbered, Work, answer_shard
from regardant.data.addresses import Shard
from regardant.errors import ConfigError

CONNECTING = 10
"""Timeout in seconds for connecting to a cluster."""


class ModelActor:
    """Ray actor that holds the model of a run."""

    def __init__(self, work: Work) -> None:
        import torch

        from regardant.run import load

        torch.set_num_threads(1)
        self.work, self.run = work, load(work.run)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Answer the shards of a batch; return the number of rows of each."""
        shards = [
            Numbered(int(number), Shard(str(address), int(size)))
            for number, address, size in zip(batch["number"], batch["address"], batch["size"], strict=True)
        ]
        return {"rows": [answer_shard(self.work, self.run, shard) for shard in shards]}


@contextmanager
def cluster(address: str | None) -> Iterator[Callable[[Work, Sequence[Numbered]], Iterator[int]]]:
    """Yield a function that answers shards on a cluster, or on this machine, with one actor per accelerator, or per
    processor if there is no accelerator.

    The connection is made in the background: it takes seconds, in which the caller reads the run. Raises ConfigError if
    Ray or the cluster is missing, at the latest when shards are answered.
    """
    if find_spec("ray") is None:
        raise ConfigError("--on ray needs Ray: pip install 'regardant[ray]', or leave out --on ray")
    with ThreadPoolExecutor(1) as pool:  # Ray's processes end with the thread that started them
        connecting = pool.submit(_connect, address)

        def answer(work: Work, shards: Sequence[Numbered]) -> Iterator[int]:
            connecting.result()
            yield from _answer(work, shards)

        try:
            yield answer
        finally:
            if connecting.exception() is None:
                import ray

                ray.shutdown()


def _connect(address: str | None) -> None:
    import ray
    import ray.data

    try:
        if address and address != "auto" and "://" not in address:  # Ray itself waits for a cluster forever
            _require_listening(address)
        ray.init(address, log_to_driver=False, logging_level="ERROR", include_dashboard=False if not address else None)
    except OSError as error:
        raise ConfigError(f"--address {address}: there is no cluster ({error}): start one with ray start") from error
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)


def _require_listening(address: str) -> None:
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise ConfigError(f"--address {address}: give HOST:PORT, or auto for a cluster that was started here")
    socket.create_connection((host, int(port)), timeout=CONNECTING).close()


def _answer(work: Work, shards: Sequence[Numbered]) -> Iterator[int]:
    """Answer shards on the connected cluster. Yields the number of rows of each shard when it is answered."""
    import ray
    import ray.data

    resources = ray.cluster_resources()
    accelerators = int(resources.get("GPU", 0))
    actors = min(len(shards), accelerators or int(resources.get("CPU", 1)))
    rows = [{"number": one.number, "address": one.shard.address, "size": one.shard.size} for one in shards]
    answered = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
        ModelActor,
        batch_size=1,
        compute=ray.data.ActorPoolStrategy(size=actors),
        num_cpus=None if accelerators else 1,
        num_gpus=1 if accelerators else None,
        fn_constructor_args=(work,),
    )
    for row in answered.iter_rows():
        yield int(row["rows"])
