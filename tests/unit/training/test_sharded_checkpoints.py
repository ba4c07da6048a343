"""Files of shards: small enough to be put together in memory, and the same in all processes."""

import torch

from regardant.training import sharded_checkpoints
from regardant.training.sharded_checkpoints import _in_files


def test_a_file_holds_as_many_shards_as_fit_and_at_least_one(monkeypatch):
    monkeypatch.setattr(sharded_checkpoints, "FILE_BYTES", 100)
    sizes = {"a": 20, "b": 30, "c": 10, "d": 60, "e": 1, "f": 1}  # of float32, in halves
    tensors = {name: torch.zeros(size) for name, size in sizes.items()}
    assert _in_files(tensors, 2) == {"a": 1, "b": 1, "c": 2, "d": 3, "e": 4, "f": 4}
