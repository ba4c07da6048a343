"""Verbs that answer items with a run."""

import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regardant.cli.bulk import Address, Column, Data, On, Out, answer_corpus, require_corpus
from regardant.cli.lines import (
    Progress,
    as_json_line,
    as_text,
    file_lines,
    log,
    print_json,
    put_lines,
    read_arguments,
    read_lines,
    stdin,
    write_output,
)
from regardant.cli.options import AsJson, BeamSize, Engine, Input, Output, Penalty, RunFolder, app, engine_of
from regardant.errors import ConfigError, DataError, ItemError

if TYPE_CHECKING:
    from regardant.run import Run
    from regardant.tasks.base import Prediction
    from regardant.tasks.sequence_to_sequence.generator import GeneratedText

LINES_AT_ONCE = 512

FOUND = 5
"""Number of texts that `encode --search` prints by default."""

ScoredFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="Do not translate: print the log-probability, in nats, of each line of FILE as the translation of the "
        "same line of the input.",
    ),
]


@app.command()
def predict(
    run: RunFolder,
    items: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ITEM",
            help="Texts; paths of files (image, sound, series) or of folders of such files; or JSON objects with a "
            "question and its context. [default: --input or stdin]",
        ),
    ] = None,
    source: Input = None,
    output: Output = None,
    data: Data = None,
    out: Out = None,
    column: Column = None,
    on: On = None,
    address: Address = None,
    as_json: AsJson = False,
) -> None:
    """Predict the answer to each item. The task of the run decides what an answer is: a label, a translation, a
    continuation. Prints one answer per line, an empty line for a blank item; for the files of a folder, the path, a tab
    and the answer. The line of a forecast has its first values; --json has all of them.

    Examples:
        regardant predict runs/sst2 "A moving film."
        regardant predict runs/digits-vit images --output answers.tsv
        regardant predict runs/sst2 --data s3://reviews/2026 --out s3://reviews/answers
        regardant predict runs/qa-demo '{"question": "Who sees the cat?", "context": "The judge sees the cat."}'
    """
    if data or out:
        unfit = {"items": items, "--input": source, "--output": output, "--json": as_json}
        answer_corpus(run, "predict", data, out, (column,), on, address, unfit)
        return
    require_corpus(**{"--column": column, "--on": on, "--address": address})
    from regardant.run import load

    items = items or []
    _require_one_source(items, source)
    loaded = load(run)
    given = loaded.items_of(items, log)
    by_path = given != items
    on_terminal = _on_terminal(items, source)
    with ExitStack() as opened:
        lines = opened.enter_context(_lines(given, source, are_files=bool(loaded.config.suffixes)))
        answers = opened.enter_context(Progress(hidden=output is None and not as_json)).counted(
            _predictions(loaded, lines, 1 if on_terminal else LINES_AT_ONCE)
        )
        if output is None and not as_json:
            for answer in answers:
                print(_as_line(answer, by_path), flush=on_terminal)
            return
        found = list(answers)
    predictions = {"predictions": [one.as_dict() for one in found]}
    if output is None:
        print_json(predictions)
        return
    as_text = "".join(_as_line(one, by_path) + "\n" for one in found)
    write_output(output, json.dumps(predictions, ensure_ascii=False) + "\n" if as_json else as_text)


@app.command()
def translate(
    run: RunFolder,
    text: Annotated[
        list[str] | None, typer.Argument(metavar="TEXT", help="Sentences. [default: --input or stdin]")
    ] = None,
    source: Input = None,
    output: Output = None,
    beam_size: BeamSize = None,
    length_penalty: Penalty = None,
    nbest: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Translations per sentence, best first, separated by tabs.")
    ] = None,
    no_repeat_ngram_size: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Never repeat an n-gram of N tokens; 0: no limit.")
    ] = None,
    prefix: Annotated[str | None, typer.Option(metavar="TEXT", help="Text that every translation begins with.")] = None,
    engine: Engine = "auto",
    score: ScoredFile = None,
    with_scores: Annotated[bool, typer.Option("--with-scores", help="Score and tab before each translation.")] = False,
    data: Data = None,
    out: Out = None,
    column: Column = None,
    on: On = None,
    address: Address = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
) -> None:
    """Translate sentences. Prints one line for each line of input, an empty line for a blank one. Options default to
    the settings of the recipe.

    Examples:
        regardant translate runs/demo "The cat sees the dog."
        regardant translate runs/demo --input a.en --output a.fr
        regardant translate runs/demo --nbest 3 --with-scores < a.en
        regardant translate runs/demo --data s3://texts/en --out s3://texts/fr
    """
    options = {"beam_size": beam_size, "length_penalty": length_penalty}
    options |= {"nbest": nbest, "no_repeat_ngram_size": no_repeat_ngram_size}
    if data or out:
        unfit: dict[str, object] = {"sentences": text, "--input": source, "--output": output, "--score": score}
        unfit |= {"--with-scores": with_scores, "--json": as_json, "--prefix": prefix, "--nbest": nbest}
        answer_corpus(run, "translate", data, out, (column,), on, address, unfit, engine=engine, **options)
        return
    require_corpus(**{"--column": column, "--on": on, "--address": address})
    from regardant.run import load

    text = text or []
    _require_one_source(text, source)
    _require_no_search(score, engine, with_scores=with_scores or None, prefix=prefix, **options)
    loaded = load(run)
    loaded.require_verb("translate")  # Run.score of a language model takes one text
    prefix = None if prefix is None else as_text(prefix)
    _note_files(text)
    with _lines(text, source) as lines:
        if score is not None:
            put_lines(_log_probabilities(loaded, list(lines), score, as_json), output)
            return
        engine = engine_of(loaded, engine) or engine
        at_once = 1 if _on_terminal(text, source) else LINES_AT_ONCE
        translations = _translations(loaded, lines, at_once, prefix, engine=engine, **options)
        put_lines((_translation_line(one, with_scores, as_json) for one in translations), output)


@app.command()
def encode(
    run: RunFolder,
    texts: Annotated[
        list[str] | None, typer.Argument(metavar="TEXT", help="Texts. [default: --input or stdin, one per line]")
    ] = None,
    source: Input = None,
    search: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Print the texts that are most similar to this one.")
    ] = None,
    count: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Maximum number of texts that --search prints. [default: 5]")
    ] = None,
    data: Data = None,
    out: Out = None,
    column: Column = None,
    on: On = None,
    address: Address = None,
    as_json: AsJson = False,
) -> None:
    """Encode texts as vectors of length 1. Prints one line of numbers per text; blank lines are left out. With
    --search, prints the texts nearest to a query: cosine, tab and text.

    Examples:
        regardant encode runs/minilm "A small cat."
        regardant encode runs/minilm --input lines.txt --search "a small cat"
        regardant encode runs/minilm --data s3://texts/en --out s3://texts/vectors
    """
    if data or out:
        unfit = {"texts": texts, "--input": source, "--search": search, "--count": count, "--json": as_json}
        answer_corpus(run, "encode", data, out, (column,), on, address, unfit)
        return
    require_corpus(**{"--column": column, "--on": on, "--address": address})
    if count is not None and search is None:
        raise ConfigError("--count without --search: give --search TEXT, or leave out --count")
    from regardant.run import load
    from regardant.run.blank_items import answer_where_text

    texts = texts or []
    _require_one_source(texts, source)
    encoder = load(run).sentence_encoder
    with _lines(texts, source) as given:
        lines = list(given)
    vectors = answer_where_text(lines, lambda given: list(encoder.encode(given)))
    encoded = [(line, vector) for line, vector in zip(lines, vectors, strict=True) if vector is not None]
    if not encoded:
        raise DataError("there are no texts to encode: give one a line")
    if search is None:
        _print_vectors([(line, vector.tolist()) for line, vector in encoded], as_json)
        return
    import torch

    search = as_text(search)
    kept, rows = zip(*encoded, strict=True)
    found = encoder.nearest(search, kept, torch.stack(rows), count or FOUND)
    if as_json:
        print_json({"query": search, "found": [one._asdict() for one in found]})
        return
    for one in found:
        print(f"{one.similarity:.4f}\t{_one_line(one.text)}")


@app.command()
def generate(
    run: RunFolder,
    prompt: Annotated[
        str | None, typer.Argument(metavar="PROMPT", help="Text to continue. [default: a line feed]")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Maximum number of tokens to generate.")
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(
            min=0, metavar="T", help="Sampling temperature. 1: the model's probabilities; 0: the likeliest token."
        ),
    ] = None,
    top_k: Annotated[int | None, typer.Option(min=1, metavar="K", help="Sample from the K likeliest tokens.")] = None,
    top_p: Annotated[
        float | None, typer.Option(metavar="P", help="Sample from the fewest tokens whose probabilities reach P.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the random numbers.")] = 0,
    samples: Annotated[
        int, typer.Option(min=1, metavar="N", help="Number of texts to generate, separated by lines of dashes.")
    ] = 1,
) -> None:
    """Continue a text with a language model. Prints tokens as they are sampled. Options default to the settings of the
    recipe.

    Examples:
        regardant generate runs/shakespeare "ROMEO:" --max-tokens 200
        regardant generate runs/shakespeare --temperature 0.7 --samples 3
    """
    from regardant.run import load

    options = {"max_tokens": max_tokens, "temperature": temperature, "top_k": top_k, "top_p": top_p}
    begun = "\n" if prompt is None else as_text(prompt)
    loaded = load(run)
    for sample in range(samples):
        for piece in loaded.stream(begun, sample=sample, seed=seed, **options):
            print(piece, end="", flush=sys.stdout.isatty())
        print(end="\n" if sample == samples - 1 else f"\n{'-' * 15}\n")


def _print_vectors(encoded: Sequence[tuple[str, list[float]]], as_json: bool) -> None:
    if as_json:
        print_json({"vectors": [{"text": text, "vector": vector} for text, vector in encoded]})
        return
    for _, vector in encoded:
        print(" ".join(f"{number:.6g}" for number in vector))


def _predictions(run: "Run", lines: Iterator[str], at_once: int) -> "Iterator[Prediction]":
    """Yield the answer to each line, and write its notes to stderr. A blank line has an empty answer."""
    from regardant.run.blank_items import answer_where_text
    from regardant.tasks.base import Prediction

    done = 0
    while batch := list(islice(lines, at_once)):
        try:
            answers = answer_where_text(batch, run.predict)
        except ItemError as error:
            raise ItemError(done + error.number, error.problem) from error
        for number, (line, answer) in enumerate(zip(batch, answers, strict=True), done + 1):
            found = answer or Prediction(line, "", {})
            for note in found.notes:
                log(f"item {number}: {note}")
            yield found
        done += len(batch)


def _as_line(found: "Prediction", by_path: bool) -> str:
    return _one_line(f"{found.item}\t{found.answer}" if by_path else found.answer)


def _translations(
    run: "Run", lines: Iterator[str], at_once: int, prefix: str | None, **options: Any
) -> "Iterator[GeneratedText]":
    """Yield the translation of each line, and write its notes to stderr."""
    done = 0
    while batch := _cut(islice(lines, at_once), done):
        prefixes = None if prefix is None else [prefix] * len(batch)
        for number, translation in enumerate(run.translate(batch, prefixes=prefixes, **options), done + 1):
            for note in translation.notes:
                log(f"line {number}: {note}")
            yield translation
        sys.stdout.flush()
        done += len(batch)


def _cut(lines: Iterator[str], done: int) -> list[str]:
    """Return the part of each line that is translated, and write to stderr that the rest is left out."""
    from regardant.modalities.text import first_of_line

    cut = []
    for number, line in enumerate(lines, done + 1):
        first, notes = first_of_line(line)
        for note in notes:
            log(f"line {number}: {note}")
        cut.append(first)
    return cut


def _require_one_source(items: Sequence[str], source: Path | None) -> None:
    if items and source is not None:
        raise ConfigError(f"items were given as arguments and by --input {source}: leave one of them out")


def _require_no_search(score: Path | None, engine: str, **options: object) -> None:
    """Raise ConfigError for options of a search beside --score."""
    if score is not None and (engine != "auto" or any(one is not None for one in options.values())):
        raise ConfigError("--score does not translate: leave out all other options but --input, --output and --json")


def _on_terminal(items: Sequence[str], source: Path | None) -> bool:
    """Return whether items are typed on a terminal, so that each is answered at once."""
    return not items and source is None and stdin().isatty()


@contextmanager
def _lines(items: Sequence[str], source: Path | None, *, are_files: bool = False) -> Iterator[Iterator[str]]:
    """Yield the items of a command line, of a file or of stdin, as lines."""
    if items:
        yield iter(items) if are_files else read_arguments(items)  # a file may have any bytes as its name
    elif source is None:
        yield read_lines(stdin())
    else:
        yield file_lines("--input", source)


def _note_files(texts: Sequence[str]) -> None:
    """Warn about texts that are names of files: the name is translated, not the file."""
    for text in texts:
        if os.path.isfile(text):  # False for a text too long for a name, for which Path.is_file raises OSError
            log(f"{text!r} is translated as a text; to translate the lines of the file, give --input {text}")


def _one_line(text: str) -> str:
    return re.sub(r"[\r\n]+", " ", text)


def _log_probabilities(run: "Run", sources: list[str], file: Path, as_json: bool) -> Iterator[str]:
    targets = list(file_lines("--score", file))
    for source, target, score in zip(sources, targets, run.score(sources, targets), strict=True):
        yield as_json_line({"source": source, "target": target, "score": score}) if as_json else f"{score:.4f}"


def _translation_line(translation: "GeneratedText", with_scores: bool, as_json: bool) -> str:
    if as_json:
        candidates = [{"text": c.text, "score": c.score, "tokens": c.tokens} for c in translation.candidates]
        return as_json_line({"source": translation.source, "translations": candidates, "notes": translation.notes})
    return "\t".join(f"{c.score:.4f}\t{c.text}" if with_scores else c.text for c in translation.candidates)
