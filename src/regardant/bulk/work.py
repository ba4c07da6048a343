"""Description of bulk work, and the answering of one shard."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from regardant.data.addresses import Shard, storage, write_whole
from regardant.data.shards import read_shard_rows
from regardant.errors import RegardantError
from regardant.run.blank_items import answer_where_text

if TYPE_CHECKING:
    import pyarrow as pa

    from regardant.run import Run

ROWS_A_FILE = 5000
"""Number of rows of an output file, and the most rows that are computed again after a worker is killed."""

Cells = list[str | None]
"""Column of the input. None: the row has no text in this column."""


@dataclass(frozen=True)
class Work:
    """A verb of a run, with its options, over columns of a corpus."""

    run: str
    """The folder of the run."""
    verb: str
    """A name of VERBS."""
    columns: tuple[str, ...]
    """Columns of the input that are read."""
    options: Mapping[str, Any]
    """Options of the verb."""
    out: str
    """The address of the output folder."""


class Numbered(NamedTuple):
    """A shard of the input with its number."""

    number: int
    shard: Shard


def answer_shard(work: Work, run: "Run", numbered: Numbered) -> int:
    """Write the answers to a shard, except files that exist already. Returns the number of rows of the shard."""
    import pyarrow.parquet as pq

    total = 0
    for file, rows in zip(count(), _read(numbered.shard, work.columns), strict=False):
        first, total = total + 1, total + len(rows[0])
        address = f"{work.out}/part-{numbered.number:05}-{file:05}.parquet"
        files, path = storage(address)
        if not files.exists(path):
            with _placed(f"{numbered.shard.address} rows {first:,} to {total:,}"):
                table = VERBS[work.verb](run, *rows, **work.options)
            write_whole(address, lambda sink, table=table: pq.write_table(table, sink))
    write_whole(f"{work.out}/_done/{numbered.number:05}", lambda sink: sink.write(b"%d\n" % total))
    return total


@contextmanager
def _placed(rows: str) -> Iterator[None]:
    """Prefix the message of a RegardantError with the rows that were being answered."""
    try:
        yield
    except RegardantError as error:
        raise error.within(rows) from error


def _read(shard: Shard, columns: Sequence[str]) -> Iterator[list[Cells]]:
    """Yield the columns of the input, ROWS_A_FILE rows at a time."""
    waiting: list[tuple[Any, ...]] = []
    for rows, _ in read_shard_rows([shard], columns):
        waiting += [row.cells for row in rows]
        while len(waiting) >= ROWS_A_FILE:
            yield _columns(waiting[:ROWS_A_FILE])
            waiting = waiting[ROWS_A_FILE:]
    if waiting:
        yield _columns(waiting)


def _columns(rows: Sequence[tuple[Any, ...]]) -> list[Cells]:
    return [[cell if isinstance(cell, str) else None for cell in column] for column in zip(*rows, strict=True)]


def _translate(run: "Run", sources: Cells, **options: Any) -> "pa.Table":
    import pyarrow as pa

    found = run.translate([source or "" for source in sources], **options)
    best = [one.candidates[0] if one.candidates else None for one in found]
    return pa.table(
        {
            "source": pa.array(sources, pa.string()),
            "translation": pa.array([one.text if one else "" for one in best], pa.string()),
            "score": pa.array([one.score if one else None for one in best], pa.float32()),
        }
    )


def _predict(run: "Run", items: Cells) -> "pa.Table":
    import pyarrow as pa

    found = answer_where_text(items, run.predict)
    return pa.table(
        {
            "item": pa.array(items, pa.string()),
            "answer": pa.array([one.answer if one else "" for one in found], pa.string()),
            "details": pa.array([json.dumps(dict(one.details)) if one else None for one in found], pa.string()),
        }
    )


def _encode(run: "Run", texts: Cells) -> "pa.Table":
    import pyarrow as pa

    found = answer_where_text(texts, lambda given: run.sentence_encoder.encode(given).tolist())
    return pa.table({"text": pa.array(texts, pa.string()), "vector": pa.array(found, pa.list_(pa.float32()))})


def _score(run: "Run", sources: Cells, targets: Cells) -> "pa.Table":
    """Return the score of each pair, null for one that lacks a side or is longer than the model's maximum length."""
    import pyarrow as pa

    translator = run.translator
    whole = [
        (row, source, target)
        for row, (source, target) in enumerate(zip(sources, targets, strict=True))
        if source is not None and target is not None
    ]
    read = translator.encode([source for _, source, _ in whole])
    written = translator.tokenizer.encode_batch([target for _, _, target in whole])
    lengths = translator.lengths(read, written)
    fits = [number for number, length in enumerate(lengths) if length <= translator.max_length]
    found = translator.scores([read[number] for number in fits], [written[number] for number in fits])
    scores: list[float | None] = [None] * len(sources)
    for number, score in zip(fits, found, strict=True):
        scores[whole[number][0]] = score
    columns = {"source": pa.array(sources, pa.string()), "target": pa.array(targets, pa.string())}
    return pa.table({**columns, "score": pa.array(scores, pa.float32())})


VERBS: dict[str, Callable[..., "pa.Table"]] = {
    "translate": _translate,
    "predict": _predict,
    "encode": _encode,
    "score": _score,
}
"""Function that answers columns of the input with a table, by verb."""
