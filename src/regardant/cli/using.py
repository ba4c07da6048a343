"""Verbs that use runs."""

import json
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from regardant.cli.lines import Progress, print_json, read_lines, say, stdin
from regardant.cli.options import AsJson, BeamSize, Engine, Penalty, RunFolder, app
from regardant.errors import ConfigError, DataError

if TYPE_CHECKING:
    from regardant.run import Run
    from regardant.tasks.base import Prediction
    from regardant.tasks.sequence_to_sequence.generator import GeneratedText

DATA_HELP = """Other text to test on. For a translator, given twice: a file of sentences and one of their translations,
a line each; given once: a .jsonl, .parquet, .csv or .tsv table with columns named source and target; a .csv or .tsv of
just two columns, source first, needs no line of names. For a language model: any text, each file by itself."""
LINES_AT_ONCE = 512


@app.command()
def evaluate(
    run: RunFolder,
    data: Annotated[list[Path] | None, typer.Option(metavar="FILE", help=DATA_HELP)] = None,
    beam_size: BeamSize = None,
    length_penalty: Penalty = None,
    engine: Engine = "torch",
    as_json: AsJson = False,
) -> None:
    """Score a run on its test sets or on other text. Translations by BLEU, chrF and TER with their signatures; a
    language model by loss, perplexity and bits a character. Another engine than torch is held to torch, which
    translates too. What was scored is kept in RUN/evaluation. Options that are not given are as the recipe says."""
    from regardant.run import load

    loaded = load(run)
    asked = None if engine == "torch" else engine
    scores = loaded.evaluate(data=data or (), engine=asked, beam_size=beam_size, length_penalty=length_penalty)
    if as_json:  # the first set's scores, and beside them the other sets by name
        first, *others = scores
        print_json({**scores[first], **{name: scores[name] for name in others}})
        return
    for name, numbers in scores.items():
        print("\n".join(loaded.trained.summary(name, numbers)))
    print(f"kept in {run / 'evaluation'}")


@app.command()
def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN RUN...", help="Folders of evaluated runs; the first is what the others are held to."
        ),
    ],
    page: Annotated[
        Path | None,
        typer.Option(metavar="FILE", dir_okay=False, help="Write an offline HTML page too, with curves and bars."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare evaluated runs on the test sets they share. Scores, also by length of the source; what chance may be
    in them, by paired bootstrap against the first run; what each run cost."""
    from regardant import run

    report = run.compare(runs, page)
    if as_json:
        print_json(report.as_dict())
    else:
        print("\n".join(report.lines()))
    if page is not None:
        say(f"open {page} in a browser to see the curves")


@app.command()
def predict(
    run: RunFolder,
    items: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ITEM",
            help="Texts; paths of files (image, sound, series) or of folders of such files; or JSON objects with a "
            "question and its context. Without any: --input or stdin.",
        ),
    ] = None,
    source: Annotated[
        Path | None, typer.Option("--input", metavar="FILE", help="Read the items from FILE, one a line.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the answers to FILE instead of stdout, all at the end.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Predict the answer to each item: its class, its translation, its continuation. Prints one answer a line, an empty
    one for a blank item; with a folder, each after the path of its file and a tab. Examples: regardant predict
    runs/sst2 "A moving film." and, for a run of question_answering, regardant predict runs/qa-demo
    '{"question": "Who sees the cat?", "context": "The judge sees the cat."}'"""
    from regardant.run import load

    if items and source is not None:
        raise ConfigError(f"items were given as arguments and by --input {source}: leave one of them out")
    loaded = load(run)
    given = loaded.items_of(items or [])
    by_path = given != (items or [])
    on_terminal = not items and source is None and stdin().isatty()
    with ExitStack() as opened:
        if given:
            lines = read_lines(one.encode(errors="surrogateescape") for one in given)
        else:
            lines = read_lines(stdin() if source is None else opened.enter_context(_opened(source)))
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
    from regardant.training.checkpoints import write_atomically

    as_text = "".join(_as_line(one, by_path) + "\n" for one in found)
    write_atomically(output, json.dumps(predictions, ensure_ascii=False) + "\n" if as_json else as_text)
    say(f"wrote {output}")


@app.command()
def translate(
    run: RunFolder,
    text: Annotated[
        list[str] | None, typer.Argument(metavar="TEXT", help="Sentences. Without any, stdin, a line each.")
    ] = None,
    beam_size: BeamSize = None,
    length_penalty: Penalty = None,
    nbest: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Translations a line, best first, between tabs.")
    ] = None,
    no_repeat_ngram_size: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="No N tokens in a row twice; 0 allows every repetition.")
    ] = None,
    prefix: Annotated[str | None, typer.Option(metavar="TEXT", help="How every translation must begin.")] = None,
    engine: Engine = "torch",
    score: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Translate nothing: print the log-probability, in nats, of each line of FILE "
            "as the translation of the same line.",
        ),
    ] = None,
    with_scores: Annotated[bool, typer.Option("--with-scores", help="Score and tab before each translation.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
) -> None:
    """Translate sentences. From stdin to stdout, a line for a line, an empty line for a blank one. Options that
    are not given are as the recipe says."""
    from regardant.run import load

    options = {
        "beam_size": beam_size,
        "length_penalty": length_penalty,
        "nbest": nbest,
        "no_repeat_ngram_size": no_repeat_ngram_size,
    }
    given = with_scores or prefix is not None or engine != "torch" or any(one is not None for one in options.values())
    if score is not None and given:
        raise ConfigError("--score writes no translations: leave out all other options but --json")
    loaded = load(run)
    lines = read_lines((one.encode(errors="surrogateescape") for one in text) if text else stdin())
    if score is not None:
        _print_log_probabilities(loaded, list(lines), score, as_json)
        return
    at_once = 1 if not text and stdin().isatty() else LINES_AT_ONCE
    done = 0
    while batch := _cut(islice(lines, at_once), done):
        prefixes = None if prefix is None else [prefix] * len(batch)
        for number, translation in enumerate(
            loaded.translate(batch, prefixes=prefixes, engine=engine, **options), done + 1
        ):
            for note in translation.notes:
                say(f"line {number}: {note}")
            _print_translation(translation, with_scores, as_json)
        sys.stdout.flush()
        done += len(batch)


@app.command()
def generate(
    run: RunFolder,
    prompt: Annotated[str | None, typer.Argument(metavar="PROMPT", help="How it begins; else by a line end.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, metavar="N", help="Tokens to write.")] = None,
    temperature: Annotated[
        float | None, typer.Option(min=0, metavar="T", help="1: as the model has learned; 0: the likeliest token.")
    ] = None,
    top_k: Annotated[int | None, typer.Option(min=1, metavar="K", help="Draw from the K likeliest tokens.")] = None,
    top_p: Annotated[
        float | None, typer.Option(metavar="P", help="Draw from the fewest tokens that have the share P together.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Decides what is drawn.")] = 0,
    samples: Annotated[int, typer.Option(min=1, metavar="N", help="Texts to write, between lines of dashes.")] = 1,
) -> None:
    """Go on with a text, as a language model has learned to. Written as it is drawn. Options that are not given are
    as the recipe says."""
    from regardant.run import load

    options = {"max_tokens": max_tokens, "temperature": temperature, "top_k": top_k, "top_p": top_p}
    begun = "\n" if prompt is None else prompt.encode(errors="surrogateescape").decode(errors="replace")
    loaded = load(run)
    for sample in range(samples):
        for piece in loaded.stream(begun, sample=sample, seed=seed, **options):
            print(piece, end="", flush=sys.stdout.isatty())
        print(end="\n" if sample == samples - 1 else f"\n{'-' * 15}\n")


@app.command()
def inspect(
    run: RunFolder,
    text: Annotated[
        str,
        typer.Argument(
            metavar="ITEM",
            help="A text; a file, where items are not text; or a question with its context (see predict).",
        ),
    ],
    target: Annotated[
        str | None, typer.Option(metavar="TEXT", help="For a translator: the translation. [default: its own]")
    ] = None,
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            dir_okay=False,
            help=".html: a page to look around in, which needs no network; .svg and .png: all heads side by side; "
            ".json: the numbers.",
        ),
    ] = Path("attention.html"),
) -> None:
    """Draw all attention over one item. Every layer, head and kind, while the model reads it and answers: by a
    translation, the likeliest next tokens, or a class. Example: regardant inspect runs/sst2 "a fine film" """
    from regardant.run import load
    from regardant.tasks.inspection import require_format

    require_format(out)
    read, *given = read_lines(one.encode(errors="surrogateescape") for one in (text, target) if one is not None)
    found = load(run).inspect(read, *given)
    found.save(out)
    print(found.answer)
    say(f"kept in {out}")


@app.command()
def studio(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="RUN...", help="Folders of runs, or that hold runs. If not given, those under runs/."),
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="Of this machine; 0 is any free one.")
    ] = 8421,
) -> None:
    """Look at runs in a browser. Live curves while they train, translations and all attention, each step of it with
    its numbers, and a lab. On this machine alone; Ctrl-C ends it."""
    from regardant.studio.serve import serve

    serve(runs or [Path("runs")], port, say)


@app.command()
def export(
    run: RunFolder,
    to: Annotated[str, typer.Option(metavar="FORMAT", help="ctranslate2.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to make.")],
    quantization: Annotated[
        str, typer.Option(metavar="TYPE", help="How weights are stored: int8, int16, float16, bfloat16 or float32.")
    ] = "int8",
) -> None:
    """Write the model of a run for another program. ctranslate2: a folder that ctranslate2.Translator opens, and the
    tokenizer beside it."""
    from regardant.run import load

    load(run).export(to, out, quantization)
    say(f"wrote {out}")


def _predictions(run: "Run", lines: Iterator[str], at_once: int) -> "Iterator[Prediction]":
    """Return the answer to each line, and write its notes to stderr. A blank line has an empty answer."""
    from regardant.tasks.base import Prediction

    done = 0
    while batch := list(islice(lines, at_once)):
        asked = [line for line in batch if line.strip()]
        answers = iter(run.predict(asked) if asked else ())
        for number, line in enumerate(batch, done + 1):
            found = next(answers) if line.strip() else Prediction(line, "", {})
            for note in found.notes:
                say(f"item {number}: {note}")
            yield found
        done += len(batch)


def _cut(lines: Iterator[str], done: int) -> list[str]:
    """Return lines as far as they are translated. What is left out is said before the work begins."""
    from regardant.modalities.text import first_of_line

    cut = []
    for number, line in enumerate(lines, done + 1):
        first, notes = first_of_line(line)
        for note in notes:
            say(f"line {number}: {note}")
        cut.append(first)
    return cut


def _as_line(found: "Prediction", by_path: bool) -> str:
    return _one_line(f"{found.item}\t{found.answer}" if by_path else found.answer)


def _opened(file: Path) -> BinaryIO:
    try:
        return file.open("rb")
    except OSError as error:
        raise DataError(
            f"--input {file} cannot be read ({error.strerror}): give a file with one item a line"
        ) from error


def _one_line(text: str) -> str:
    return re.sub(r"[\r\n]+", " ", text)


def _print_log_probabilities(run: "Run", sources: list[str], file: Path, as_json: bool) -> None:
    with file.open("rb") as lines:
        targets = list(read_lines(lines, f"{file} "))
    for source, target, score in zip(sources, targets, run.score(sources, targets), strict=True):
        if as_json:
            print_json({"source": source, "target": target, "score": score})
        else:
            print(f"{score:.4f}")


def _print_translation(translation: "GeneratedText", with_scores: bool, as_json: bool) -> None:
    if as_json:
        candidates = [{"text": c.text, "score": c.score, "tokens": c.tokens} for c in translation.candidates]
        print_json({"source": translation.source, "translations": candidates, "notes": translation.notes})
        return
    cells = [f"{c.score:.4f}\t{c.text}" if with_scores else c.text for c in translation.candidates]
    print("\t".join(cells))
