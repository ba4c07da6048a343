"""Trained runs that answer an item by a text."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regardant.config.run_files import EVALUATION
from regardant.data.batching import EncodedPairs
from regardant.errors import DataError, RunError
from regardant.files import write_atomically
from regardant.models import SequenceToSequenceModel
from regardant.tasks.arguments import name_of_set, require_new_names
from regardant.tasks.base import Example, ItemView, Prediction, Trained
from regardant.tasks.comparison import PREDICTIONS
from regardant.tasks.inspection import examples_of
from regardant.tasks.measures import SENTENCES, Measures, measure, require_one_file
from regardant.tasks.probe import PROBE_ELEMENTS, PROBE_ROWS, Probe
from regardant.tasks.sequence_to_sequence.config import SequenceToSequenceTaskConfig, TextAnswerConfig
from regardant.tasks.sequence_to_sequence.evaluation import score_texts, summary_of_texts
from regardant.tasks.sequence_to_sequence.generator import GeneratedText, TextGenerator
from regardant.tasks.sequence_to_sequence.inspection import PairInspection, beam_search, inspect_pair, token_by_token
from regardant.tasks.sequence_to_sequence.items import MARKER, load_pairs, name_of, read_texts

NBEST = 5
"""Maximum number of texts on a page."""

MEASURED = 32
"""Number of pairs of a batch when attention is measured."""

MOST_READ = 2000
"""Maximum number of validation pairs searched for those that fit the model."""


class TrainedGenerator(Trained):
    """Base of trained models that answer an item by a text, with the folder they were trained in."""

    model: SequenceToSequenceModel
    config: TextAnswerConfig

    def __init__(self, config: TextAnswerConfig, folder: Path, generator: TextGenerator) -> None:
        self.config, self.folder, self.generator = config, folder, generator
        self.model = generator.model

    def generate(self, items: Sequence[str], **generation: Any) -> list[GeneratedText]:
        """Return a text for each item. Options replace fields of the recipe's `generation`, as beam_size=5, nbest=3."""
        return self.generator.generate(items, self.config.generation.replaced(**generation))

    def predict(self, items: Sequence[str], **options: Any) -> list[Prediction]:
        """Return a text for each item."""
        return [
            Prediction(
                one.source,
                one.text,
                {"score": one.score, "candidates": [{"text": c.text, "score": c.score} for c in one.candidates]},
                one.notes,
            )
            for one in self.generate(items, **options)
        ]

    def inspect(self, item: str, *, target: str | None = None, **generation: Any) -> PairInspection:
        """Return the inspection of an item and a text: `target`, or the generated text if that is None."""
        return inspect_pair(self.generator, item, target, self.config.generation.replaced(**generation))

    def look(self, item: str, *, target: str | None = None, **options: Any) -> PairInspection:
        """Return the inspection with up to NBEST texts."""
        if target is None:
            options["beam_size"] = self.config.generation.replaced(**options).beam_size
            options["nbest"] = min(NBEST, options["beam_size"])
        return self.inspect(item, target=target, **options)

    @property
    def views(self) -> Mapping[str, ItemView]:
        return {"beam search": self._beam_search, "token by token": self._token_by_token}

    def _beam_search(self, item: str, *, target: str | None = None, **options: Any) -> dict[str, Any]:
        return beam_search(self.generator, item, self.config.generation.replaced(**options, nbest=1))

    def _token_by_token(self, item: str, *, target: str | None = None, **options: Any) -> dict[str, Any]:
        forced = target is not None
        written = target if target is not None else self.generate([item], beam_size=1, nbest=1)[0].text
        return token_by_token(self.generator, item, written, forced=forced)

    def score(self, items: Sequence[str], targets: Sequence[str]) -> list[float]:
        """Return the log-probability of each text given its item, in nats."""
        return self.generator.score(items, targets)

    def probe(self) -> Probe:
        """Return pairs of the validation set."""
        pairs = self.validation_pairs()
        widths = np.maximum(pairs.source_lengths, pairs.target_lengths)
        order = np.random.default_rng(0).permutation(np.flatnonzero(widths <= self.generator.max_length))
        rows = max(4, min(PROBE_ROWS, PROBE_ELEMENTS // int(widths[order].max())))
        return self.generator.probe(*pairs.encoded(order[:rows].tolist()))

    def examples(self, count: int, folder: Path) -> list[Example]:
        """Return the first sources of the validation set."""
        pairs = self.validation_pairs()
        return examples_of(self.generator.codec, map(pairs.source, range(len(pairs))), count, folder)

    def validation_pairs(self) -> EncodedPairs:
        """Return the encoded pairs of the validation set. Raises RunError if they are gone."""
        path = self.folder / "data" / "tokens" / "validation"
        if not path.is_dir():
            raise RunError(f"{self.folder} holds no validation text")
        return EncodedPairs.load(self.generator.codec, path)

    def summary(self, name: str, scores: dict[str, Any]) -> Sequence[str]:
        """Return the scores of a test set as lines for people."""
        return summary_of_texts(name, scores)


class TrainedItemGenerator(TrainedGenerator):
    """A trained model that answers items of any kind by a text."""

    config: SequenceToSequenceTaskConfig

    def measure(self, data: Sequence[Path] = (), treebank: Path | None = None) -> Measures:
        """Measure attention over the first pairs of the validation set or of a file that fit the model. Results are
        kept in RUN/measures."""
        require_one_file(data, treebank)
        sources, targets = self._encoded_file(data[0]) if data else self._validation()
        name = name_of_set(data[0]) if data else "validation"
        lengths = self.generator.lengths(sources, targets)
        fits = [row for row, length in enumerate(lengths) if length <= self.generator.max_length][:SENTENCES]
        if not fits:
            raise DataError(f"{name}: no pair fits the model's {self.generator.max_length} tokens: give shorter ones")
        groups = [fits[start : start + MEASURED] for start in range(0, len(fits), MEASURED)]
        probes = [
            self.generator.probe([sources[row] for row in rows], [targets[row] for row in rows]) for rows in groups
        ]
        found = measure(self.model, name, probes, "pair")
        found.save(self.folder / "measures")
        return found

    def evaluate(self, data: Sequence[Path] = (), **options: Any) -> dict[str, dict[str, Any]]:
        """Return the scores of the run's own test sets, or of files, by name. They are kept in RUN/evaluation.

        `cut` is the number of items that are longer than the model, whose rest was not read. Raises ConfigError for a
        file with the name of another set.
        """
        require_new_names(data, self._own_names() if self._holds_data() else (), self.folder)
        generation, scores = self.config.generation.replaced(**options), {}
        for name, (sources, items, references) in (self._given(data) if data else self._own_sets()).items():
            generated = self.generator.generate_encoded(sources, items, generation)
            scores[name] = score_texts(self.generator, generated, items, references, self.config.evaluation)
            scores[name] |= {"beam_size": generation.beam_size, "length_penalty": generation.length_penalty}
            scores[name]["cut"] = self._num_cut(items)
            kept = self.folder / EVALUATION
            lines = [self._kept_line(one.text, target) for one, target in zip(generated, references, strict=True)]
            write_atomically(kept / f"{name}{PREDICTIONS}", "".join(lines))
            write_atomically(kept / f"{name}.json", json.dumps(scores[name], indent=2) + "\n")
        return scores

    def _num_cut(self, items: Sequence[NDArray[Any]]) -> int:
        codec, longest = self.generator.codec, self.generator.max_length
        return sum(len(codec.cut(one, longest)) < len(one) for one in items)

    def _kept_line(self, answer: str, target: str) -> str:
        # The target stays raw: runs with different tokenizers are compared on equal targets.
        right = answer == self.generator.as_written(target)
        return json.dumps({"target": target, "answer": answer, "right": right}, ensure_ascii=False) + "\n"

    def _holds_data(self) -> bool:
        return (self.folder / "data" / MARKER).is_file()

    def _own_names(self) -> list[str]:
        """Return the names of the run's test sets, or that of its validation set if it has none."""
        counts = json.loads((self.folder / "data" / MARKER).read_text(encoding="utf-8"))["pairs"]
        return [name for name in counts if name not in ("train", "validation")] or ["validation"]

    def _own_sets(self) -> dict[str, tuple[list[str], list[Any], list[str]]]:
        if not self._holds_data():
            raise RunError(f"{self.folder} holds no data: give some with --data")
        sets, folder = {}, self.folder / "data"
        for name in self._own_names():
            sources, references = read_texts(folder, name)
            pairs = load_pairs(folder, name, self.generator.codec)
            sets[name] = (sources, [pairs.source(index) for index in range(len(pairs))], references)
        return sets

    def _given(self, data: Sequence[Path]) -> dict[str, tuple[list[str], list[Any], list[str]]]:
        sets = {}
        for file in data:
            pairs = self.config.data.given(file)
            if not pairs:
                raise DataError(f"{file} holds no items, or only blank ones: give a file with items")
            items = self.generator.codec.encode([item for item, _ in pairs])
            names = [name_of(item, number) for number, (item, _) in enumerate(pairs, 1)]
            sets[name_of_set(file)] = (names, items, [text for _, text in pairs])
        return sets

    def _encoded_file(self, file: Path) -> tuple[Sequence[NDArray[Any]], Sequence[Sequence[int]]]:
        """Return the encoded sources and targets of a file."""
        ((_, sources, texts),) = self._given([file]).values()
        return sources, self.generator.tokenizer.encode_batch(texts)

    def _validation(self) -> tuple[Sequence[NDArray[Any]], Sequence[Sequence[int]]]:
        """Return encoded sources and targets of the first MOST_READ validation pairs."""
        pairs = self.validation_pairs()
        return pairs.encoded(range(min(len(pairs), MOST_READ)))
