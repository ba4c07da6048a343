"""The command line: parses, calls `regardant.run`, prints. Torch is imported only when a verb needs it.

Results go to stdout, all else to stderr. Text is UTF-8 whatever the locale, and a line ends at a line feed and nowhere
else. Exit codes: 0 done, 1 a check failed or stdout was closed, 2 something the user can mend, 130 interrupted.
"""

import io
import json
import os
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regardant import __version__
from regardant.errors import ConfigError, RegardantError

if TYPE_CHECKING:
    from regardant.run import Run
    from regardant.tasks.translation.config import TranslationConfig
    from regardant.tasks.translation.translator import Translation

PENALTY_HELP = "Rank by log-probability / length ** ALPHA; length in tokens, EOS counted; 0 ranks by the sum alone."
DATA_HELP = """Other pairs to test on. Given twice: a file of sentences and one of their translations, a line each.
Given once: a .jsonl, .parquet, .csv or .tsv table with columns named source and target; a .csv or .tsv of just two
columns, source first, needs no line of names."""
MINE_HELP = """Check scaled dot-product attention of your own: function(q, k, v) of tensors [n, d], [m, d] and [m, e]
gives [n, e]. It may take mask=, [n, m], True where a query may see a key."""
ENGINE_HELP = """What searches: torch, or ctranslate2, which the model is exported to once. Its weights are int8 unless
ctranslate2-float32 or the like is given."""
LINES_AT_ONCE = 512
UTF8_BOM = b"\xef\xbb\xbf"

app = typer.Typer(
    help="Train, look inside and ship attention models on your own data.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Recipe = Annotated[
    str, typer.Argument(metavar="RECIPE", help="A recipe's name (see `regardant recipes`), a .yaml file or a run.yaml.")
]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="A.B=C", help="Set a field of the recipe; may be repeated.")
]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
BeamSize = Annotated[int | None, typer.Option(min=1, metavar="N", help="Hypotheses followed at once; 1 is greedy.")]
Penalty = Annotated[float | None, typer.Option(min=0, metavar="ALPHA", help=PENALTY_HELP)]
Engine = Annotated[str, typer.Option(metavar="NAME", help=ENGINE_HELP)]


@app.callback(invoke_without_command=True)
def program(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    plugins: Annotated[
        list[str] | None,
        typer.Option("--plugin", metavar="MODULE", help="A module of yours that adds mechanisms; may be repeated."),
    ] = None,
) -> None:
    """Train, look inside and ship attention models on your own data."""
    if version:
        print(f"regardant {__version__}")
        raise typer.Exit
    if plugins:
        from regardant.config.plugins import import_plugins

        import_plugins(plugins)


@app.command()
def train(
    recipe: Recipe,
    overrides: Overrides = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="The run folder. If not given runs/RECIPE, or where the run.yaml is."),
    ] = None,
) -> None:
    """Train into a run folder. The same command goes on where it was interrupted."""
    folder = out or _default_folder(recipe)
    _train(_configuration(recipe, overrides), folder)
    _say(f"translate: regardant translate {folder} 'Your sentence.'")
    _say(f"evaluate:  regardant evaluate {folder}")


@app.command()
def plan(recipe: Recipe, overrides: Overrides = None, as_json: AsJson = False) -> None:
    """Say what training will cost. Parameters, memory, FLOPs and time, measured without an update."""
    from tempfile import TemporaryDirectory

    config = _configuration(recipe, overrides)
    from regardant import run

    with TemporaryDirectory(prefix="regardant-plan-") as folder:
        _, _, planned = run.plan(config, Path(folder), _say)
    if as_json:
        _print_json(planned.as_dict())
    else:
        print("\n".join(planned.lines()))


@app.command()
def evaluate(
    run: RunFolder,
    data: Annotated[list[Path] | None, typer.Option(metavar="FILE", help=DATA_HELP)] = None,
    beam_size: BeamSize = None,
    length_penalty: Penalty = None,
    engine: Engine = "torch",
    as_json: AsJson = False,
) -> None:
    """Score translations of the run's test sets. BLEU, chrF and TER with their signatures; what was scored is
    kept in RUN/evaluation. Options that are not given are as the recipe says."""
    from regardant.run import load, read_test_set
    from regardant.tasks.translation.evaluation import told

    tested = read_test_set(data) if data else None
    scores = load(run).evaluate(data=tested, engine=engine, beam_size=beam_size, length_penalty=length_penalty)
    if as_json:  # the first set's scores, and beside them the other sets by name
        first, *others = scores
        _print_json({**scores[first], **{name: scores[name] for name in others}})
        return
    for name, numbers in scores.items():
        print("\n".join(told(name, numbers)))
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
    from regardant.tasks.translation.comparison_page import told

    comparison = run.compare(runs, page)
    if as_json:
        _print_json(comparison.as_dict())
    else:
        print("\n".join(told(comparison)))
    if page is not None:
        _say(f"open {page} in a browser to see the curves")


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
    lines = _lines((one.encode(errors="surrogateescape") for one in text) if text else sys.stdin.buffer)
    if score is not None:
        _print_log_probabilities(loaded, list(lines), score, as_json)
        return
    at_once = 1 if not text and sys.stdin.isatty() else LINES_AT_ONCE
    done = 0
    while batch := list(islice(lines, at_once)):
        prefixes = None if prefix is None else [prefix] * len(batch)
        for number, translation in enumerate(
            loaded.translate(batch, prefixes=prefixes, engine=engine, **options), done + 1
        ):
            for note in translation.notes:
                _say(f"line {number}: {note}")
            _print_translation(translation, with_scores, as_json)
        sys.stdout.flush()
        done += len(batch)


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
    _say(f"wrote {out}")


@app.command()
def recipes() -> None:
    """List the recipes that come with the package."""
    from regardant import config

    for name in config.recipes():
        print(name)
        for line in config.header(name).splitlines():
            print(f"    {line}")


@app.command()
def verify(
    mine: Annotated[str | None, typer.Option(metavar="MODULE:FUNCTION", help=MINE_HELP)] = None,
    page: Annotated[
        Path | None,
        typer.Option(metavar="FILE", dir_okay=False, help="Write an offline page with all digits and reasons."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check what the lectures on attention claim. Each number as they print it, as it is true and as it is measured
    here, and whether they are right."""
    from regardant.checks.verify import report
    from regardant.checks.verify import verify as run_checks
    from regardant.training.checkpoints import write_atomically

    found = run_checks(mine)
    if page is not None:
        write_atomically(page, report.page(found))
    if as_json:
        _print_json(found.as_dict())
    else:
        print("\n".join(report.told(found)))
    if found.failed:
        raise typer.Exit(1)


@app.command()
def demo(out: Annotated[Path, typer.Option(metavar="RUN", help="The run folder.")] = Path("runs/demo")) -> None:
    """Show it all on the embedded corpus. Trains, evaluates, translates two sentences and draws where it looks."""
    _train(_configuration("demo", None), out)
    evaluate(out)
    from regardant import run

    picture = run.show_lecture_sentences(out, _say)
    print(f"open {picture} in a browser to see where each word comes from")


def main() -> None:
    """The program. What the user or the machine can mend is one line on stderr and exit code 2."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except RegardantError as error:
        _say(f"regardant: {error}")
        sys.exit(2)
    except (MemoryError, RuntimeError) as error:
        from regardant.training.devices import ran_out_of_memory

        if not ran_out_of_memory(error):
            raise
        _say("regardant: memory ran out: take a smaller beam, batch or model; what was saved is kept")
        sys.exit(2)
    except BrokenPipeError:  # `regardant recipes | head -1`
        _give_up_stdout()
        sys.exit(1)
    except OSError as error:  # a full disk, a folder that may not be written
        _give_up_stdout()
        _say(f"regardant: the system refused: {error}; mend that and give the same command again")
        sys.exit(2)


def _configuration(recipe: str, overrides: list[str] | None) -> "TranslationConfig":
    from regardant import config

    if not _is_file(recipe):
        document = config.recipe(recipe)
    else:
        document = config.read_yaml(Path(recipe))
        if isinstance(document.get("asked"), dict):  # the run.yaml of an earlier run
            document = document["asked"]
    from regardant.tasks.translation.config import TranslationConfig  # the first to import torch

    return config.load(TranslationConfig, document, overrides or (), origin=recipe)


def _default_folder(recipe: str) -> Path:
    path = Path(recipe)
    if path.name == "run.yaml":
        return path.parent
    return Path("runs") / (path.stem if _is_file(recipe) else recipe)


def _is_file(recipe: str) -> bool:
    return recipe.endswith((".yaml", ".yml"))


def _train(config: "TranslationConfig", folder: Path) -> None:
    from regardant import run

    outcome = run.train(config, folder, _say)
    cursor = outcome.cursor
    if not outcome.finished:
        _say(f"stopped at update {cursor.update:,}, saved in {folder}; the same command goes on from there")
        raise typer.Exit(130)
    share = cursor.validation_seconds / cursor.seconds if cursor.seconds else 0.0
    _say(
        f"{folder}: {cursor.update:,} updates in {cursor.seconds / 60:.1f} minutes ({share:.0%} of it validation), "
        f"best {config.training.best_by} {abs(cursor.best):.4g} at update {cursor.best_update:,}"
    )


def _print_log_probabilities(run: "Run", sources: list[str], file: Path, as_json: bool) -> None:
    with file.open("rb") as lines:
        targets = list(_lines(lines, f"{file} "))
    for source, target, score in zip(sources, targets, run.score(sources, targets), strict=True):
        if as_json:
            _print_json({"source": source, "target": target, "score": score})
        else:
            print(f"{score:.4f}")


def _print_translation(translation: "Translation", with_scores: bool, as_json: bool) -> None:
    if as_json:
        candidates = [{"text": c.text, "score": c.score, "tokens": c.tokens} for c in translation.candidates]
        _print_json({"source": translation.source, "translations": candidates, "notes": translation.notes})
        return
    cells = [f"{c.score:.4f}\t{c.text}" if with_scores else c.text for c in translation.candidates]
    print("\t".join(cells))


def _lines(raw: Iterable[bytes], place: str = "") -> Iterator[str]:
    for number, line in enumerate(raw, 1):
        text = line.removeprefix(UTF8_BOM) if number == 1 else line
        text = text.removesuffix(b"\n").removesuffix(b"\r")
        try:
            yield text.decode()
        except UnicodeDecodeError:
            _say(f"{place}line {number}: not valid UTF-8, read with replacement characters")
            yield text.decode(errors="replace")


def _print_json(content: Any) -> None:
    print(json.dumps(content, ensure_ascii=False))


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _give_up_stdout() -> None:
    """Python flushes stdout once more on its way out, and would complain once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
