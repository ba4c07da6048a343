"""The command line: parses, calls `regardant.run`, prints. Torch is imported only when a verb needs it."""

import json
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regardant.errors import RegardantError

if TYPE_CHECKING:
    from regardant.run import Run
    from regardant.tasks.translation.config import TranslationConfig
    from regardant.tasks.translation.translator import Translation

PENALTY_HELP = "Rank by log-probability / length ** ALPHA, EOS counted; 0 ranks by the sum alone."
LINES_AT_ONCE = 512

app = typer.Typer(
    help="Train, look inside and ship attention models on your own data.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Recipe = Annotated[str, typer.Argument(help="The name of a recipe (see `regardant recipes`) or a YAML file.")]
Overrides = Annotated[list[str] | None, typer.Option("--set", metavar="A.B=C", help="Set a field; may be repeated.")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
BeamSize = Annotated[int | None, typer.Option(min=1, help="Hypotheses followed at once; 1 is greedy.")]
Penalty = Annotated[float | None, typer.Option(min=0, metavar="ALPHA", help=PENALTY_HELP)]


@app.command()
def train(
    recipe: Recipe,
    overrides: Overrides = None,
    out: Annotated[Path | None, typer.Option(help="The run folder; runs/RECIPE if not given.")] = None,
) -> None:
    """Train into a run folder; the same command goes on where it was interrupted."""
    config = _configuration(recipe, overrides)
    folder = out or Path("runs") / Path(recipe).stem
    if not _train(config, folder):
        raise typer.Exit(130)
    _say(f"translate: regardant translate {folder} 'Your sentence.'")
    _say(f"evaluate:  regardant evaluate {folder}")


@app.command()
def plan(recipe: Recipe, overrides: Overrides = None, as_json: AsJson = False) -> None:
    """Parameters, memory, FLOPs and expected time, before training."""
    from tempfile import TemporaryDirectory

    from regardant import run

    config = _configuration(recipe, overrides)
    with TemporaryDirectory(prefix="regardant-plan-") as folder:
        _, _, planned = run.plan(config, Path(folder), _say if not as_json else _nothing)
    if as_json:
        _print_json(planned.as_dict())


@app.command()
def evaluate(
    run: RunFolder,
    data: Annotated[
        list[Path] | None, typer.Option(help="Other pairs to test on: two files (source, then target), or a table.")
    ] = None,
    beam_size: BeamSize = None,
    length_penalty: Penalty = None,
    as_json: AsJson = False,
) -> None:
    """BLEU, chrF and TER with signatures on the run's test sets; hypotheses are kept in RUN/evaluation."""
    from regardant.tasks.translation.evaluation import told

    scores = _load(run).evaluate(data=_test_set(data), beam_size=beam_size, length_penalty=length_penalty)
    if as_json:
        first, *others = scores
        _print_json({**scores[first], **{name: scores[name] for name in others}})
        return
    for name, numbers in scores.items():
        for line in told(name, numbers):
            print(line)
    print(f"kept in {run / 'evaluation'}")


@app.command()
def translate(
    run: RunFolder,
    text: Annotated[list[str] | None, typer.Argument(help="Sentences; without any, stdin line for line.")] = None,
    beam_size: BeamSize = None,
    length_penalty: Penalty = None,
    nbest: Annotated[int | None, typer.Option(min=1, help="Translations a line, tab-separated, best first.")] = None,
    no_repeat_ngram_size: Annotated[int | None, typer.Option(min=0, help="No n tokens in a row twice.")] = None,
    prefix: Annotated[str | None, typer.Option(help="How every translation must begin.")] = None,
    target: Annotated[
        Path | None, typer.Option("--score", help="Score these translations instead, a line each.")
    ] = None,
    with_scores: Annotated[bool, typer.Option("--with-scores", help="Score before each translation.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Translate: stdin to stdout, a line for a line, an empty line for an empty line."""
    loaded = _load(run)
    lines: Iterable[str] = text or (line.rstrip("\r\n") for line in _stdin())
    if target is not None:
        _print_scores(loaded, list(lines), target)
        return
    options = {
        "beam_size": max(beam_size or loaded.config.generation.beam_size, nbest or 1) if nbest else beam_size,
        "length_penalty": length_penalty,
        "nbest": nbest,
        "no_repeat_ngram_size": no_repeat_ngram_size,
    }
    at_once = 1 if text is None and sys.stdin.isatty() else LINES_AT_ONCE
    number = 0
    for batch in _batched(lines, at_once):
        prefixes = None if prefix is None else [prefix] * len(batch)
        for translation in loaded.translate(batch, prefixes=prefixes, **options):
            number += 1
            for note in translation.notes:
                _say(f"line {number}: {note}")
            _print_translation(translation, with_scores, as_json)
        sys.stdout.flush()


@app.command()
def recipes() -> None:
    """The recipes that come with the package, with what each promises."""
    from regardant import config

    for name in config.recipes():
        print(name)
        for line in config.header(name).splitlines():
            print(f"    {line}")


@app.command()
def demo(out: Annotated[Path, typer.Option(help="The run folder.")] = Path("runs/demo")) -> None:
    """Train the embedded default, evaluate it, translate two sentences and draw what it looks at."""
    from regardant import run

    if not _train(_configuration("demo", None), out):
        raise typer.Exit(130)
    evaluate(out)
    picture = run.show_lecture_sentences(out, _say)
    print(f"open {picture} in a browser to see where each word comes from")


def main() -> None:
    """The program. A user's mistake is one line on stderr and exit code 2."""
    try:
        app()
    except RegardantError as error:
        print(f"regardant: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:  # `regardant translate RUN < a.en | head`
        sys.stderr.close()
        sys.exit(0)


def _configuration(recipe: str, overrides: list[str] | None) -> "TranslationConfig":
    from regardant import config

    path = Path(recipe)
    is_file = path.suffix in (".yaml", ".yml") or path.is_file()
    document = config.read_yaml(path) if is_file else config.recipe(recipe)
    if is_file and "config" in document and "asked" in document:  # the run.yaml of an earlier run
        document = document["asked"]
    from regardant.tasks.translation.config import TranslationConfig

    return config.load(TranslationConfig, document, overrides or (), origin=recipe)


def _train(config: "TranslationConfig", folder: Path) -> bool:
    """Whether training ended, or was interrupted."""
    from regardant import run

    outcome = run.train(config, folder, _say)
    cursor = outcome.cursor
    if not outcome.finished:
        _say(f"stopped at update {cursor.update:,}, saved in {folder}; the same command goes on from there")
        return False
    share = cursor.validation_seconds / cursor.seconds if cursor.seconds else 0.0
    _say(
        f"{folder}: {cursor.update:,} updates in {cursor.seconds / 60:.1f} minutes ({share:.0%} of it validation), "
        f"best {config.training.best_by} {abs(cursor.best):.4g} at update {cursor.best_update:,}"
    )
    return True


def _load(folder: Path) -> "Run":
    from regardant import run

    return run.load(folder)


def _test_set(data: list[Path] | None) -> Any:
    from regardant import run

    return None if not data else run.read_test_set(data)


def _print_scores(run: "Run", sources: list[str], target: Path) -> None:
    from regardant.errors import DataError

    try:
        targets = target.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{target} cannot be read ({error}): give a UTF-8 text file, a line a translation") from None
    for score in run.score(sources, targets):
        print(f"{score:.4f}")


def _print_translation(translation: "Translation", with_scores: bool, as_json: bool) -> None:
    if as_json:
        candidates = [{"text": c.text, "score": c.score, "tokens": c.tokens} for c in translation.candidates]
        _print_json({"source": translation.source, "translations": candidates, "notes": translation.notes})
        return
    cells = [f"{c.score:.4f}\t{c.text}" if with_scores else c.text for c in translation.candidates]
    print("\t".join(cells))


def _stdin() -> Iterator[str]:
    for number, line in enumerate(sys.stdin.buffer, 1):
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError:
            _say(f"line {number}: not valid UTF-8, read with replacement characters")
            yield line.decode("utf-8", errors="replace")


def _batched(lines: Iterable[str], size: int) -> Iterator[list[str]]:
    iterator = iter(lines)
    while batch := list(islice(iterator, size)):
        yield batch


def _print_json(content: Any) -> None:
    print(json.dumps(content, ensure_ascii=False))


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _nothing(text: str) -> None:
    """Says nothing."""
