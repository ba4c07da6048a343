"""Checkpoints and weights, in files that are complete or absent (`regardant.files`).

Only the holder of the folder's lock writes them. Files loaded here cannot run code: checkpoints are plain containers
and tensors (`weights_only`), weights are safetensors.

    RUN/checkpoints/update-00001234.pt    all state needed to resume; a folder if the model is sharded
    RUN/model.safetensors                 the weights, to use the model
"""

import json
import os
import shutil
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from regardant.errors import RunError, first_line
from regardant.files import PART, flush_to_disk, replacing

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh

    from regardant.training.processes import Group

_HEADER = "regardant"
"""Our entry in the header of a safetensors file."""


def save_checkpoint(run: Path, state: dict[str, Any], update: int, keep: int) -> Path:
    """Write the state after `update` to the run folder, and delete all but the `keep` newest checkpoints up to it.

    Later checkpoints are deleted too: they belong to a continuation that was abandoned by resuming from an earlier
    update. `state` must be plain containers and tensors, or `load_checkpoint` refuses it.
    """
    path = _path_of(run, update)
    _clear_checkpoints(path.parent)
    save_whole(path, state)
    _keep_newest(run, path, keep)
    return path


def save_shards(run: Path, state: dict[str, Any], update: int, keep: int, group: "Group") -> None:
    """Write the state after `update`, sharded over the processes, as a folder. All processes have to call it.

    Rank 0 renames the folder when it is complete on disk, and deletes others as `save_checkpoint` does. Raises RunError
    if a file cannot be written.
    """
    from torch.distributed.checkpoint.api import CheckpointException  # takes a second

    from regardant.training.sharded_checkpoints import STATE, write_shards

    path = _path_of(run, update).with_suffix("")
    part, former = (path.with_name(path.name + end + PART) for end in ("", "-former"))
    try:
        if group.leads:
            _clear_checkpoints(path.parent)
        content = write_shards(part, state, group)
        if not group.leads:
            return
        save_whole(part / STATE, content)
        if path.exists():  # the same update was saved before, and a folder replaces none that has files
            os.replace(path, former)
        os.replace(part, path)
        flush_to_disk(path.parent)
        shutil.rmtree(former, ignore_errors=True)
    except (OSError, CheckpointException) as error:
        raise RunError(f"cannot write {path} ({first_line(error)}); is the disk full or read-only?") from error
    _keep_newest(run, path, keep)


def _path_of(run: Path, update: int) -> Path:
    return run / "checkpoints" / f"update-{update:08d}.pt"


def _keep_newest(run: Path, path: Path, keep: int) -> None:
    """Delete all checkpoints but the `keep` newest ones up to the one at `path`."""
    checkpoints = _checkpoints(run)
    newest = checkpoints.index(path) + 1
    for old in checkpoints[: max(0, newest - keep)] + checkpoints[newest:]:
        shutil.rmtree(old) if old.is_dir() else old.unlink()


def save_whole(path: Path, state: Mapping[str, Any]) -> None:
    """Write plain containers and tensors to a file, in one step for every reader."""
    with replacing(path) as part:
        torch.save(state, part)


def latest_checkpoint(run: Path) -> Path | None:
    """Return the newest intact checkpoint of a run folder, or None if it has no checkpoints.

    Reads the file once to verify its checksums. A damaged checkpoint is skipped for the one before. If all are damaged,
    raises RunError: starting over in silence would cost the user the run.
    """
    checkpoints = _checkpoints(run)
    for path in reversed(checkpoints):
        if _is_whole(path):
            return path
    if checkpoints:
        raise RunError(
            f"{run / 'checkpoints'}: none of the {len(checkpoints)} checkpoints can be read; "
            "restore one from a copy, or delete the folder to train from the start"
        )
    return None


def load_checkpoint(path: Path, mesh: "DeviceMesh | None" = None) -> dict[str, Any]:
    """Return the state given to `save_checkpoint`, its tensors on the CPU. Raises RunError if it cannot be read.

    With `mesh`, the tensors of a sharded checkpoint (a folder) are this process's shards; without it, they are whole.
    """
    if path.is_dir():
        from regardant.training.sharded_checkpoints import load_shards  # takes seconds

        return load_shards(path, mesh)
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged archive may raise anything
        raise RunError(f"{path} is not a complete checkpoint ({first_line(error)}); use an earlier one") from error
    if not isinstance(state, dict):
        raise RunError(f"{path} is not a complete checkpoint (it holds {type(state).__name__}); use an earlier one")
    return state


def save_weights(path: Path, weights: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write a state dict as safetensors, with `metadata` in the header. Equal input gives equal bytes.

    The format refuses tensors that share memory, so a tied tensor is stored once, under its first name. The header's
    entry `regardant` is a JSON object of `metadata` and `tied`, which maps each other name to the first one.
    """
    first_name: dict[tuple[object, ...], str] = {}
    tied: dict[str, str] = {}
    for name, tensor in weights.items():
        if (place := _place(tensor)) in first_name:
            tied[name] = first_name[place]
        else:
            first_name[place] = name
    # Copies, so that views of shared memory (a slice, the flat weights of a recurrent layer) can be stored.
    stored = {
        name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in weights.items() if name not in tied
    }
    # One entry, since the library writes several in random order.
    header = {_HEADER: json.dumps({**metadata, "tied": tied})}
    _clear(path.parent, path.name)
    with replacing(path) as part:
        try:
            save_file(stored, part, metadata=header)
        except SafetensorError as error:  # of a full disk
            raise OSError(first_line(error)) from error


def load_weights(path: Path) -> dict[str, Tensor]:
    """Return the weights given to `save_weights`, on the CPU, where tied names share a tensor.

    Raises RunError if they cannot be read.
    """
    try:
        with safe_open(path, framework="pt") as file:
            weights: dict[str, Tensor] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            header = json.loads((file.metadata() or {}).get(_HEADER, "{}"))
        return weights | {name: weights[stored] for name, stored in header.get("tied", {}).items()}
    except FileNotFoundError as error:
        raise RunError(f"{path} is not there; has the run saved a model yet?") from error
    except Exception as error:  # a damaged header may raise anything
        raise RunError(f"{path} is not a complete safetensors file ({first_line(error)}); restore it") from error


def load_into(model: nn.Module, path: Path, parts: Sequence[str] | None = None) -> None:
    """Load the weights in `path` into `model`, or into its submodules named `parts`.

    A model may map prefixes of its parameters' names in earlier versions to today's: `former_names`. A tied tensor may
    have any one of its names in the file.

    Raises RunError and leaves the model as it is unless names and shapes agree.
    """
    weights = _of_parts(_renamed(load_weights(path), model), parts)
    own = _of_parts(model.state_dict(), parts)
    given = {_place(own[name]) for name in weights if name in own}
    problems = {
        "missing": [name for name in own if name not in weights and _place(own[name]) not in given],
        "unexpected": [name for name in weights if name not in own],
        "of another shape": [n for n in own if n in weights and own[n].shape != weights[n].shape],
        "of another type": [n for n in own if n in weights and own[n].dtype != weights[n].dtype],
    }
    if any(problems.values()):
        found = "; ".join(f"{problem}: {_some(names)}" for problem, names in problems.items() if names)
        fitted = "this model" if parts is None else f"{', '.join(parts)} of this model"
        raise RunError(f"{path} does not fit {fitted} ({found}); use the configuration it was trained with")
    model.load_state_dict(weights, strict=False)


def _place(tensor: Tensor) -> tuple[object, ...]:
    """Return a key that is equal for all names of one tensor."""
    return tensor.device, tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype


def _of_parts(weights: dict[str, Tensor], parts: Sequence[str] | None) -> dict[str, Tensor]:
    return {name: one for name, one in weights.items() if parts is None or name.partition(".")[0] in parts}


def _renamed(weights: dict[str, Tensor], model: nn.Module) -> dict[str, Tensor]:
    former: Mapping[str, str] = getattr(model, "former_names", {})
    own = model.state_dict().keys()
    if not former or weights.keys() == own:
        return weights

    def name_now(name: str) -> str:
        for prefix, now in former.items():
            if name.startswith(prefix):
                return now + name.removeprefix(prefix)
        return name

    return {name_now(name): tensor for name, tensor in weights.items()}


def _clear_checkpoints(folder: Path) -> None:
    """Delete the unfinished checkpoints of any update that a kill left behind, files and folders."""
    _clear(folder, "*")
    for left in folder.glob(f"update-*{PART}"):
        shutil.rmtree(left, ignore_errors=True)


def _clear(folder: Path, name: str) -> None:
    """Delete unfinished files of a name that a kill left behind. Only the holder of the folder's lock writes them."""
    for left in folder.glob(f"{name}.*{PART}"):
        left.unlink(missing_ok=True)


def _checkpoints(run: Path) -> list[Path]:
    name = f"update-{'[0-9]' * 8}"
    return sorted([*(run / "checkpoints").glob(f"{name}.pt"), *(run / "checkpoints").glob(name)])


def _is_whole(path: Path) -> bool:
    """Return whether all checksums of a checkpoint are right and torch can open it (memory-mapped, without reading)."""
    if path.is_dir():
        from regardant.training.sharded_checkpoints import is_whole

        return is_whole(path)
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.testzip() is not None:
                return False
        return isinstance(torch.load(path, map_location="cpu", weights_only=True, mmap=True), dict)
    except Exception:  # a damaged archive may raise anything
        return False


def _some(names: list[str], shown: int = 3) -> str:
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more
