"""Training into a run folder: planning, starting, resuming, and following rank 0 as another process."""

import sys
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from regardant.config.differences import differences
from regardant.config.plugins import modules_of
from regardant.config.run_files import RECORD, WEIGHTS
from regardant.errors import ConfigError, RunError
from regardant.planning.compilation import compiled
from regardant.planning.plan import Plan, plan_run
from regardant.planning.probes import Decisions, require_one_on_accelerator
from regardant.planning.shapes import ModelShapes, shapes_of_job, shapes_without_data
from regardant.run.fingerprints import data_fingerprints, fingerprints_of, is_data, of_model, require_unchanged
from regardant.run.folder import IMPORTED, UNFINISHED, Record, clear_start, locked, named_full_disk, require_free
from regardant.tasks import task_named
from regardant.tasks.base import Log, Prepared, TaskConfig
from regardant.tasks.take_over import take_over
from regardant.training.config import Strategy, TrainingConfig
from regardant.training.cursor import Outcome
from regardant.training.devices import (
    NO_BFLOAT16,
    bound_kernel_cache,
    keep_freed_memory,
    memory_guard,
    multiplies_bfloat16,
    return_freed_memory,
    the_device,
)
from regardant.training.engine import Trainer, require_divisible
from regardant.training.processes import Group, joined, launched_rank, started
from regardant.training.trackers import require_trackers

CHANGEABLE = (
    *("max_minutes", "max_updates", "max_epochs", "patience"),
    *("keep_checkpoints", "checkpoint_minutes", "trackers"),
    *("processes", "strategy"),
)
"""Fields of `training` that may change between the start of a run and its resume."""


def plan(config: TaskConfig, folder: Path, log: Log) -> tuple[Prepared, Decisions, Plan]:
    """Prepare a run and measure its cost, up to and including a dry run of the largest batch."""
    return _plan(taken_over(config), folder, log)


def shapes(config: TaskConfig, log: Log) -> ModelShapes:
    """Return the modules of a recipe's model with their shapes. Data is read only if the shapes of the model depend on
    it."""
    config = taken_over(config)
    if (found := shapes_without_data(config)) is not None:
        return found
    with TemporaryDirectory(prefix="regardant-shapes-") as folder:
        return shapes_of_job(_prepare(config, Path(folder), log).job, the_device())


def _plan(config: TaskConfig, folder: Path, log: Log, processes: int | None = None) -> tuple[Prepared, Decisions, Plan]:
    """Prepare a run and measure its cost. `processes` is the number of processes that torchrun has started."""
    prepared = _prepare(config, folder, log)
    if processes is not None:
        require_divisible(prepared.job, accumulate=config.training.accumulate, processes=processes)
    return prepared, *plan_run(prepared, the_device(), log, partial(_strategy, prepared), processes or 1)


def _prepare(config: TaskConfig, folder: Path, log: Log) -> Prepared:
    keep_freed_memory()
    bound_kernel_cache()
    with memory_guard("the corpus with its model", "set data.cleaning.drop_duplicates=false, or take a smaller model"):
        with named_full_disk(folder):
            prepared = task_named(config.task).prepare(config, folder, log)
        prepared.job.model.to(the_device())
    return prepared


def train(config: TaskConfig, folder: str | Path, log: Log = print) -> Outcome | None:
    """Train into a folder, or resume the run in it. A resumed run ends bit-equal to an uninterrupted one.

    If torchrun has started this process, it trains together with the others, and rank 0 alone plans, validates and
    reports. Returns None in the other ranks.
    """
    if launched_rank() is None:
        return _lead(config, Path(folder), log, None)
    with joined() as group:
        if group.leads:
            return _lead(config, Path(folder), log, group)
        follow(Path(folder), group)
        return None


def train_in_turn(config: TaskConfig, folder: Path, log: Log) -> Outcome:
    """Train one of several models in turn. Raises RunError if torchrun has started this process."""
    outcome = train(config, folder, log)
    if outcome is None:
        raise RunError(
            "this trains several models in turn, each in processes that it starts itself: run it without torchrun"
        )
    return outcome


def _lead(config: TaskConfig, folder: Path, log: Log, group: Group | None) -> Outcome:
    """Train as rank 0 of a joined group. Without a group, start the decided number of processes."""
    given = config.training.processes
    if group is not None and given not in ("auto", 1, group.size):
        raise ConfigError(f"training.processes: given {given}, and torchrun has started {group.size}: leave it out")
    require_trackers(config.training.trackers)
    continued = config
    if not (folder / RECORD).is_file():
        continued = taken_over(config)
        require_free(folder)
    with locked(folder):
        if (folder / RECORD).is_file():
            return _resume(config, folder, log, group)
        return _begin(config, continued, folder, log, group)


def _of_launched(config: TaskConfig) -> TaskConfig:
    """Return the configuration of a training whose processes torchrun has started: each plans as if it were alone."""
    return config.model_copy(update={"training": config.training.replaced(processes=1)})


def _begin(config: TaskConfig, continued: TaskConfig, folder: Path, log: Log, group: Group | None) -> Outcome:
    clear_start(folder)
    if group is None:
        prepared, decisions, planned = _plan(continued, folder, log)
    else:
        prepared, decisions, planned = _plan(_of_launched(continued), folder, log, group.size)
    for line in planned.lines():
        log(line)
    if group is not None:
        decisions = replace(decisions, processes=group.size)
        log(f"training in {group.size} processes; speed, memory and time above are those of one")
    record = Record(
        asked=config,
        config=prepared.config,
        decided=decisions,
        fingerprints=prepared.fingerprints,
        plan=planned.as_dict(),
        files=data_fingerprints(folder),
    )
    record.write(folder)
    (folder / UNFINISHED).unlink()
    return replace(_fit(prepared, record, folder, group), announced=planned.updates)


def taken_over(config: TaskConfig) -> TaskConfig:
    """Return a configuration with the settings that it takes over from the run of `training.from`, if it names one."""
    if config.training.start_from is None:
        return config
    folder = Path(config.training.start_from)
    earlier = Record.read(folder)
    require_unchanged(folder, of_model(earlier.files))
    return take_over(config, earlier.config)


def _resume(config: TaskConfig, folder: Path, log: Log, group: Group | None) -> Outcome:
    record = Record.read(folder)
    (folder / UNFINISHED).unlink(missing_ok=True)  # a kill may have left it beside a written run.yaml
    if IMPORTED in record.plan:
        raise RunError(f"{folder} was imported, not trained: start a run from it with training.from={folder}")
    begun_with = record.asked.training.best_by
    if config.training.best_by is None and begun_with is not None:  # earlier versions recorded the default's name
        config = config.model_copy(update={"training": config.training.replaced(best_by=begun_with)})
    before, now = (one.model_dump(mode="json", by_alias=True) for one in (record.asked, config))
    if changed := differences(before, now, but={f"training.{name}" for name in CHANGEABLE}):
        raise ConfigError(f"{folder} was begun with other settings ({'; '.join(changed)}): give another --out")
    resolved = record.config.model_copy(update={"training": with_changes(record.config.training, config.training)})
    if group is not None:
        resolved = _of_launched(resolved)
    processes = resumed_processes(record, config.training, the_device()) if group is None else group.size
    prepared = _prepare(resolved, folder, log)
    if prepared.fingerprints != record.fingerprints:
        raise RunError(f"the data is not what {folder} was begun with: restore it, or give another --out")
    decided = record.decided
    log(f"as decided at the start: {decided.summary()}")
    if decided.precision == "bfloat16" and not multiplies_bfloat16(the_device()):
        log(f"{NO_BFLOAT16}: continue on a machine like that of the start")
    if (targets := record.plan.get("validation_targets")) is not None:
        prepared.job.validate_on(targets)  # whatever the budget is now: scores on other data are not comparable
    resolved = prepared.with_speed(record.plan["tokens_per_second"], log)
    require_unchanged(folder, record.files)  # of the weights too: their line is removed before they change
    files = {name: found for name, found in record.files.items() if name != WEIGHTS}
    require_divisible(prepared.job, accumulate=resolved.training.accumulate, processes=processes)
    decided = replace(decided, processes=processes, strategy=_strategy(prepared, processes))
    resumed = replace(record, asked=config, config=resolved, decided=decided, files=files)
    if resumed != record:
        resumed.write(folder)
    announced = record.plan.get("updates") if now == before else None
    return replace(_fit(prepared, resumed, folder, group), announced=announced)


def resumed_processes(record: Record, asked: TrainingConfig, device: torch.device) -> int:
    """Return the number of processes in which a resumed run trains if torchrun has not started any: as given, or as
    decided at the start.

    A run whose processes torchrun has started is resumed in one, unless a number is given: its processes may have been
    those of other machines. So is a run on an accelerator, where ConfigError is raised for several.
    """
    require_one_on_accelerator(asked.processes, device)
    if asked.processes != "auto":
        return asked.processes
    launched = record.config.training.processes == 1 and record.decided.processes > 1
    return 1 if launched or device.type == "cuda" else record.decided.processes


def with_changes(recorded: TrainingConfig, asked: TrainingConfig) -> TrainingConfig:
    """Return the recorded settings with the requested values of those that may change. An automatic `max_minutes` keeps
    the recorded value."""
    changes = {name: getattr(asked, name) for name in CHANGEABLE}
    if asked.max_minutes == "auto" and not (asked.max_updates or asked.max_epochs):
        changes["max_minutes"] = recorded.max_minutes or "auto"
    return recorded.replaced(**changes)


def _fit(prepared: Prepared, record: Record, folder: Path, group: Group | None) -> Outcome:
    decisions = record.decided
    decisions.apply(prepared.job.model)
    follower = [sys.executable, "-m", "regardant.run.follower", str(folder), *modules_of(prepared.config)]
    with started(decisions.processes, follower) if group is None else nullcontext(group) as group:
        group.wait_for_all()  # run.yaml is written: followers may read it
        outcome = _trainer(prepared, decisions, folder, group).fit()
    files = fingerprints_of(folder, task_named(prepared.config.task).files_of(prepared.config))
    replace(record, files=files | {name: one for name, one in record.files.items() if is_data(name)}).write(folder)
    return outcome


def follow(folder: Path, group: Group) -> None:
    """Train as a process that follows rank 0."""
    group.wait_for_all()
    record = Record.read(folder)
    prepared = _prepare(record.config, folder, lambda line: None)
    record.decided.apply(prepared.job.model)
    _trainer(prepared, record.decided, folder, group).follow()


def _strategy(prepared: Prepared, processes: int) -> Strategy:
    """Return the strategy by which processes share the model: as given, or chosen by device and size of the model."""
    training, model = prepared.config.training, prepared.job.model
    if processes == 1:
        return "sum"
    from regardant.training.strategies import chosen_strategy, require_shareable  # imports Fabric, as slow as torch

    if training.strategy == "auto":
        return chosen_strategy(model, training)
    require_shareable(model, training, training.strategy)
    return training.strategy


def _trainer(prepared: Prepared, decisions: Decisions, folder: Path, group: Group) -> Trainer:
    from regardant.training.strategies import make_fabric  # imports Fabric, as slow as torch, for training alone

    group.divide_threads()
    if decisions.strategy == "fsdp":  # fsdp is chosen to save memory
        return_freed_memory()
    config, group = prepared.config, replace(group, strategy=decisions.strategy)
    trainer = Trainer(
        prepared.job,
        config.training,
        folder,
        fabric=make_fabric(decisions.precision, group),
        dropout_key=prepared.job.model.dropout_key,
        seed=config.seed,
        group=group,
    )
    if decisions.compiled:
        trainer.model = compiled(trainer.model)
    group.wait_for_all()
    return trainer
