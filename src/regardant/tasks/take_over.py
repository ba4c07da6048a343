"""Training that starts from an earlier run: from its whole model, or from parts of it with all else fresh.

The whole model is that of a run of the same task. Parts (`training.parts`) are submodules, such as `input`, `encoder`
and `head`, which the models of both runs have by the same name; their tasks may differ.
"""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch

from regardant.config.did_you_mean import did_you_mean
from regardant.config.differences import differences, restricted
from regardant.config.run_files import WEIGHTS
from regardant.errors import ConfigError, RunError
from regardant.models import EncoderConfig, Model
from regardant.tasks.base import TaskConfig
from regardant.training.checkpoints import latest_checkpoint, load_into
from regardant.training.config import TrainingConfig
from regardant.training.devices import require_memory
from regardant.training.lora import adapt

BuiltModel = TypeVar("BuiltModel", bound=Model)

DROPOUT_SMOOTHING_AND_CHECKPOINTING = {
    "dropout",
    "embedding_dropout",
    "feed_forward_dropout",
    "attention_dropout",
    "label_smoothing",
    "z_loss",
    "activation_checkpointing",
}
"""Fields of a model and its head that may differ from the earlier run's: no weight depends on them."""

VOCABULARY_SECTIONS = ("tokenizer", "input", "first", "second")
"""Sections of a recipe that decide how items become elements: those of the earlier run, with its vocabulary."""

MODEL_SECTIONS = ("model", "head")
"""Sections of a recipe that describe the model."""

STACKS = ("encoder", "decoder")
"""Parts of a model that do not depend on the vocabulary."""

TOWERS = ("first", "second")
"""Parts of a model that compares two inputs: each is a model of its own."""

INPUT_FIELDS = {"d_model", "embedding_size", "positions", "scale_embeddings", "embedding_norm"}
"""Fields of a model's configuration that its representations depend on."""

HEAD_AND_LENGTH_FIELDS = {"kind", "preset", "max_length", "tie_embeddings"}
"""Fields of a model's configuration that representations and stacks depend on in names and shapes alone."""


def take_over(config: TaskConfig, earlier: TaskConfig) -> TaskConfig:
    """Return a configuration with the sections that it takes over from the run in `training.from`.

    Raises ConfigError if the two do not agree.
    """
    parts = config.training.parts
    if parts is not None:
        inherited = _agreed(config, earlier, VOCABULARY_SECTIONS if _needs_vocabulary(parts) else ())
        config = _with_model_of(config, earlier)
        _require_like_parts(config, earlier, parts)
        return config.model_copy(update=inherited)
    if earlier.task != config.task:
        raise ConfigError(
            f"training.from {config.training.start_from} is a run of {earlier.task}: give one of {config.task}, or "
            "name the parts to take over, as in training.parts=[input, encoder]"
        )
    return config.model_copy(update=_agreed(config, earlier, (*MODEL_SECTIONS, *VOCABULARY_SECTIONS)))


def run_of_vocabulary(training: TrainingConfig) -> Path | None:
    """Return the earlier run whose vocabulary is taken over, if there is one."""
    if training.start_from is None or not _needs_vocabulary(training.parts):
        return None
    return Path(training.start_from)


def copy_files(names: Sequence[str], earlier: Path, run: Path) -> None:
    """Copy files of the earlier run into a run folder. Raises RunError for one that is not there."""
    for name in names:
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        try:
            source = (earlier / name).open("rb")
        except OSError as error:
            raise RunError(f"training.from {earlier}: {name} cannot be read ({error.strerror}): restore it") from error
        with source, (run / name).open("wb") as copy:
            shutil.copyfileobj(source, copy)


def require_same_files(names: Sequence[str], training: TrainingConfig, run: Path) -> None:
    """Raise ConfigError if a head is taken over and a file that names its answers differs from the earlier run's."""
    if training.start_from is None or (training.parts is not None and "head" not in training.parts):
        return
    for name in names:
        earlier = Path(training.start_from) / name
        if earlier.is_file() and earlier.read_bytes() != (run / name).read_bytes():
            raise ConfigError(
                f"training.from {training.start_from}: its {name} differs from that of this data, so its head does not "
                "fit: take over the other parts, as in training.parts=[input, encoder]"
            )


def load_earlier(model: Model, training: TrainingConfig, run: Path) -> None:
    """Load the weights that a model takes over from the earlier run, unless `run` has a checkpoint, which holds them.

    Raises ConfigError for an unknown part, RunError for weights that do not fit.
    """
    if training.start_from is None or latest_checkpoint(run) is not None:
        return
    known = dict(model.named_children())
    for part in training.parts or ():
        if part not in known:
            raise ConfigError(f"training.parts: given {part!r}; allowed: {', '.join(known)}{did_you_mean(part, known)}")
    load_into(model, Path(training.start_from) / WEIGHTS, training.parts)


def with_first_weights(build: Callable[[], BuiltModel], config: TaskConfig, run: Path) -> BuiltModel:
    """Return a model with the initial weights of a run: drawn from the seed, or the earlier run's if taken over.

    Raises OutOfMemory for a model that does not fit into memory, and errors as `load_earlier` and `freeze`.
    """
    require_memory(build)
    torch.manual_seed(config.seed)
    model = build()
    training = config.training
    load_earlier(model, training, run)
    if training.lora is not None:
        adapt(model, training.lora, training.parts or [name for name, _ in model.named_children()])
    freeze(model, training.frozen)
    return model


def freeze(model: Model, parts: Sequence[str]) -> None:
    """Freeze parts of a model. Raises ConfigError for an unknown part, and if no weight is left to train."""
    known = dict(model.named_modules())
    for part in parts:
        if not part or part not in known:
            children = ", ".join(name for name, _ in model.named_children())
            near = did_you_mean(part, known)
            raise ConfigError(f"training.frozen: given {part!r}; allowed: {children} and parts of these{near}")
        known[part].requires_grad_(False)
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ConfigError(f"training.frozen: {', '.join(parts)} are the whole model: leave a part to train")


def _needs_vocabulary(parts: Sequence[str] | None) -> bool:
    return parts is None or not set(parts) <= set(STACKS)


def _agreed(config: TaskConfig, earlier: TaskConfig, names: Sequence[str]) -> dict[str, Any]:
    """Return sections of the earlier run, with dropout and the like as given. Raises ConfigError for other changes."""
    names = [name for name in names if hasattr(earlier, name) and hasattr(config, name)]
    sections = {name: getattr(config, name) for name in names if name in config.model_fields_set}
    given = {name: section.model_dump(exclude_unset=True) for name, section in sections.items()}
    free = {
        name: {field: value for field, value in section.items() if field in DROPOUT_SMOOTHING_AND_CHECKPOINTING}
        for name, section in given.items()
    }
    asked = {
        name: {field: value for field, value in section.items() if not _is_open(field, value)}
        for name, section in given.items()
    }
    if differing := differences(restricted(earlier.model_dump(), asked), asked):
        raise ConfigError(
            f"training.from {config.training.start_from} has other settings ({'; '.join(differing)}): leave these out"
        )
    return {name: getattr(earlier, name).model_copy(update=free.get(name, {})) for name in names}


def _with_model_of(config: TaskConfig, earlier: TaskConfig) -> TaskConfig:
    """Return a configuration with the earlier run's model, if it is of the same kind and the recipe sets no field that
    weights depend on.

    `tie_embeddings` of an encoder has its default, since the heads may differ.
    """
    own = config.model
    given_fields = own.model_fields_set - {"kind"} if "model" in config.model_fields_set else set()
    if type(earlier.model) is not type(own) or not given_fields <= DROPOUT_SMOOTHING_AND_CHECKPOINTING:
        return config
    changed: dict[str, Any] = {}
    if isinstance(own, EncoderConfig) and "tie_embeddings" in type(own).model_fields:
        changed["tie_embeddings"] = type(own).model_fields["tie_embeddings"].default
    changed |= {name: getattr(own, name) for name in given_fields}
    return config.model_copy(update={"model": earlier.model.model_copy(update=changed)})


def _is_open(field: str, value: Any) -> bool:
    return field in DROPOUT_SMOOTHING_AND_CHECKPOINTING or value == "auto"


def _require_like_parts(config: TaskConfig, earlier: TaskConfig, parts: Sequence[str]) -> None:
    own, other = config.model.model_dump(), earlier.model.model_dump()
    shared = own.keys() & other.keys() - DROPOUT_SMOOTHING_AND_CHECKPOINTING - HEAD_AND_LENGTH_FIELDS
    shared -= {*STACKS, *TOWERS} - set(parts)
    if set(parts).isdisjoint((*STACKS, *TOWERS)):
        shared &= INPUT_FIELDS
    both = [{name: section[name] for name in shared} for section in (other, own)]
    if differing := differences(*both, path="model"):
        raise ConfigError(
            f"training.from {config.training.start_from} differs in {', '.join(parts)} ({'; '.join(differing)}): make "
            "the settings agree, or leave the part out of training.parts"
        )
