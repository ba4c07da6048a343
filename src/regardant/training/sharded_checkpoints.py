"""Checkpoints of a sharded model: each process writes its own shards, by torch.distributed.checkpoint.

A checkpoint is a folder. It can be read by any number of processes, which reshard it, and by one that holds the whole
model. Shards are safetensors, so that loading cannot run code.

    RUN/checkpoints/update-00001234/*.safetensors    the shards
    RUN/checkpoints/update-00001234/state.pt         all else: the cursor, the place of each tensor, checksums
"""

import warnings
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader, HuggingFaceStorageWriter
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor, zeros

from regardant.errors import RunError, first_line
from regardant.training.processes import Group

STATE = "state.pt"
"""File with all state but the shards. It is written last."""

TensorPath = tuple[str | int, ...]
"""The keys and indices that lead to a tensor in nested containers."""

BLOCK = 1 << 24
"""Bytes of a file that are read at a time."""

FILE_BYTES = 1 << 25
"""Bytes of shards after which another file begins: a file is assembled in memory."""


def write_shards(folder: Path, state: dict[str, Any], group: Group) -> dict[str, Any]:
    """Write the shards of a state to a new folder. All processes have to call it.

    Returns the content of STATE, in rank 0 with the checksums of all files. Raises OSError or CheckpointException if a
    file cannot be written.
    """
    shards: dict[str, DTensor] = {}
    places: list[tuple[str, TensorPath]] = []
    rest = _without_shards(state, (), shards, places, {})
    writer = HuggingFaceStorageWriter(str(folder), _in_files(shards, group.size), save_distributed=True)
    save(shards, storage_writer=writer, process_group=group.control)
    files = {file.name: _checksum(file) for file in sorted(folder.glob("*.safetensors"))} if group.leads else {}
    return {"state": rest, "places": places, "files": files}


def is_whole(folder: Path) -> bool:
    """Return whether all files of a checkpoint are there and as they were written."""
    try:
        files = torch.load(folder / STATE, map_location="cpu", weights_only=True)["files"]
        return all(_checksum(folder / name) == written for name, written in files.items())
    except Exception:  # a damaged archive may raise anything
        return False


def load_shards(folder: Path, mesh: DeviceMesh | None) -> dict[str, Any]:
    """Return the state given to `write_shards`: with this process's shards of a mesh, or, without one, with whole
    tensors on the CPU. Raises RunError for a damaged checkpoint."""
    try:
        content = torch.load(folder / STATE, map_location="cpu", weights_only=True)
        found = HuggingFaceStorageReader(str(folder)).read_metadata().state_dict_metadata
        tensors: dict[str, Any] = {
            name: torch.zeros(one.size, dtype=one.properties.dtype)  # type: ignore[union-attr]
            if mesh is None
            else zeros(one.size, dtype=one.properties.dtype, device_mesh=mesh, placements=[Shard(0)])  # type: ignore[union-attr]
            for name, one in found.items()
        }
        reader = HuggingFaceStorageReader(str(folder))
        with warnings.catch_warnings():  # reading in one process is intended
            warnings.filterwarnings("ignore", message="torch.distributed is disabled")
            load(tensors, storage_reader=reader, no_dist=mesh is None)
        state: dict[str, Any] = content["state"]
        for name, (*way, last) in content["places"]:
            holder: Any = state
            for key in way:
                holder = holder[key]
            holder[last] = tensors[name]
    except Exception as error:  # a damaged file may raise anything
        why = first_line(error)
        raise RunError(f"{folder} is not a complete checkpoint ({why}); use an earlier one") from error
    return state


def shard_state(state: dict[str, Any], model: nn.Module, optimizers: Sequence[torch.optim.Optimizer]) -> None:
    """Replace tensors of a state that have the shape of their parameter by this process's shard, sharded like the
    parameter."""
    own = model.state_dict()
    state["model"] = {name: _like(own.get(name), tensor) for name, tensor in state["model"].items()}
    for optimizer, saved in zip(optimizers, state["optimizers"], strict=True):
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        for index, numbers in saved["state"].items():
            saved["state"][index] = {name: _like(parameters[index], value) for name, value in numbers.items()}
    if running := state["average"].get("running"):
        state["average"]["running"] = [_like(*pair) for pair in zip(model.parameters(), running, strict=True)]


def _like(parameter: Tensor | None, value: Any) -> Any:
    if not isinstance(parameter, DTensor) or isinstance(value, DTensor) or not isinstance(value, Tensor):
        return value
    if value.shape != parameter.shape:
        return value
    mesh = parameter.device_mesh
    return distribute_tensor(value.to(mesh.device_type), mesh, parameter.placements, src_data_rank=None)


def _without_shards(
    value: Any, way: TensorPath, shards: dict[str, DTensor], places: list[tuple[str, TensorPath]], known: dict[Any, str]
) -> Any:
    """Return nested containers with None for each sharded tensor, and add the tensor to `shards` by name and its place
    to `places`. A tensor with several places is written once."""
    if isinstance(value, dict):
        return {key: _without_shards(one, (*way, key), shards, places, known) for key, one in value.items()}
    if isinstance(value, list):
        return [_without_shards(one, (*way, at), shards, places, known) for at, one in enumerate(value)]
    if not isinstance(value, DTensor):
        return value
    if all(isinstance(placement, Replicate) for placement in value.placements):
        return value.to_local()
    mine = value.to_local()
    place = (mine.data_ptr(), mine.shape, way) if not mine.numel() else (mine.data_ptr(), mine.shape)
    name = known.setdefault(place, "/".join(map(str, way)))
    shards[name] = value
    places.append((name, way))
    return None


def _in_files(shards: dict[str, DTensor], size: int) -> dict[str, int]:
    """Return the number, from 1, of the file of each tensor, which is the same in all processes."""
    files, number, filled = {}, 1, 0
    for name, tensor in shards.items():
        mine = tensor.nbytes // size
        if filled and filled + mine > FILE_BYTES:
            number, filled = number + 1, 0
        files[name], filled = number, filled + mine
    return files


def _checksum(file: Path) -> int:
    found = 0
    with file.open("rb") as content:
        while block := content.read(BLOCK):
            found = zlib.crc32(block, found)
    return found
