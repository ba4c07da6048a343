"""Finished translation runs."""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from regardant.config.run_files import EVALUATION
from regardant.data.gold_alignments import gold_links
from regardant.data.grammar import LECTURE_SENTENCES
from regardant.data.parallel import MARKER, Splits
from regardant.data.treebank import read_treebank
from regardant.data.words import word_texts
from regardant.errors import DataError, RunError
from regardant.evaluation.alignment import parse_links
from regardant.files import write_atomically
from regardant.tasks.arguments import require_new_names
from regardant.tasks.base import Example, Log
from regardant.tasks.exchange import Exchange
from regardant.tasks.inspection import examples_of
from regardant.tasks.sequence_to_sequence.inspection import PairInspection
from regardant.tasks.sequence_to_sequence.trained import TrainedGenerator
from regardant.tasks.translation.config import TranslationConfig
from regardant.tasks.translation.evaluate.evaluation import (
    choose_on_validation,
    evaluate_translator,
    read_test_set,
    summary,
    test_sets,
)
from regardant.tasks.translation.evaluate.exchange import exchange_of
from regardant.tasks.translation.look.alignment import links_of_run
from regardant.tasks.translation.look.measure_tables import CROSS, TranslatorMeasures
from regardant.tasks.translation.look.measures import MeasuredPairs, measure
from regardant.tasks.translation.look.pictures import lecture_drawing, lecture_page, lecture_pictures
from regardant.tasks.translation.use.choice import EngineChoice, choose_engine
from regardant.tasks.translation.use.engines import Engines
from regardant.tasks.translation.use.translator import Translator

GRAMMAR = "grammar"
"""Kind of data whose language has the lectures' sentences."""

MOST_LINES = 100_000
"""Maximum number of training sources whose words are listed, which takes about a second."""

LINES_AT_ONCE = 1000
"""Number of lines read from a table at a time, which is faster than one by one."""


class TrainedTranslator(TrainedGenerator):
    """A translator with the folder it was trained in."""

    config: TranslationConfig

    def __init__(self, config: TranslationConfig, folder: Path, translator: Translator) -> None:
        super().__init__(config, folder, translator)
        self.translator = translator
        self.engines = Engines(translator, folder / "engines")
        self._choice: EngineChoice | None = None
        self._known_words: frozenset[str] | None = None
        self._text = folder / "data" / "text"

    def look(self, item: str, *, target: str | None = None, **options: Any) -> PairInspection:
        """Return the inspection with up to NBEST translations and the alignment of words."""
        found = super().look(item, target=target, **options)
        aligned = None
        if CROSS in found.layers:
            layers = len(found.layers[CROSS])
            aligned = links_of_run(self.translator, self.folder, found.source, found.target, layers)
        return replace(found, details={**found.details, "alignment": aligned})

    def examples(self, count: int, folder: Path) -> list[Example]:
        """Return the first sources of the validation set; of the grammar, the lectures' sentences come first."""
        found = super().examples(count, folder)
        if self.config.data.kind == GRAMMAR:
            codec = self.generator.codec
            lectures = codec.encode([pair.source for pair in reversed(LECTURE_SENTENCES)])
            found = [*examples_of(codec, lectures, count, folder), *found]
        return found[:count]

    def known_words(self) -> frozenset[str]:
        """Return the words of the training sources, in lower case. Empty if the text is gone or too long to read."""
        if self._known_words is None:
            splits = self._splits()
            sources = [] if splits is None else splits.train["source"]
            read = len(sources) if len(sources) <= MOST_LINES else 0
            self._known_words = frozenset(
                word
                for start in range(0, read, LINES_AT_ONCE)
                for line in sources[start : start + LINES_AT_ONCE]
                for word in word_texts(line.lower())
                if word.isalnum()
            )
        return self._known_words

    def measure(self, data: Sequence[Path] = (), treebank: Path | None = None) -> TranslatorMeasures:
        """Measure attention over the run's validation pairs or those in files, and over the sentences of a treebank.

        Results are kept in RUN/measures.
        """
        parsed = None if treebank is None else read_treebank(treebank)
        found = measure(self.translator, self._pairs_to_measure(data), parsed)
        found.save(self.folder / "measures")
        return found

    def _pairs_to_measure(self, data: Sequence[Path]) -> MeasuredPairs:
        if data:
            given = read_test_set(data)
            return MeasuredPairs(given.name, given.sources, given.references)
        splits = self._splits()
        if splits is None:
            raise RunError(f"{self.folder} holds no validation text: give some with --data")
        pairs, gold = splits.validation, gold_links(self._text, "validation")
        links = None if gold is None else [parse_links(line) for line in gold]
        return MeasuredPairs("validation", list(pairs["source"]), list(pairs["target"]), links)

    def _splits(self) -> Splits | None:
        """Return the text of the run. None: the run holds none."""
        return Splits.load(self._text) if (self._text / MARKER).is_file() else None

    def encoded_twice(self, count: int) -> list[tuple[Sequence[int], Sequence[int]]]:
        """Return the tokens of sources and targets of the validation text."""
        splits, pairs = self._splits(), self.validation_pairs()
        if splits is None:
            return []
        sources, targets = pairs.encoded(range(min(count, len(pairs))))
        lines: dict[str, list[str]] = splits.validation[:count]
        tokenizers = self.translator.tokenizers
        kept = [one.tolist() for one in sources] + targets
        now = tokenizers.source.encode_batch(lines["source"]) + tokenizers.target.encode_batch(lines["target"])
        return list(zip(kept, now, strict=True))

    def export_differences(self, count: int) -> dict[str, tuple[float, str]]:
        sources, _ = self.validation_pairs().encoded(range(min(count, len(self.validation_pairs()))))
        return self.engines.differences(sources)

    def exchange(self, data: Sequence[Path] = ()) -> Exchange | None:
        """Return the run's first test set, or the pairs in files, without those longer than the model."""
        if data:
            given = read_test_set(data)
        elif (splits := self._splits()) is not None:
            given = test_sets(self._text, splits)[0]
        else:
            return None
        return exchange_of(self.translator, given, self.config)

    def validation_text(self) -> dict[str, list[str]]:
        """Return the validation text by side, `source` and `target`. Empty lists: the run holds no text."""
        splits = self._splits()
        return {side: [] if splits is None else list(splits.validation[side]) for side in ("source", "target")}

    def choose_engine(self, log: Log = lambda _: None) -> EngineChoice:
        """Return the choice of the engine for `auto`, made on the validation text at the first call."""
        if self._choice is None:
            try:
                self._choice = choose_engine(
                    self.engines, self.validation_text, self.config.generation, self.config.evaluation, log
                )
            except DataError as error:  # translating needs no data
                return EngineChoice("torch", str(error))
        return self._choice

    def on(self, engine: str) -> Translator:
        """Return the translator on an engine by its name; `auto` is the chosen one. Raises errors as `Engines.on`."""
        return self.engines.on(self.choose_engine().engine if engine == "auto" else engine)

    def evaluate(
        self, data: Sequence[Path] = (), *, engine: str | None = None, **options: Any
    ) -> dict[str, dict[str, Any]]:
        """Return scores by name of the test set: the run's own sets, or pairs in files. RUN/evaluation keeps them.

        `auto` evaluates the chosen engine alone: its choice compared it with torch. Any other engine is compared with
        torch now: both translate, and its results are kept in RUN/evaluation/ENGINE.
        """
        given = read_test_set(data) if data else None
        text, splits = self._text, self._splits()
        if given is None and splits is None:
            raise RunError(f"{self.folder} holds no test text: give some with --data")
        if splits is not None:
            require_new_names(data[:1], splits.tests, self.folder)  # the first file names the set of both
        alignment = choose_on_validation(self.translator, text, splits) if splits is not None and not given else None
        tested = [given] if given is not None else test_sets(text, splits) if splits is not None else []
        asked_for, kept = self.on(engine or "torch"), self.folder / EVALUATION
        ours = asked_for if engine == "auto" else self.translator
        evaluated = partial(
            evaluate_translator,
            generation=self.config.generation.replaced(**options),
            metrics=self.config.evaluation,
            alignment=alignment,
        )
        scores = {one.name: evaluated(ours, one, kept) for one in tested}
        if asked_for is ours:
            return scores
        of_engine = kept / asked_for.searcher.name
        return {one.name: evaluated(asked_for, one, of_engine, on_torch=scores[one.name]) for one in tested}

    def summary(self, name: str, scores: dict[str, Any]) -> Sequence[str]:
        """Return the scores of a test set as lines for people."""
        return summary(name, scores)

    def show_lecture_sentences(self, log: Log) -> Path:
        """Translate the lectures' two sentences and draw the cross-attention, with the gold links over it.

        Return the path of the page, RUN/report.html. Raises RunError for a run without alignments, or if neither
        sentence fits the model.
        """
        kept = self.folder / EVALUATION / "test.json"
        if not kept.is_file():
            self.evaluate()
        scores = json.loads(kept.read_text(encoding="utf-8"))
        if "alignment" not in scores:
            raise RunError(
                f"{self.folder} has no alignment to draw: its model needs cross-attention, and its validation and test "
                "text need gold links, such as the grammar's"
            )
        pictures = lecture_pictures(self.translator, self.config.generation, scores)
        if not pictures:
            raise RunError(
                f"{self.folder} has nothing to draw: the lectures' sentences are longer than the model's "
                f"{self.translator.max_length} tokens: raise model.max_length and train again"
            )
        drawn = {picture.title for picture in pictures}
        for pair in LECTURE_SENTENCES:
            if pair.source not in drawn:
                log(f"{pair.source}\n  not drawn: longer than the model's {self.translator.max_length} tokens")
        for picture, translation in zip(pictures, self.generate([one.title for one in pictures]), strict=True):
            log(f"{picture.title}\n  {translation.text}")
        write_atomically(self.folder / "attention.svg", lecture_drawing(pictures[-1]))
        path = self.folder / "report.html"
        write_atomically(path, lecture_page(pictures, scores))
        return path
