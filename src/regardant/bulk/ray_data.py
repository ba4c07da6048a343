"""Bulk work on Ray Data: actors that hold the model answer the shards. The door of Ray.

An actor that is killed is started again, and so is the shard that it had.
"""

import logging
from collections.abc import Iterator, Sequence
from typing import Any

from regardant.bulk.work import Numbered, Work, answer_shard
from regardant.data.addresses import Shard
from regardant.errors import ConfigError


class Answering:
    """An actor with the model of a run."""

    def __init__(self, work: Work) -> None:
        import torch

        from regardant.run import load

        torch.set_num_threads(1)
        self.work, self.run = work, load(work.run)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Answer the shards of a batch."""
        shards = [
            Numbered(int(number), Shard(str(address), int(size)))
            for number, address, size in zip(batch["number"], batch["address"], batch["size"], strict=True)
        ]
        return {"rows": [answer_shard(self.work, self.run, shard) for shard in shards]}


def answer(work: Work, shards: Sequence[Numbered], address: str | None) -> Iterator[int]:
    """Answer shards on a cluster, or on this machine, an actor a processor or accelerator. Yields the rows of each as
    it is done. Raises ConfigError without Ray or the cluster."""
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise ConfigError("--on ray needs Ray: pip install 'regardant[ray]', or leave out --on ray") from error
    try:
        ray.init(address, log_to_driver=False, logging_level="ERROR", include_dashboard=False if not address else None)
    except ConnectionError as error:
        raise ConfigError(f"--address {address}: there is no cluster ({error}): start one with ray start") from error
    try:
        resources = ray.cluster_resources()
        accelerators = int(resources.get("GPU", 0))
        actors = min(len(shards), accelerators or int(resources.get("CPU", 1)))
        ray.data.DataContext.get_current().enable_progress_bars = False
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        rows = [{"number": one.number, "address": one.shard.address, "size": one.shard.size} for one in shards]
        answered = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
            Answering,
            batch_size=1,
            compute=ray.data.ActorPoolStrategy(size=actors),
            num_cpus=None if accelerators else 1,
            num_gpus=1 if accelerators else None,
            fn_constructor_args=(work,),
        )
        for row in answered.iter_rows():
            yield int(row["rows"])
    finally:
        ray.shutdown()
