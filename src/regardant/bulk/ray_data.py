"""Bulk work on Ray Data: actors that hold the model answer the shards. The only module that imports Ray.

Ray restarts an actor that was killed, and its shard. Ray wraps an exception of an actor in errors of its own, so actors
return the errors that the user can fix as rows, and the driver raises them.
"""

import logging
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from regardant.bulk.work import Numbered, Work, answer_shard
from regardant.config.plugins import modules_of
from regardant.data.addresses import Shard
from regardant.errors import ConfigError, DataError, RegardantError

if TYPE_CHECKING:
    from regardant.run import Run

CONNECTING = 10
"""Timeout in seconds for connecting to a cluster."""

RAISED: dict[str, type[Exception]] = {"DataError": DataError, "OSError": OSError, "MemoryError": MemoryError}
"""Errors that the driver raises, by the name that an actor returns: those that the command line explains."""


class Plugins(NamedTuple):
    """Modules that an actor imports before it opens the run."""

    modules: list[str]
    folders: list[str]
    """Folders in which the driver finds modules."""


class ModelActor:
    """Ray actor that holds the model of a run."""

    def __init__(self, work: Work, plugins: Plugins) -> None:
        import torch

        torch.set_num_threads(1)
        self.work, self.plugins = work, plugins

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Answer the shards of a batch. Return the number of rows of each, and a name of RAISED with a message for a
        shard that failed."""
        shards = [
            Numbered(int(number), Shard(str(address), int(size)))
            for number, address, size in zip(batch["number"], batch["address"], batch["size"], strict=True)
        ]
        rows, errors, messages = zip(*map(self._answered, shards), strict=True)
        return {"rows": list(rows), "error": list(errors), "message": list(messages)}

    @cached_property
    def run(self) -> "Run":
        """The run. Raises DataError if this machine lacks its folder or a plugin."""
        from regardant.run import load

        sys.path += [folder for folder in self.plugins.folders if folder not in sys.path]
        try:
            return load(self.work.run, self.plugins.modules)
        except RegardantError as error:
            raise DataError(f"a worker cannot open the run: {error}") from error

    def _answered(self, numbered: Numbered) -> tuple[int, str, str]:
        """Return the rows of a shard, a name of RAISED or an empty text, and a message."""
        from regardant.training.devices import ran_out_of_memory

        try:
            return answer_shard(self.work, self.run, numbered), "", ""
        except RegardantError as error:
            return 0, "DataError", str(error)
        except OSError as error:
            return 0, "OSError", str(error)
        except (MemoryError, RuntimeError) as error:
            if not ran_out_of_memory(error):
                raise
            return 0, "MemoryError", str(error)


@contextmanager
def cluster(address: str | None) -> Iterator[Callable[[Work, "Run", Sequence[Numbered]], Iterator[int]]]:
    """Yield a function that answers shards on a cluster, or on this machine, with one actor per accelerator, or per
    processor if there is no accelerator.

    The connection is made in the background: it takes seconds, in which the caller reads the run. Raises ConfigError if
    Ray or the cluster is missing, at the latest when shards are answered.
    """
    if find_spec("ray") is None:
        raise ConfigError("--on ray needs Ray: pip install 'regardant[ray]', or leave out --on ray")
    with ThreadPoolExecutor(1) as pool:  # Ray's processes end with the thread that started them
        connecting = pool.submit(_connect, address)

        def answer(work: Work, run: "Run", shards: Sequence[Numbered]) -> Iterator[int]:
            connecting.result()
            modules = modules_of(run.config)
            folders = [str(Path(folder).resolve()) for folder in sys.path] if modules else []
            yield from _answer(work, Plugins(modules, folders), shards)

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


def _answer(work: Work, plugins: Plugins, shards: Sequence[Numbered]) -> Iterator[int]:
    """Answer shards on the connected cluster. Yields the number of rows of each shard when it is answered.

    Raises an error of RAISED for the first shard that failed.
    """
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
        fn_constructor_args=(work, plugins),
    )
    for row in answered.iter_rows():
        if row["error"]:
            raise RAISED[row["error"]](row["message"])
        yield int(row["rows"])
