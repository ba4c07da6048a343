"""Open run folders: the methods that use a trained model."""

import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch

from regardant.checks.agreement import Agreement, compare_ways
from regardant.checks.agreement.comparison import KeptCase
from regardant.checks.doctor import Diagnosis, examine
from regardant.checks.doctor.case import Case, LeftOut
from regardant.config import Config
from regardant.config.plugins import import_plugins
from regardant.config.run_files import METRICS, WEIGHTS
from regardant.data.item_files import list_item_files, shown_name
from regardant.errors import DataError, RunError
from regardant.files import sha256_of
from regardant.pictures import Answers
from regardant.planning.probes import use_kernel
from regardant.run.fingerprints import evaluation_stamps, of_evaluation, of_model, require_unchanged, write_sums
from regardant.run.folder import Record, require_verb
from regardant.run.overview import overview
from regardant.tasks import task_named
from regardant.tasks.base import Log, Prediction, Trained
from regardant.tasks.evaluated_weights import keep_evaluated_weights
from regardant.tasks.gradients import Gradients, measure_gradients
from regardant.training.devices import keep_freed_memory, memory_guard, the_device
from regardant.training.events import read_events

if TYPE_CHECKING:
    from regardant.run.exporting import Exported
    from regardant.tasks.inspection import Inspection
    from regardant.tasks.language_modelling.language_model import LanguageModel
    from regardant.tasks.language_modelling.tracing import Trace
    from regardant.tasks.measures import Measures
    from regardant.tasks.sentence_embedding.task import SentenceEncoder
    from regardant.tasks.sequence_to_sequence.generator import GeneratedText
    from regardant.tasks.translation.trained import TrainedTranslator
    from regardant.tasks.translation.use.translator import Translator


OPENED, SLACK = 4, 1 << 30
"""Limit of the memory for opening a model: a multiple of the size of its weights, plus a number of bytes."""


class Run:
    """A run folder with its trained model. The task decides which of the methods a run has."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.record = Record.read(folder)
        self.config = self.record.config
        self.opened = ""
        """SHA-256 of the weights of `trained`."""

    @cached_property
    def trained(self) -> Trained:
        """The trained model, as its task opens it: a `TrainedTranslator`, a `LanguageModel`, ..."""
        keep_freed_memory()
        require_unchanged(self.folder, of_model(self.record.files))
        device, weights = the_device(), self.folder / WEIGHTS
        # A run.yaml that was changed may ask for a model that is far larger than its weights.
        most = OPENED * weights.stat().st_size + SLACK if device.type == "cpu" and weights.is_file() else None
        # The parameters may be needed outside an inference mode that the caller is in.
        guard = memory_guard(f"the model of {self.folder}", "restore its run.yaml, which may have been changed", most)
        with guard, torch.inference_mode(False):
            trained = self._open(device)
        use_kernel(trained.model, self.record.decided.kernel)
        return trained

    def translate(
        self, lines: Sequence[str], *, prefixes: Sequence[str] | None = None, engine: str = "torch", **generation: Any
    ) -> "list[GeneratedText]":
        """Return a translation of each line. Any field of the recipe's `generation` may be given: beam_size=5.

        The translation of a line begins with its prefix. Engines are `torch`, `torch-bfloat16`, `ctranslate2` and the
        like, and `auto`: one that is faster than torch and translates the validation text as well.
        """
        translator = self.translator if engine == "torch" else self.translation.on(engine)
        given = self.translation.config.generation
        return Answers(translator.generate(lines, given.replaced(**generation) if generation else given, prefixes))

    def export(
        self, to: str, folder: Path, quantization: str | None = None, *, data: Sequence[Path] = ()
    ) -> "Exported":
        """Write the model to a new folder in the format of another program: `hf` (transformers), `ctranslate2`, `onnx`
        or `torch` (torch.export). Return a comparison with the run on its test set, or on the files `data`."""
        from regardant.run.exporting import export_run

        return export_run(self, to, folder, quantization, data)

    def generate(self, prompt: str, *, samples: int = 1, seed: int = 0, **generation: Any) -> list[str]:
        """Return continuations of the prompt, without the prompt. Any field of the recipe's `generation` may be given:
        temperature=0.8."""
        return self.language_model.generate(prompt, samples=samples, seed=seed, **generation)

    def inspect(self, item: str, target: str | None = None, **options: Any) -> "Inspection":
        """Return the answer to an item, with a record of the activations of the model.

        A translator takes a `target` in place of its own translation.
        """
        return self.trained.inspect(item, target=target, **options)

    def measure(self, *, data: Sequence[Path] = (), treebank: Path | None = None) -> "Measures":
        """Measure attention over the validation data, or over files. The results are kept in RUN/measures."""
        if not data:
            self.require_data()
        return self.trained.measure(data, treebank)

    def gradients(self) -> Gradients:
        """Measure the gradient of the loss by depth and by distance, on a few rows of the validation data. The results
        are kept in RUN/measures."""
        self.require_data()
        found = measure_gradients(self.trained.model, self.trained.probe())
        found.save(self.folder / "measures")
        return found

    def stream(self, prompt: str, *, sample: int = 0, seed: int = 0, **generation: Any) -> Iterator[str]:
        """Yield the prompt, then the text of a sample of `generate`, piece by piece as it is drawn."""
        return self.language_model.stream(prompt, sample=sample, seed=seed, **generation)

    def score(self, *texts: Any) -> Any:
        """Score given texts: return log-probabilities in nats of a translator's (sources, targets), or the TextScore of
        a language model's text. Raises RunError for a run that writes no text."""
        if not hasattr(self.trained, "score"):
            raise RunError(f"{self.folder} is a run of {self.config.task}, which scores no text")
        return self.trained.score(*texts)

    def trace(self, clean: str, corrupted: str) -> "Trace":
        """Find the activations of a language model that carry its answer to a clean text, by activation patching with a
        corrupted text of as many tokens. Raises RunError for a run of another task."""
        if not hasattr(self.trained, "trace"):
            raise RunError(f"{self.folder} is a run of {self.config.task}, and only a language model can be traced")
        return cast("Trace", self.trained.trace(clean, corrupted))

    def evaluate(self, *, data: Sequence[Path] = (), **options: Any) -> dict[str, dict[str, Any]]:
        """Evaluate on the run's test sets, or on files; return scores by test set. They are kept in RUN/evaluation."""
        if not data:
            self.require_data()
        before = evaluation_stamps(self.folder)
        scores = self.trained.evaluate(data, **options)
        keep_evaluated_weights(self.folder, scores, self.opened)
        write_sums(self.folder, before)
        return scores

    def doctor(self) -> Diagnosis:
        """Diagnose the run, finished or not: problems, each with the evidence and a cure. Raises RunError for a damaged
        model."""
        self.require_data()
        events, record = read_events(self.folder / METRICS), self.record
        return examine(Case(self.config, record.decided, record.plan, events, self._trained_if_any))

    def _trained_if_any(self) -> Trained:
        """Return the trained model. Raises LeftOut if the run has saved none yet, RunError if it is damaged or gone."""
        if WEIGHTS not in self.record.files and not (self.folder / WEIGHTS).is_file():
            raise LeftOut(f"{self.folder} has no {WEIGHTS} yet: no weights were saved")
        return self.trained

    def check(self) -> Agreement:
        """Check on the validation data that equivalent computations of the model agree: with and without a cache, alone
        and in a batch, before and after loading it again. Agreement.failed names those that differ. Raises RunError for
        a run without a model or with a damaged one."""
        self.require_data()
        record, trained = self.record, self.trained
        return compare_ways(
            KeptCase(self.config, record.decided, record.plan, (), lambda: trained, lambda: load(self.folder).trained)
        )

    def _open(self, device: torch.device) -> Trained:
        """Return the model, and note the fingerprint of its weights: training may write newer ones at any time."""
        task = task_named(self.config.task)
        if WEIGHTS in self.record.files:
            self.opened = self.record.files[WEIGHTS]
            return task.open(self.config, self.folder, device)
        while True:
            before = self.weights
            trained = task.open(self.config, self.folder, device)
            if (after := self.weights) == before:
                self.opened = after
                return trained

    def require_data(self) -> None:
        """Raise RunError if data other than the training split is no longer what training wrote."""
        require_unchanged(self.folder, of_evaluation(self.record.files))

    def generation(self, **fields: Any) -> Config:
        """Return the recipe's `generation` with the fields replaced that are not None. Raises RunError for a run that
        writes no text."""
        if not hasattr(self.config, "generation"):
            raise RunError(f"{self.folder} is a run of {self.config.task}, which writes no text")
        replaced: Config = self.config.generation.replaced(**fields)
        return replaced

    @cached_property
    def translation(self) -> "TrainedTranslator":
        """The trained translator. Raises RunError for a run of another task."""
        self.require_verb("translate")
        return cast("TrainedTranslator", self.trained)

    @cached_property
    def language_model(self) -> "LanguageModel":
        """The trained language model. Raises RunError for a run of another task."""
        self.require_verb("generate")
        return cast("LanguageModel", self.trained)

    @cached_property
    def sentence_encoder(self) -> "SentenceEncoder":
        """The trained sentence encoder. Raises RunError for a run of another task."""
        self.require_verb("encode")
        return cast("SentenceEncoder", self.trained)

    @cached_property
    def translator(self) -> "Translator":
        """The model of a translation run, ready to translate."""
        return self.translation.translator

    def predict(self, items: Sequence[str], **options: Any) -> list[Prediction]:
        """Return the answers to items: texts, or paths of files where items are no text."""
        return Answers(self.trained.predict(items, **options))

    def items_of(self, arguments: Sequence[str], log: Log) -> list[str]:
        """Return the items of arguments. If items are files, a folder stands for those in it; files of other kinds are
        left out with a line in the log. Raises DataError for a folder without any."""
        items: list[str] = []
        for argument in arguments:
            if not self.config.suffixes or not os.path.isdir(argument):
                items.append(argument)
                continue
            paths = list_item_files(Path(argument))
            found = {name: path for name, path in paths.items() if path.suffix.lower() in self.config.suffixes}
            suffixes = ", ".join(self.config.suffixes)
            if not found:
                raise DataError(f"{argument} has no file that ends in {suffixes}: give some")
            if others := [name for name in paths if name not in found]:
                first = shown_name(others[0])
                log(f"{argument}: files other than {suffixes} are left out: {len(others):,}, such as {first}")
            items += map(str, found.values())
        return items

    def _repr_html_(self) -> str:
        return overview(self.folder, self.record)

    @property
    def weights(self) -> str:
        """The fingerprint of the weights: from run.yaml, or of the file while the run trains or after an interrupted
        training. Raises RunError for a run without weights."""
        if WEIGHTS in self.record.files:
            return self.record.files[WEIGHTS]
        task_named(self.config.task).require_trained(self.folder)
        return sha256_of(self.folder / WEIGHTS)

    def require_verb(self, verb: str) -> None:
        """Raise RunError if runs of this task do not have a verb."""
        if verb != "predict":
            require_verb(self.folder, self.config, verb)


def load(folder: str | Path, plugins: Sequence[str] = ()) -> Run:
    """Open a run folder. `plugins` are modules that its recipe needs. Raises RunError if it is no run."""
    import_plugins(plugins)
    return Run(Path(folder))
