"""A run folder is the only handle: train into it, load it, translate, evaluate, compare, export.

RUN/run.yaml             what was asked, what it became, what was decided by measuring, the data's fingerprints
RUN/tokenizer.json       both vocabularies
RUN/model.safetensors    the best weights so far
RUN/metrics.jsonl        every number of training
RUN/checkpoints/         what resuming needs
RUN/data/                the text and its tokens
RUN/evaluation/          hypotheses beside sources and references, and their scores
RUN/engines/             the model as other programs decode it
"""

import json
import platform
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
import yaml

from regardant import __version__
from regardant import config as configuration
from regardant.checks.plan import Plan, plan_training, tokens_per_second
from regardant.config.documents import Dumper
from regardant.config.plugins import import_plugins
from regardant.config.problems import did_you_mean
from regardant.data.parallel import MARKER, Pairs, Splits, evaluation_pairs
from regardant.data.readers import first_row, is_table_file
from regardant.errors import ConfigError, RunError
from regardant.generation.config import GenerationConfig
from regardant.tasks.translation.comparison import Comparison, compare_runs
from regardant.tasks.translation.comparison_page import page as comparison_page
from regardant.tasks.translation.config import TranslationConfig
from regardant.tasks.translation.engines import Engines
from regardant.tasks.translation.evaluation import (
    TestSet,
    choose_on_validation,
    evaluate_translator,
    test_sets,
)
from regardant.tasks.translation.pictures import lecture_drawing, lecture_page, lecture_pictures
from regardant.tasks.translation.task import Prepared, load_translator, prepare_training
from regardant.tasks.translation.translator import Translation, Translator
from regardant.training.checkpoints import write_atomically
from regardant.training.config import TrainingConfig
from regardant.training.devices import keep_freed_memory, make_fabric, memory_guard, the_device
from regardant.training.engine import Outcome, Trainer, dry_run
from regardant.training.probes import Decisions, decide, use_kernel

Say = Callable[[str], None]

BUDGET = {"max_minutes", "max_updates", "max_epochs", "patience", "keep_checkpoints", "checkpoint_minutes"}
"""Of training: what may change between the start of a run and its resume."""

UNFINISHED = ".regardant-unfinished"
"""Marks a folder as ours until its run.yaml is there."""

FREE_OF_WEIGHTS = {"dropout", "embedding_dropout", "feed_forward_dropout"}
"""Of a model: what may change where training goes on from an earlier run."""


@dataclass(frozen=True)
class Record:
    """What run.yaml holds."""

    asked: dict[str, Any]
    """The configuration as the user gave it."""
    config: TranslationConfig
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
            near = did_you_mean(run.name, _names_in(run.parent))
            raise RunError(f"there is no run {run}{near or ': give a folder that `regardant train` has made'}")
        if not (run / "run.yaml").is_file():
            raise RunError(f"{run} is no run, or half written (no run.yaml): train into it first")
        try:
            content = configuration.read_yaml(run / "run.yaml")
            return cls(
                asked=content["asked"],
                config=configuration.load(TranslationConfig, content["config"], origin=str(run / "run.yaml")),
                decided=Decisions.from_dict(content["decided"]),
                fingerprints=content["fingerprints"],
                plan=content["plan"],
            )
        except KeyError as error:
            raise RunError(f"{run / 'run.yaml'} is damaged (no {error}): restore it or train anew") from error
        except (TypeError, ValueError) as error:
            raise RunError(f"{run / 'run.yaml'} is damaged ({error}): restore it or train anew") from error


class Run:
    """A trained translator and all that belongs to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.record = Record.read(folder)
        self.config = self.record.config

    @cached_property
    def translator(self) -> Translator:
        """The model, ready to translate."""
        translator = load_translator(self.config, self.folder, the_device())
        use_kernel(translator.model, self.record.decided.kernel)
        return translator

    @cached_property
    def engines(self) -> Engines:
        """The translator by what searches: torch, or an engine that it is exported to."""
        return Engines(self.translator, self.folder / "engines")

    def translate(
        self, lines: Sequence[str], *, prefixes: Sequence[str] | None = None, engine: str = "torch", **generation: Any
    ) -> list[Translation]:
        """A translation a line; see `generation` for what may be given, as beam_size=5, nbest=3."""
        return self.engines.on(engine).translate(lines, self.generation(**generation), prefixes)

    def export(self, to: str, folder: Path, quantization: str = "int8") -> None:
        """Write the model to a new folder in another program's format: `ctranslate2`."""
        self.engines.export(to, folder, quantization)

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[float]:
        """Log-probability of each target given its source, in nats."""
        return self.translator.score(sources, targets)

    def generation(self, **fields: Any) -> GenerationConfig:
        """The recipe's way to write, with some fields replaced; nbest alone widens a beam that is too narrow."""
        changed = {name: value for name, value in fields.items() if value is not None}
        if "nbest" in changed:
            changed.setdefault("beam_size", max(self.config.generation.beam_size, changed["nbest"]))
        return configuration.load(
            GenerationConfig, {**self.config.generation.model_dump(), **changed}, origin="generation"
        )

    def evaluate(
        self, *, data: TestSet | None = None, engine: str = "torch", **generation: Any
    ) -> dict[str, dict[str, Any]]:
        """Scores by name of the test set: the run's own ones, or `data`. Everything is kept in RUN/evaluation."""
        text = self.folder / "data" / "text"
        splits = Splits.load(text) if (text / MARKER).is_file() else None
        if data is None and splits is None:
            raise RunError(f"{self.folder} holds no test text: give some with --data")
        if data is not None and splits is not None and data.name in splits.tests:
            raise ConfigError(f"--data {data.name} has the name of a test set of {self.folder}: rename the file")
        alignment = choose_on_validation(self.translator, text, splits) if splits is not None and not data else None
        tested = [data] if data is not None else test_sets(text, splits) if splits is not None else []
        translator, kept, asked = self.engines.on(engine), self.folder / "evaluation", self.generation(**generation)
        return {
            one.name: evaluate_translator(
                translator, one, kept, generation=asked, metrics=self.config.evaluation, alignment=alignment
            )
            for one in tested
        }


def load(folder: str | Path, plugins: Sequence[str] = ()) -> Run:
    """Open a run folder; `plugins` are modules that add what its recipe names. Raises RunError where it is no run."""
    import_plugins(plugins)
    return Run(Path(folder))


def plan(config: TranslationConfig, folder: Path, say: Say) -> tuple[Prepared, Decisions, Plan]:
    """Prepare a run and measure what it will cost, up to and with a dry run of the largest batch."""
    return _plan(_taken_over(config), folder, say)


def _plan(config: TranslationConfig, folder: Path, say: Say) -> tuple[Prepared, Decisions, Plan]:
    prepared, device = _prepare(config, folder, say), the_device()
    with memory_guard("a batch", "take a smaller model, or lower training.batch_tokens and raise training.accumulate"):
        decisions = _decide(prepared, device)
        decisions.apply(prepared.job.model)  # what is timed and measured next is what will run
        say(decisions.told())
        speed = tokens_per_second(prepared.job, decisions, device)
        resolved = prepared.with_speed(speed, say)
        planned = plan_training(prepared.job, resolved.training, decisions, speed, device)
    return prepared, decisions, planned


def _prepare(config: TranslationConfig, folder: Path, say: Say) -> Prepared:
    keep_freed_memory()
    with memory_guard("the corpus with its model", "set data.cleaning.drop_duplicates=false, or take a smaller model"):
        prepared = prepare_training(config, folder, say)
        prepared.job.model.to(the_device())
    return prepared


def train(config: TranslationConfig, folder: str | Path, say: Say = print) -> Outcome:
    """Train into a folder, or go on with what is there. Ends bit-equal to a run that was never interrupted."""
    folder = Path(folder)
    if (folder / "run.yaml").is_file():
        return _resume(config, folder, say)
    continued = _taken_over(config)
    _claim(folder)
    prepared, decisions, planned = _plan(continued, folder, say)
    for line in planned.lines():
        say(line)
    record = Record(
        asked=config.model_dump(mode="json", by_alias=True),
        config=prepared.config,
        decided=decisions,
        fingerprints=prepared.job.corpus.splits.fingerprints,
        plan=planned.as_dict(),
    )
    record.write(folder)
    (folder / UNFINISHED).unlink()
    return _fit(prepared, decisions, folder)


def _taken_over(config: TranslationConfig) -> TranslationConfig:
    """With the model and the vocabulary of the run that training goes on from, if there is one."""
    if config.training.start_from is None:
        return config
    earlier = Record.read(Path(config.training.start_from)).config
    given = {
        "model": config.model.model_dump(exclude_unset=True, exclude=FREE_OF_WEIGHTS),
        "tokenizer": config.tokenizer.model_dump(exclude_unset=True),
    }
    given = {section: told for section, told in given.items() if section in config.model_fields_set}
    if given.get("model", {}).get("preset") == "auto":
        del given["model"]["preset"]
    if differing := _differences(_as_told(earlier.model_dump(), given), given):
        raise ConfigError(
            f"training.from {config.training.start_from} is another translator ({'; '.join(differing)}): leave that out"
        )
    free = config.model.model_dump(exclude_unset=True, include=FREE_OF_WEIGHTS)
    return config.model_copy(update={"model": earlier.model.model_copy(update=free), "tokenizer": earlier.tokenizer})


def _claim(folder: Path) -> None:
    """Make the folder of a new run. What a start that never came to its run.yaml has left there is made anew."""
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder} is a file, where the folder of a run is needed: give another --out")
    if not (folder / UNFINISHED).is_file() and _names_in(folder):
        raise RunError(f"{folder} is not empty and no run (no run.yaml): give another --out, or remove it")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / UNFINISHED).touch()
    except OSError as error:
        raise RunError(f"{folder} cannot be written ({error.strerror}): give another --out") from error
    shutil.rmtree(folder / "data", ignore_errors=True)
    (folder / "tokenizer.json").unlink(missing_ok=True)


def _names_in(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir()] if folder.is_dir() else []


def _resume(config: TranslationConfig, folder: Path, say: Say) -> Outcome:
    record = Record.read(folder)
    asked = config.model_dump(mode="json", by_alias=True)
    if changed := _differences(record.asked, asked):
        raise ConfigError(f"{folder} was begun with other settings ({'; '.join(changed)}): give another --out")
    resolved = record.config.model_copy(update={"training": _with_budget(record.config.training, config.training)})
    prepared = _prepare(resolved, folder, say)
    if prepared.job.corpus.splits.fingerprints != record.fingerprints:
        raise RunError(f"the text is not what {folder} was begun with: restore it, or give another --out")
    say(f"as decided at the start: {record.decided.told()}")
    resolved = prepared.with_speed(record.plan["tokens_per_second"], say)
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
    config = prepared.config
    fabric = make_fabric(decisions.precision)
    trainer = Trainer(
        prepared.job,
        config.training,
        folder,
        fabric=fabric,
        dropout_key=prepared.job.model.dropout_key,
        seed=config.seed,
    )
    return trainer.fit()


def _decide(prepared: Prepared, device: torch.device) -> Decisions:
    job = prepared.job
    planned = job.batches.middling()
    return decide(job.model, lambda: dry_run(job, planned, device), prepared.config.training, device)


def _as_told(whole: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """Of a configuration what another one tells too."""
    return {
        name: _as_told(kept, told) if isinstance(told, dict) and isinstance(kept, dict) else kept
        for name, told in part.items()
        for kept in [whole.get(name)]
    }


def _differences(before: dict[str, Any], now: dict[str, Any], path: str = "") -> list[str]:
    """What differs between two configurations, the budget aside."""
    found = []
    for name in sorted(before.keys() | now.keys()):
        here = f"{path}{name}"
        old, new = before.get(name), now.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            found += _differences(old, new, f"{here}.")
        elif old != new and here not in {f"training.{field}" for field in BUDGET}:
            found.append(f"{here} was {old!r}, is {new!r}")
    return found


def read_test_set(files: Sequence[Path]) -> TestSet:
    """Pairs to test on, from a source and a target file or from a table, by the name of the first file.

    The table's columns are `source` and `target`, or the two that a .tsv or .csv file without names has.
    """
    if len(files) > 2:
        raise ConfigError(f"--data was given {len(files)} times: give one table, or a source and a target file")
    first = files[0]
    if len(files) == 2:
        pairs = Pairs(source=str(first), target=str(files[1]))
    elif not is_table_file(first):
        raise ConfigError(
            f"--data {first} is no table (.tsv, .csv, .jsonl, .parquet): give a second --data with its translations"
        )
    elif _has_two_nameless_columns(first):
        pairs = Pairs(table=str(first), source="1", target="2")
    else:
        pairs = Pairs(table=str(first), source="source", target="target")
    read = list(evaluation_pairs(pairs, pairs.records(Path())))
    return TestSet(first.name, [source for source, _ in read], [target for _, target in read])


def _has_two_nameless_columns(table: Path) -> bool:
    row = first_row(table)
    return row is not None and len(row) == 2 and set(row) != {"source", "target"}


def compare(folders: Sequence[Path], page: Path | None = None) -> Comparison:
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
    comparison = compare_runs(
        {folder: record.plan for folder, record in records.items()}, records[folders[0]].config.evaluation
    )
    if page is not None:
        write_atomically(page, comparison_page(comparison))
    return comparison


def show_lecture_sentences(folder: Path, say: Say) -> Path:
    """Translate the lectures' two sentences and draw the cross-attention, with the gold links over it."""
    run = load(folder)
    scores = folder / "evaluation" / "test.json"
    if not scores.is_file():
        run.evaluate()
    told = json.loads(scores.read_text(encoding="utf-8"))
    pictures = lecture_pictures(run.translator, run.generation(), told)
    for picture, translation in zip(pictures, run.translate([one.title for one in pictures]), strict=True):
        say(f"{picture.title}\n  {translation.text}")
    write_atomically(folder / "attention.svg", lecture_drawing(pictures[-1]))
    path = folder / "report.html"
    write_atomically(path, lecture_page(pictures, told))
    return path
