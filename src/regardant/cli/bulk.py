"""Options of bulk work, which several verbs share, and `score`, the verb for bulk work alone."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regardant.cli.lines import Progress, log
from regardant.cli.options import RunFolder, app
from regardant.errors import ConfigError

if TYPE_CHECKING:
    from regardant.bulk.work import Numbered, Work
    from regardant.run import Run

Data = Annotated[
    str | None,
    typer.Option(
        metavar="SHARDS",
        help="Answer all rows of a corpus: a folder or glob of .parquet, .jsonl, .tsv or .txt shards, also "
        "as s3://bucket/folder. Needs --out.",
    ),
]
Out = Annotated[
    str | None,
    typer.Option(
        metavar="FOLDER",
        help="Write the answers to --data here, as sharded Parquet in the order of the rows. Run the same command "
        "again to resume.",
    ),
]
On = Annotated[
    str | None,
    typer.Option(
        metavar="ENGINE",
        help="Where --data is answered: local (this process) or ray (workers on a cluster). [default: local]",
    ),
]
Address = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Cluster of --on ray. Without it, workers are started on this machine."),
]
Column = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Column of --data to read; `text` for .txt shards. [default: text]"),
]


@app.command()
def score(
    run: RunFolder,
    data: Data = None,
    out: Out = None,
    source: Annotated[str, typer.Option(metavar="NAME", help="Column of the sources.")] = "source",
    target: Annotated[str, typer.Option(metavar="NAME", help="Column of the translations.")] = "target",
    on: On = None,
    address: Address = None,
) -> None:
    """Score the sentence pairs of a corpus. The score is the log-probability, in nats, of a translation given its
    source.

    Examples:
        regardant score runs/demo --data pairs --out scores
    """
    if data is None or out is None:
        raise ConfigError("score reads shards: give --data SHARDS and --out FOLDER")
    answer_corpus(run, "score", data, out, (source, target), on, address, {})


def answer_corpus(
    folder: Path,
    verb: str,
    data: str | None,
    out: str | None,
    columns: tuple[str | None, ...],
    on: str | None,
    address: str | None,
    unfit: Mapping[str, object],
    **options: Any,
) -> None:
    """Answer all rows of the shards at `data`, and write the answers to `out`. A column that is not named is `text`.
    Raises RegardantError, also for a value that is given in `unfit`: items, and options of items, by name."""
    if data is None or out is None:
        other = "--output FILE for the answers to items" if "--output" in unfit else "none of them"
        raise ConfigError(f"--data and --out belong together: give both, or {other}")
    if given_too := [name for name, value in unfit.items() if value]:
        raise ConfigError(f"--data answers a corpus: leave out {', '.join(given_too)}")
    on = on or "local"
    if on not in ("local", "ray"):
        raise ConfigError(f"--on {on}: allowed are local and ray")
    if address is not None and on != "ray":
        raise ConfigError(f"--address {address} needs --on ray: give both, or leave --address out")
    from regardant.data.addresses import find_shards

    shards = find_shards(data if "://" in data else str(Path(data).resolve()))
    given = {name: value for name, value in options.items() if value is not None}
    out = out if "://" in out else str(Path(out).resolve())
    with _engine(on, address) as answer:
        from regardant.bulk import Work, begin
        from regardant.run import load

        run = load(folder)
        run.require_verb({"score": "translate"}.get(verb, verb))
        lines: list[str] = []
        if given.get("engine") == "auto":  # chosen here, so that all workers and a resumed command have the same
            choice = run.translation.choose_engine(lines.append)
            lines.append(str(choice))
            given["engine"] = choice.engine
        names = tuple(name or "text" for name in columns)
        work = Work(str(Path(folder).resolve()), verb, names, given, out)
        left = begin(work, shards, run.weights)
        for line in lines:
            log(line)
        if len(left) < len(shards):
            log(f"{len(shards) - len(left):,} of {len(shards):,} shards are answered, {len(left):,} are left")
        with Progress(hidden=False, what="shards") as progress:
            rows = sum(progress.counted(answer(work, run, left)))
    log(f"wrote the answers to {rows:,} rows to {out}")


def require_corpus(**options: object) -> None:
    """Raise ConfigError for options of a corpus without one."""
    if given := ", ".join(name for name, value in options.items() if value is not None):
        raise ConfigError(f"{given} without --data: give --data SHARDS and --out FOLDER, or leave out {given}")


@contextmanager
def _engine(on: str, address: str | None) -> Iterator[Callable[["Work", "Run", "Sequence[Numbered]"], Iterator[int]]]:
    """Yield a function that answers the shards that are left, and yields the number of rows of each."""
    if on == "ray":
        from regardant.bulk.ray_data import cluster

        with cluster(address) as answer:
            yield lambda work, run, left: answer(work, run, left) if left else iter(())
        return
    from regardant.bulk import answer_shard

    yield lambda work, run, left: (answer_shard(work, run, numbered) for numbered in left)
