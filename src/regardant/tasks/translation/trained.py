"""What a finished translation run can do."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regardant import config as configuration
from regardant.data.batching import EncodedPairs
from regardant.data.grammar.config import gold_links
from regardant.data.parallel import MARKER, Splits
from regardant.data.treebank import read_treebank
from regardant.errors import ConfigError, RunError
from regardant.evaluation.alignment import parse_links
from regardant.generation.config import GenerationConfig
from regardant.models import SequenceToSequenceModel
from regardant.tasks.base import Log, Prediction, Trained, View
from regardant.tasks.probe import PROBE_ELEMENTS, PROBE_ROWS, Probe
from regardant.tasks.translation.config import TranslationConfig
from regardant.tasks.translation.evaluate.evaluation import (
    choose_on_validation,
    evaluate_translator,
    read_test_set,
    summary,
    test_sets,
)
from regardant.tasks.translation.learn.prepare import load_translator
from regardant.tasks.translation.look import views
from regardant.tasks.translation.look.attended import probe_of
from regardant.tasks.translation.look.inspection import TranslationInspection, inspect_pair
from regardant.tasks.translation.look.measure_tables import CROSS, TranslatorMeasures
from regardant.tasks.translation.look.measures import Measured, measure
from regardant.tasks.translation.look.pictures import lecture_drawing, lecture_page, lecture_pictures
from regardant.tasks.translation.use.engines import Engines
from regardant.tasks.translation.use.translator import Translation
from regardant.training.checkpoints import write_atomically

NBEST = 5
"""Translations on a page, where the beam has as many."""


class TrainedTranslator(Trained):
    """A translator with the folder it was trained in."""

    model: SequenceToSequenceModel

    def __init__(self, config: TranslationConfig, folder: Path, device: torch.device) -> None:
        self.config, self.folder = config, folder
        self.translator = load_translator(config, folder, device)
        self.model = self.translator.model
        self.engines = Engines(self.translator, folder / "engines")

    def translate(
        self, lines: Sequence[str], *, prefixes: Sequence[str] | None = None, engine: str = "torch", **generation: Any
    ) -> list[Translation]:
        """A translation a line; see `generation` for what may be given, as beam_size=5, nbest=3."""
        return self.engines.on(engine).translate(lines, self.generation(**generation), prefixes)

    def predict(self, items: Sequence[str], **options: Any) -> list[Prediction]:
        """Return a translation of each line."""
        return [
            Prediction(
                one.source,
                one.text,
                {"score": one.score, "candidates": [{"text": c.text, "score": c.score} for c in one.candidates]},
                one.notes,
            )
            for one in self.translate(items, **options)
        ]

    def inspect(self, item: str, *, target: str | None = None, **generation: Any) -> TranslationInspection:
        """Return what passes the model over a sentence and its translation: its own one, if none is given."""
        return inspect_pair(self.translator, item, target, self.generation(**generation))

    def look(self, item: str, *, target: str | None = None, **options: Any) -> TranslationInspection:
        """Return the inspection with up to NBEST translations and the alignment of words."""
        if target is None:
            options["beam_size"] = self.generation(**options).beam_size
            options["nbest"] = min(NBEST, options["beam_size"])
        found = self.inspect(item, target=target, **options)
        aligned = None
        if CROSS in found.layers:
            aligned = views.alignment(
                self.translator, self.folder, found.source, found.target, len(found.layers[CROSS])
            )
        return replace(found, details={**found.details, "alignment": aligned})

    @property
    def views(self) -> Mapping[str, View]:
        return {"beam search": self._beam_search, "token by token": self._token_by_token}

    def _beam_search(self, item: str, *, target: str | None = None, **options: Any) -> dict[str, Any]:
        return views.beam_search(self.translator, item, self.generation(**options, nbest=1))

    def _token_by_token(self, item: str, *, target: str | None = None, **options: Any) -> dict[str, Any]:
        forced = target is not None
        written = target if target is not None else self.translate([item], beam_size=1)[0].text
        return views.token_by_token(self.translator, item, written, forced=forced)

    def measure(self, data: Sequence[Path] = (), treebank: Path | None = None) -> TranslatorMeasures:
        """Its attention in numbers, over the run's validation pairs or those in files, and over the sentences of a
        treebank. All is kept in RUN/measures."""
        parsed = None if treebank is None else read_treebank(treebank)
        found = measure(self.translator, self._pairs_to_measure(data), parsed)
        found.save(self.folder / "measures")
        return found

    def _pairs_to_measure(self, data: Sequence[Path]) -> Measured:
        if data:
            given = read_test_set(data)
            return Measured(given.name, given.sources, given.references)
        text = self.folder / "data" / "text"
        if not (text / MARKER).is_file():
            raise RunError(f"{self.folder} holds no validation text: give some with --data")
        pairs, gold = Splits.load(text).validation, gold_links(text, "validation")
        links = None if gold is None else [parse_links(line) for line in gold]
        return Measured("validation", list(pairs["source"]), list(pairs["target"]), links)

    def export(self, to: str, folder: Path, quantization: str) -> None:
        """Write the model to a new folder in another program's format."""
        self.engines.export(to, folder, quantization)

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[float]:
        """Log-probability of each target given its source, in nats."""
        return self.translator.score(sources, targets)

    def generation(self, **fields: Any) -> GenerationConfig:
        """The recipe's way to write, with some fields replaced; nbest alone widens a beam that is too narrow."""
        changed = {name: value for name, value in fields.items() if value is not None}
        if "nbest" in changed:
            changed.setdefault("beam_size", max(self.config.generation.beam_size, changed["nbest"]))
        if not changed:
            return self.config.generation
        given = {**self.config.generation.model_dump(), **changed}
        return configuration.load(GenerationConfig, given, origin="generation")

    def probe(self) -> Probe:
        """Pairs of the validation set."""
        path = self.folder / "data" / "tokens" / "validation"
        if not path.is_dir():
            raise RunError(f"{self.folder} holds no validation text")
        pairs = EncodedPairs.load(path)
        widths = np.maximum(pairs.source_lengths, pairs.target_lengths)
        order = np.random.default_rng(0).permutation(np.flatnonzero(widths <= self.config.model.max_length))
        rows = max(4, min(PROBE_ROWS, PROBE_ELEMENTS // int(widths[order].max())))
        batch = pairs.batch(order[:rows]).to(self.translator.device)
        return probe_of(self.translator.tokenizers, batch)

    def evaluate(
        self, data: Sequence[Path] = (), *, engine: str | None = None, **options: Any
    ) -> dict[str, dict[str, Any]]:
        """Scores by name of the test set: the run's own ones, or the pairs in files. All is kept in RUN/evaluation.

        Another engine than torch is held to torch: both translate.
        """
        given = read_test_set(data) if data else None
        text = self.folder / "data" / "text"
        splits = Splits.load(text) if (text / MARKER).is_file() else None
        if given is None and splits is None:
            raise RunError(f"{self.folder} holds no test text: give some with --data")
        if given is not None and splits is not None and given.name in splits.tests:
            raise ConfigError(f"--data {given.name} has the name of a test set of {self.folder}: rename the file")
        alignment = choose_on_validation(self.translator, text, splits) if splits is not None and not given else None
        tested = [given] if given is not None else test_sets(text, splits) if splits is not None else []
        ours, asked_for, kept = self.translator, self.engines.on(engine or "torch"), self.folder / "evaluation"
        measure = partial(
            evaluate_translator,
            generation=self.generation(**options),
            metrics=self.config.evaluation,
            alignment=alignment,
        )
        scores = {one.name: measure(ours, one, kept) for one in tested}
        if asked_for is ours:
            return scores
        of_engine = kept / asked_for.searcher.name
        return {one.name: measure(asked_for, one, of_engine, on_torch=scores[one.name]) for one in tested}

    def summary(self, name: str, scores: dict[str, Any]) -> Sequence[str]:
        """Return lines for people."""
        return summary(name, scores)

    def show_lecture_sentences(self, log: Log) -> Path:
        """Translate the lectures' two sentences and draw the cross-attention, with the gold links over it."""
        kept = self.folder / "evaluation" / "test.json"
        if not kept.is_file():
            self.evaluate()
        scores = json.loads(kept.read_text(encoding="utf-8"))
        pictures = lecture_pictures(self.translator, self.generation(), scores)
        for picture, translation in zip(pictures, self.translate([one.title for one in pictures]), strict=True):
            log(f"{picture.title}\n  {translation.text}")
        write_atomically(self.folder / "attention.svg", lecture_drawing(pictures[-1]))
        path = self.folder / "report.html"
        write_atomically(path, lecture_page(pictures, scores))
        return path
