"""A run folder is the only handle: train into it, load it, use what it has become, compare it with others.

What is learned, and what a run can be asked for, is its task's to say (`regardant.tasks`).

RUN/run.yaml             what was asked, what it became, what was decided by measuring, the data's fingerprints
RUN/tokenizer.json       the vocabularies
RUN/model.safetensors    the best weights so far
RUN/metrics.jsonl        every number of training
RUN/checkpoints/         what resuming needs
RUN/data/                the text and its tokens
RUN/evaluation/          scores, and what they are of
RUN/measures/            its attention in numbers
RUN/engines/             the model as other programs decode it
"""

import platform
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
import yaml

from regardant import __version__
from regardant import config as configuration
from regardant.checks.doctor import Diagnosis, examine
from regardant.checks.doctor.case import Case
from regardant.config import Config
from regardant.config.differences import differences
from regardant.config.documents import Dumper
from regardant.config.plugins import import_plugins
from regardant.config.problems import did_you_mean
from regardant.errors import ConfigError, RunError
from regardant.planning.compilation import compiled
from regardant.planning.decisions import Decisions, use_kernel
from regardant.planning.plan import Plan, plan_run
from regardant.tasks import load_recipe, task_named
from regardant.tasks.base import Log, Prediction, Prepared, Report, TaskConfig, Trained
from regardant.tasks.take_over import take_over
from regardant.training.checkpoints import write_atomically
from regardant.training.config import TrainingConfig
from regardant.training.devices import bound_kernel_cache, keep_freed_memory, make_fabric, memory_guard, the_device
from regardant.training.engine import Outcome, Trainer
from regardant.training.processes import Group, join, lead
from regardant.training.reporting import read_events
from regardant.training.run_folder import UNFINISHED, clear_start, locked, names_in, require_free

if TYPE_CHECKING:
    from regardant.tasks.language_modelling.language_model import LanguageModel
    from regardant.tasks.measures import Measures
    from regardant.tasks.translation.inspection import Inspection
    from regardant.tasks.translation.trained import TrainedTranslator
    from regardant.tasks.translation.translator import Translation, Translator

BUDGET = ("max_minutes", "max_updates", "max_epochs", "patience", "keep_checkpoints", "checkpoint_minutes")
"""Of training: what may change between the start of a run and its resume."""

FOLLOW = """import sys
from pathlib import Path
from regardant.run import follow
folder, *modules, rank, size, store = sys.argv[1:]
follow(Path(folder), int(rank), int(size), store, modules)
"""
"""What the other processes of a training run, with the folder, plugins, and what `lead` adds."""


@dataclass(frozen=True)
class Record:
    """What run.yaml holds."""

    asked: dict[str, Any]
    """The configuration as the user gave it, and the defaults of what this version knows beside."""
    config: TaskConfig
    """With everything chosen."""
    decided: Decisions
    fingerprints: dict[str, str]
    plan: dict[str, Any]

    def write(self, run: Path) -> None:
        """Put it into the run folder."""
        content = {
            "regardant": __version__,
            "versions": {"python": platform.python_version(), "torch": str(torch.__version__)},
            "asked": self.asked,
            "config": self.config.model_dump(mode="json", by_alias=True),
            "decided": self.decided.as_dict(),
            "fingerprints": self.fingerprints,
            "plan": self.plan,
        }
        write_atomically(run / "run.yaml", yaml.dump(content, Dumper=Dumper, sort_keys=False, allow_unicode=True))

    @classmethod
    def read(cls, run: Path) -> "Record":
        """What a run folder says of itself. Raises RunError where it is no whole run."""
        if not run.is_dir():
            near = did_you_mean(run.name, names_in(run.parent))
            raise RunError(f"there is no run {run}{near or ': give a folder that `regardant train` has made'}")
        if not (run / "run.yaml").is_file():
            raise RunError(f"{run} is no run, or half written (no run.yaml): train into it first")
        try:
            content, origin = configuration.read_yaml(run / "run.yaml"), str(run / "run.yaml")
            return cls(
                asked=load_recipe(content["asked"], origin=origin).model_dump(mode="json", by_alias=True),
                config=load_recipe(content["config"], origin=origin),
                decided=Decisions.from_dict(content["decided"]),
                fingerprints=content["fingerprints"],
                plan=content["plan"],
            )
        except ConfigError as error:
            raise ConfigError("; ".join(line.strip() for line in str(error).splitlines())) from error
        except KeyError as error:
            raise RunError(f"{run / 'run.yaml'} is damaged (no {error}): restore it or train anew") from error
        except (TypeError, ValueError) as error:
            raise RunError(f"{run / 'run.yaml'} is damaged ({error}): restore it or train anew") from error


class Run:
    """A trained model and all that belongs to it. What it can do is its task's to say."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.record = Record.read(folder)
        self.config = self.record.config

    @cached_property
    def trained(self) -> Trained:
        """What the run has become, by its task: a `TrainedTranslator`, a `LanguageModel`, ..."""
        keep_freed_memory()
        trained = task_named(self.config.task).open(self.config, self.folder, the_device())
        use_kernel(trained.model, self.record.decided.kernel)
        return trained

    def translate(
        self, lines: Sequence[str], *, prefixes: Sequence[str] | None = None, engine: str = "torch", **generation: Any
    ) -> "list[Translation]":
        """A translation a line; `generation` of the recipe says what may be given, as beam_size=5, nbest=3."""
        return self.translation.translate(lines, prefixes=prefixes, engine=engine, **generation)

    def export(self, to: str, folder: Path, quantization: str = "int8") -> None:
        """Write the model to a new folder in another program's format: `ctranslate2`."""
        self.translation.export(to, folder, quantization)

    def generate(self, prompt: str, *, samples: int = 1, seed: int = 0, **generation: Any) -> list[str]:
        """Texts that go on from the prompt, without it; more may be given as for `translate`: temperature=0.8, ..."""
        return self.language_model.generate(prompt, samples=samples, seed=seed, **generation)

    def inspect(self, text: str, target: str | None = None, **generation: Any) -> "Inspection":
        """What the model does with a sentence and its translation: its own one, if none is given."""
        return self.translation.inspect(text, target, **generation)

    def measure(self, *, data: Sequence[Path] = (), treebank: Path | None = None) -> "Measures":
        """Its attention in numbers, over validation data or that in files. All is kept in RUN/measures."""
        return self.trained.measure(data, treebank)

    def stream(self, prompt: str, *, sample: int = 0, seed: int = 0, **generation: Any) -> Iterator[str]:
        """The prompt and the text that `generate` goes on with as that sample, piece by piece as it is drawn."""
        return self.language_model.stream(prompt, sample=sample, seed=seed, **generation)

    def score(self, *texts: Any) -> Any:
        """How probable given texts are. Of a translator (sources, targets): log-probabilities in nats. Of a language
        model (text): its TextScore."""
        self._require("score")
        return (
            self.translation.score(*texts) if self.config.task == "translation" else self.language_model.score(*texts)
        )

    def evaluate(self, *, data: Sequence[Path] = (), **options: Any) -> dict[str, dict[str, Any]]:
        """Scores by name of the test set: the run's own ones, or that in files. All is kept in RUN/evaluation."""
        return self.trained.evaluate(data, **options)

    def doctor(self) -> Diagnosis:
        """The debugging checklist: what is wrong with the run, finished or not, with the evidence and a cure."""
        events, record = read_events(self.folder / "metrics.jsonl"), self.record
        return examine(Case(self.config, record.decided, record.plan, events, lambda: self.trained))

    def generation(self, **fields: Any) -> Config:
        """The recipe's way to write, with those fields replaced that are not None."""
        return (
            self.translation.generation(**fields)
            if "translate" in self.config.verbs
            else self.language_model.generation(**fields)
        )

    @property
    def translation(self) -> "TrainedTranslator":
        """The trained translator. Raises RunError for a run of another task."""
        self._require("translate")
        return cast("TrainedTranslator", self.trained)

    @property
    def language_model(self) -> "LanguageModel":
        """The trained language model. Raises RunError for a run of another task."""
        self._require("generate")
        return cast("LanguageModel", self.trained)

    @property
    def translator(self) -> "Translator":
        """The model of a translation run, ready to translate."""
        return self.translation.translator

    def predict(self, items: Sequence[str], **options: Any) -> list[Prediction]:
        """Return the answers to items: texts, or paths of files where items are no text."""
        return self.trained.predict(items, **options)

    def _require(self, verb: str) -> None:
        _require_verb(self.folder, self.config, verb)


def load(folder: str | Path, plugins: Sequence[str] = ()) -> Run:
    """Open a run folder; `plugins` are modules that add what its recipe names. Raises RunError where it is no run."""
    import_plugins(plugins)
    return Run(Path(folder))


def plan(config: TaskConfig, folder: Path, log: Log) -> tuple[Prepared, Decisions, Plan]:
    """Prepare a run and measure what it will cost, up to and with a dry run of the largest batch."""
    return _plan(_taken_over(config), folder, log)


def _plan(config: TaskConfig, folder: Path, log: Log) -> tuple[Prepared, Decisions, Plan]:
    prepared = _prepare(config, folder, log)
    return prepared, *plan_run(prepared, the_device(), log)


def _prepare(config: TaskConfig, folder: Path, log: Log) -> Prepared:
    keep_freed_memory()
    bound_kernel_cache()
    with memory_guard("the corpus with its model", "set data.cleaning.drop_duplicates=false, or take a smaller model"):
        prepared = task_named(config.task).prepare(config, folder, log)
        prepared.job.model.to(the_device())
    return prepared


def train(config: TaskConfig, folder: str | Path, log: Log = print) -> Outcome:
    """Train into a folder, or go on with what is there. Ends bit-equal to a run that was never interrupted."""
    folder = Path(folder)
    continued = config
    if not (folder / "run.yaml").is_file():
        continued = _taken_over(config)
        require_free(folder)
    with locked(folder):
        if (folder / "run.yaml").is_file():
            return _resume(config, folder, log)
        return _begin(config, continued, folder, log)


def _begin(config: TaskConfig, continued: TaskConfig, folder: Path, log: Log) -> Outcome:
    clear_start(folder)
    prepared, decisions, planned = _plan(continued, folder, log)
    for line in planned.lines():
        log(line)
    record = Record(
        asked=config.model_dump(mode="json", by_alias=True),
        config=prepared.config,
        decided=decisions,
        fingerprints=prepared.fingerprints,
        plan=planned.as_dict(),
    )
    record.write(folder)
    (folder / UNFINISHED).unlink()
    return _fit(prepared, decisions, folder)


def _taken_over(config: TaskConfig) -> TaskConfig:
    """Return a configuration with all that it takes over from the run that training starts from, if there is one."""
    if config.training.start_from is None:
        return config
    return take_over(config, Record.read(Path(config.training.start_from)).config)


def _resume(config: TaskConfig, folder: Path, log: Log) -> Outcome:
    record = Record.read(folder)
    if config.training.best_by is None:  # earlier versions recorded the metric that was the default
        training = config.training.replaced(best_by=record.asked["training"]["best_by"])
        config = config.model_copy(update={"training": training})
    asked = config.model_dump(mode="json", by_alias=True)
    if changed := differences(record.asked, asked, but={f"training.{name}" for name in BUDGET}):
        raise ConfigError(f"{folder} was begun with other settings ({'; '.join(changed)}): give another --out")
    resolved = record.config.model_copy(update={"training": _with_budget(record.config.training, config.training)})
    prepared = _prepare(resolved, folder, log)
    if prepared.fingerprints != record.fingerprints:
        raise RunError(f"the text is not what {folder} was begun with: restore it, or give another --out")
    log(f"as decided at the start: {record.decided.summary()}")
    resolved = prepared.with_speed(record.plan["tokens_per_second"], log)
    if (asked, resolved) != (record.asked, record.config):
        replace(record, asked=asked, config=resolved).write(folder)
    return _fit(prepared, record.decided, folder)


def _with_budget(recorded: TrainingConfig, asked: TrainingConfig) -> TrainingConfig:
    """What a run was begun with, and how long it shall go on; minutes that were chosen stay chosen."""
    budget = {name: getattr(asked, name) for name in BUDGET}
    if asked.max_minutes == "auto" and not (asked.max_updates or asked.max_epochs):
        budget["max_minutes"] = recorded.max_minutes or "auto"
    return recorded.replaced(**budget)


def _fit(prepared: Prepared, decisions: Decisions, folder: Path) -> Outcome:
    decisions.apply(prepared.job.model)
    follower = [sys.executable, "-c", FOLLOW, str(folder), *_modules_of(prepared.config)]
    with lead(decisions.processes, follower) as group:
        return _trainer(prepared, decisions, folder, group).fit()


def follow(folder: Path, rank: int, size: int, store: str, modules: Sequence[str]) -> None:
    """Be one of the processes of a training that another one leads."""
    import_plugins(modules)
    record = Record.read(folder)
    prepared = _prepare(record.config, folder, lambda line: None)
    record.decided.apply(prepared.job.model)
    _trainer(prepared, record.decided, folder, join(rank, size, store)).follow()


def _trainer(prepared: Prepared, decisions: Decisions, folder: Path, group: Group) -> Trainer:
    config = prepared.config
    trainer = Trainer(
        prepared.job,
        config.training,
        folder,
        fabric=make_fabric(decisions.precision),
        dropout_key=prepared.job.model.dropout_key,
        seed=config.seed,
        group=group,
    )
    if decisions.compiled:
        trainer.model = compiled(trainer.model)
    return trainer


def _modules_of(config: Config) -> list[str]:
    """Where the classes of a configuration come from that are none of the package's."""
    parts = [value for _, value in config if isinstance(value, Config)]
    own = [] if type(config).__module__.startswith("regardant.") else [type(config).__module__]
    return sorted({*own, *(module for part in parts for module in _modules_of(part))})


def compare(folders: Sequence[Path], page: Path | None = None) -> Report:
    """Evaluated runs side by side, held to the first and scored as its recipe says; writes a page if given a place.

    Raises ConfigError for runs that make no comparison, RunError for one that is not whole or not evaluated.
    """
    if len(folders) < 2:
        raise ConfigError(f"{', '.join(map(str, folders))} alone makes no comparison: give two runs or more")
    places = [folder.resolve() for folder in folders]
    for number, folder in enumerate(folders):
        if places[number] in places[:number]:
            raise ConfigError(f"{folder} was given twice: give each run once")
    records = {folder: Record.read(folder) for folder in folders}
    first = records[folders[0]].config
    for folder, record in records.items():
        _require_verb(folder, record.config, "compare")
        if record.config.task != first.task:
            raise ConfigError(
                f"{folders[0]} is a run of {first.task}, {folder} of {record.config.task}: give runs of one"
            )
    report = task_named(first.task).compare({folder: (one.config, one.plan) for folder, one in records.items()})
    if page is not None:
        write_atomically(page, report.page())
    return report


def _require_verb(folder: Path, config: TaskConfig, verb: str) -> None:
    if verb not in config.verbs:
        known = ", ".join((*config.verbs, "predict"))
        raise RunError(f"{folder} is a run of {config.task}, which has no {verb}: it has {known}")
