"""Evaluation of a translator on test sets: scores, and files from which to recompute them.

FOLDER/NAME.src, .ref, .hyp    one sentence per line
FOLDER/NAME.links              predicted word alignments of source and reference, `0-0 1-2`; an empty line for a pair
                               longer than the model, which the error rate leaves out
FOLDER/NAME.gold               the gold ones, if the corpus has any
FOLDER/NAME.json               the scores
FOLDER/ENGINE/                 the same, of another engine than torch
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regardant.config.run_files import EVALUATION
from regardant.data.gold_alignments import gold_links
from regardant.data.parallel import Pairs, Splits, evaluation_pairs
from regardant.data.tables import first_row, is_table_file
from regardant.errors import ConfigError, RunError
from regardant.evaluation.alignment import Link, alignment_error_rate, format_links, parse_links
from regardant.evaluation.translation import TranslationMetrics
from regardant.files import write_atomically
from regardant.generation.config import GenerationConfig
from regardant.inspection import place_names
from regardant.tasks.sequence_to_sequence.evaluation import score_texts, summary_of_texts
from regardant.tasks.sequence_to_sequence.generator import in_one_line
from regardant.tasks.translation.look.alignment import (
    AlignmentChoice,
    choose_alignment,
    links_by,
    word_attention,
)
from regardant.tasks.translation.use.translator import Translator

PAIRS_TO_CHOOSE_BY = 200
"""Number of validation pairs on which the place to read alignments is chosen."""


@dataclass(frozen=True)
class TestSet:
    """Sentences with references, and gold alignments if there are any."""

    __test__ = False  # keeps pytest from collecting it by its name

    name: str
    sources: list[str]
    references: list[str]
    gold: list[str] | None = None


def test_sets(text: Path, splits: Splits) -> list[TestSet]:
    """Return the test sets of a run whose text is in the folder `text`."""
    return [
        TestSet(name, list(pairs["source"]), list(pairs["target"]), gold_links(text, name))
        for name, pairs in splits.tests.items()
    ]


def choose_on_validation(translator: Translator, text: Path, splits: Splits) -> AlignmentChoice | None:
    """Return the place to read alignments. None without cross-attention, or without validation pairs that have gold
    links and fit the model."""
    if not any(name.endswith("cross_attention.weights") for name in place_names(translator.model)):
        return None
    gold = gold_links(text, "validation")
    if gold is None:
        return None
    sources, targets = list(splits.validation["source"]), list(splits.validation["target"])
    fits = translator.fitting(sources, targets)[:PAIRS_TO_CHOOSE_BY]
    if not fits:
        return None
    attention = word_attention(translator, [sources[n] for n in fits], [targets[n] for n in fits])
    return choose_alignment(attention, [parse_links(gold[n]) for n in fits])


def evaluate_translator(
    translator: Translator,
    tested: TestSet,
    folder: Path,
    *,
    generation: GenerationConfig,
    metrics: TranslationMetrics,
    alignment: AlignmentChoice | None = None,
    on_torch: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Translate a test set, keep its files and scores in `folder`, and return the scores.

    on_torch: scores of torch on the same set, if another engine translates, for the BLEU that it loses.
    """
    start = time.perf_counter()
    translations = translator.generate(tested.sources, generation)
    seconds = time.perf_counter() - start
    sources = translator.encode(tested.sources)
    scores = score_texts(translator, translations, sources, tested.references, metrics)
    scores |= {
        "sentences_per_second": round(len(translations) / seconds, 2),
        "engine": translator.searcher.name,
        "beam_size": generation.beam_size,
        "length_penalty": generation.length_penalty,
    }
    if on_torch is not None:
        scores["bleu_lost"] = on_torch["bleu"] - scores["bleu"]
    hypotheses = [translation.text for translation in translations]
    files = {"src": tested.sources, "ref": tested.references, "hyp": hypotheses}
    if tested.gold is not None and alignment is not None:
        predicted = _predicted_links(translator, tested, alignment)
        gold = [parse_links(tested.gold[index]) for index in predicted]
        scores |= {
            "alignment_error_rate": alignment_error_rate(list(predicted.values()), gold) if predicted else None,
            "alignment_left_out": len(tested.sources) - len(predicted),
            "alignment": alignment.as_dict(),
        }
        lines = [format_links(predicted.get(index, set())) for index in range(len(tested.sources))]
        files |= {"links": lines, "gold": tested.gold}
    for suffix, texts in files.items():
        # A cell of a table may hold line breaks, but each line of a file is one sentence.
        text = "".join(in_one_line(line) + "\n" for line in texts)
        write_atomically(folder / f"{tested.name}.{suffix}", text)
    write_atomically(folder / f"{tested.name}.json", json.dumps(scores, indent=2) + "\n")
    return scores


def _predicted_links(translator: Translator, tested: TestSet, alignment: AlignmentChoice) -> dict[int, set[Link]]:
    """Return the links of each pair that fits the model, by its index."""
    fits = translator.fitting(tested.sources, tested.references)
    sources, references = ([side[index] for index in fits] for side in (tested.sources, tested.references))
    return dict(zip(fits, links_by(alignment, word_attention(translator, sources, references)), strict=True))


def read_test_set(files: Sequence[Path]) -> TestSet:
    """Return a test set from a source and a target file, or from a table. Its name is that of the first file.

    The table's columns are `source` and `target`, or the two of a .tsv or .csv file without names. Raises ConfigError
    for other files.
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


@dataclass(frozen=True)
class Evaluated:
    """Texts of an evaluated test set, one for each sentence, and its scores."""

    sources: list[str]
    references: list[str]
    hypotheses: list[str]
    scores: dict[str, Any]


def read_evaluated(run: Path) -> dict[str, Evaluated]:
    """Return the evaluations in RUN/evaluation by name of the test set, `test` first. Empty if there are none.

    Raises RunError if files of a set are missing, or differ in their number of lines.
    """
    folder = run / EVALUATION
    names = sorted((path.name.removesuffix(".json") for path in folder.glob("*.json")), key=lambda n: (n != "test", n))
    return {name: _read_kept(folder / name) for name in names}


def _read_kept(path: Path) -> Evaluated:
    kept = {suffix: path.with_name(f"{path.name}.{suffix}") for suffix in ("src", "ref", "hyp", "json")}
    anew = "evaluate the run anew"
    try:
        scores = json.loads(kept.pop("json").read_text(encoding="utf-8"))
        lines = {suffix: _lines(file) for suffix, file in kept.items()}
    except (OSError, ValueError) as error:
        raise RunError(f"the evaluation kept as {path} cannot be read ({error}): {anew}") from error
    if len({len(one) for one in lines.values()}) > 1:
        line_counts = ", ".join(f"{len(one):,} in .{suffix}" for suffix, one in lines.items())
        raise RunError(f"the evaluation kept as {path} does not have one line per sentence ({line_counts}): {anew}")
    return Evaluated(lines["src"], lines["ref"], lines["hyp"], scores)


def _lines(path: Path) -> list[str]:
    # A line ends at a line feed and nowhere else.
    return path.read_bytes().decode().removesuffix("\n").split("\n")


def summary(name: str, scores: dict[str, Any]) -> Sequence[str]:
    """Return the scores as lines for people."""
    quality, signature, *cuts = summary_of_texts(name, scores)
    lines = [quality, signature]
    if "bleu_lost" in scores:
        lines.append(f"  {-scores['bleu_lost']:+.2f} BLEU by {scores['engine']} in place of torch")
    if "alignment_error_rate" in scores:
        lines.append(f"  {_alignment_line(scores)}")
    return [*lines, *cuts]


def _alignment_line(scores: dict[str, Any]) -> str:
    place, rate = scores["alignment"], scores["alignment_error_rate"]
    if rate is None:
        return "no alignment error rate: every pair is longer than the model"
    head = "mean of heads" if place["head"] < 0 else f"head {place['head'] + 1}"
    shift = "shifted by one" if place["shift"] else "not shifted"
    left_out = f"; {scores['alignment_left_out']:,} pairs longer than the model left out"
    return (
        f"alignment error rate {rate:.3f} (cross-attention of layer {place['layer'] + 1}, {head}, {shift}; "
        f"chosen on validation{left_out if scores['alignment_left_out'] else ''})"
    )
