"""Times of training steps that runs of this machine share, for models and batches of the same shapes.

See docs/decisions/0004.
"""

import hashlib
import json
import math
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Self

import torch
from platformdirs import user_cache_path
from pydantic import BaseModel, Field, ValidationError
from torch import Tensor

from regardant.errors import RunError
from regardant.files import write_atomically
from regardant.layers.products import PROCESSORS
from regardant.tasks.base import Log, TaskJob

VARIABLE = "REGARDANT_CACHE"
"""Environment variable with the folder of the times. Empty: no times are kept or reused. Not set: the user's cache."""


class _Content(BaseModel):
    """A file of times."""

    measured_for: dict[str, Any]
    """The machine, the model and the batch that the times hold for."""
    seconds: dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]]


@dataclass(frozen=True)
class StepTimes:
    """Seconds of a training step by candidate, as earlier runs of this machine measured them for the same shapes."""

    path: Path | None
    """None: the times are not kept."""
    measured_for: dict[str, Any]
    seconds: Mapping[str, float]

    @classmethod
    def of(cls, job: TaskJob) -> Self:
        """Return the times for the model and the median batch of a job. A damaged file counts as missing."""
        folder = os.environ.get(VARIABLE)
        if folder == "":
            return cls(None, {}, {})
        measured_for = _measured_for(job)
        name = hashlib.sha256(json.dumps(measured_for, sort_keys=True).encode()).hexdigest()[:32]
        path = Path(folder) if folder else user_cache_path("regardant")
        path = path / "steps" / f"{name}.json"
        try:
            found = _Content.model_validate_json(path.read_bytes()).seconds
        except (OSError, ValidationError):
            found = {}
        return cls(path, measured_for, found)

    def hold(self, seconds: Mapping[str, float]) -> bool:
        """Return whether all times of a run are those of an earlier one."""
        return seconds.items() <= self.seconds.items()

    def keep(self, seconds: Mapping[str, float], log: Log) -> None:
        """Keep the times of a run for later ones, or say that they are those of an earlier one."""
        if self.path is None or not seconds:
            return
        if self.hold(seconds):
            log(f"ways of computing a step were timed by an earlier run: delete {self.path} to time them again")
            return
        content = _Content(measured_for=self.measured_for, seconds={**self.seconds, **seconds})
        try:
            write_atomically(self.path, content.model_dump_json())
        except RunError as error:
            log(f"these times are not kept for later runs: {error}")


def _measured_for(job: TaskJob) -> dict[str, Any]:
    """Return what the time of a step depends on, but for the candidate."""
    batch = job.load(job.batches.median_batch())
    return {
        "versions": [version("regardant"), str(torch.__version__)],
        "machine": [_processor(), torch.backends.cpu.get_cpu_capability(), torch.get_num_threads()],
        "task": job.config.task,
        "model": job.config.model.model_dump(mode="json", by_alias=True),
        "parameters": [[name, *one.shape, one.requires_grad] for name, one in job.model.named_parameters()],
        "batch": _sizes(batch),
    }


def _sizes(value: Any) -> Any:
    """Return a batch with the sizes of its tensors in their place, in quarters of a doubling: batches of the same data
    in another order differ by less."""
    if isinstance(value, Tensor):
        return [round(4 * math.log2(max(size, 1))) for size in value.shape]
    if is_dataclass(value):
        return {field.name: _sizes(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): _sizes(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_sizes(one) for one in value]
    return None


def _processor() -> str:
    """Return the name of the processor, with its family and model: processors of one name are of several kinds."""
    wanted = ("model name", "cpu family", "model")
    try:
        lines = PROCESSORS.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return ", ".join(named[name] for name in wanted if name in named) or platform.processor() or platform.machine()
