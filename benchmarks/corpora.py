"""A stream of ten million pairs: memory, seconds to the first batch, speed compared with training, and the rows that a
pass reads, also if it is resumed in the middle. And bulk translation of 100,000 sentences by two actors of Ray Data,
one of which is killed meanwhile.

    make bench-corpora

Written to benchmarks/results/corpora.json. With fewer --pairs or --sentences it writes to runs/scratch alone.
"""

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from .bars import bar, conclude, lines, rounded
from .records import REGARDANT, Measurement, arguments
from .startup import train_demo
from .watched import memory_of, status_of
from .workers import progress

PAIRS, SENTENCES = 10_000_000, 100_000
SHARDS, SENTENCE_SHARDS = 100, 40
SAME_WITHIN, FIRST_SECONDS, TIMES_TRAINING, OF_PLAIN = 0.03, 20.0, 5.0, 0.9


def write_pairs(folder: Path, count: int) -> None:
    """Write shards of pairs; both texts of a pair begin with the number of its row."""
    random = Random(1)
    words = ["".join(random.choices("aeioubdfgklmnprstv", k=random.randint(2, 9))) for _ in range(4000)]
    texts = [" ".join(random.choices(words, k=random.randint(4, 20))) for _ in range(20_000)]
    size = count // SHARDS
    for shard in range(SHARDS):
        numbers = pa.array([str(number) for number in range(shard * size, (shard + 1) * size)])
        chosen = np.random.default_rng(shard).integers(len(texts), size=(2, size))
        columns = [pc.binary_join_element_wise(numbers, pa.array(texts).take(pa.array(of)), " ") for of in chosen]
        pq.write_table(pa.table(columns, names=["source", "target"]), folder / f"{shard:03}.parquet")


Readings = list[tuple[float, int | None]]
"""Shares of the rows read so far, and the resident bytes of the process, None if they are not known."""


class Stream:
    """The stream of a run, whose rows are counted as they are read."""

    def __init__(self, folder: Path, run: Path, count: int) -> None:
        from regardant.tasks import load_recipe, task_named

        self.count, self.half = count, run / "half.json"
        config = load_recipe(
            {
                "task": "translation",
                "data": {"kind": "stream", "shards": str(folder), "buffer_rows": min(50_000, count // 8)},
                "training": {"max_minutes": 5.0, "processes": 1},
            }
        )
        self.prepared = task_named("translation").prepare(config, run, progress)
        self.data, self.held_out = config.data, config.data.leave_out(config.seed)
        self.seen = np.full(count, 0, np.uint8)  # allocated from the beginning, as pages of zeros() are not
        """Number of times that each row was read."""
        self.memory: Readings = []
        """Readings after each buffer."""
        self.tokens = 0

    def open(self) -> Any:
        """Return the batches from the beginning of the stream."""
        from regardant.tasks.streaming import StreamedBatches
        from regardant.tasks.translation.learn import streaming

        job = self.prepared.job
        stream = streaming.stream_of(job.config, job.corpus)
        encode = stream.encode

        def numbered(rows: list[Any]) -> Any:
            buffer = encode(rows)
            trained = self.data.training_pairs(rows, self.held_out)
            buffer.numbers = np.array([int(source.split(" ", 1)[0]) for source, _ in trained])
            return buffer

        stream.encode = numbered
        return StreamedBatches(stream, job.config.seed)

    def read(self, batches: Any, buffer: int = 0, first: int = 0, *, saves: bool) -> int:
        """Read to the end of the pass, from batch `first` of a buffer on, and return the number of buffers.

        saves: in the middle of the buffer in the middle of the pass, save the state that resuming there needs.
        """
        rows = 0
        while batches.positions[0].passes == 0:
            planned = batches.plan(buffer)
            for number in range(first, len(planned)):
                if saves and rows > self.count / 2 and number == len(planned) // 2:
                    saves = False
                    np.save(self.half.with_suffix(".npy"), self.seen)
                    state = {"state": batches.state_dict(), "buffer": buffer, "first": number}
                    self.half.write_text(json.dumps(state), encoding="utf-8")
                batch = planned[number]
                self.tokens += batches.load(batch).count
                np.add.at(self.seen, batch.buffer.numbers[batch.rows], 1)
                rows += len(batch.rows)
            self.memory.append((rows / self.count, memory_of()))
            buffer, first = buffer + 1, 0
            batches.plan(buffer)
        return buffer

    def wrong_rows(self) -> int:
        """Return the number of rows read more than once, and of training rows never read, in total."""
        from regardant.data.shards import read_shard_rows

        trained = (
            int(source.split(" ", 1)[0])
            for rows, _ in read_shard_rows(self.data.found(), ("source", "target"))
            for source, _ in self.data.training_pairs(rows, self.held_out)
        )
        return int((self.seen > 1).sum()) + sum(int(self.seen[number]) == 0 for number in trained)


def streamed(folder: Path, run: Path, count: int) -> dict[str, Any]:
    """Read one pass of the stream, and return the measurements."""
    from regardant.planning.plan import plan_run
    from regardant.training.devices import the_device

    begun = time.perf_counter()
    stream = Stream(folder, run, count)
    batches = stream.open()
    batches.load(batches.plan(0)[0])
    first = time.perf_counter() - begun
    begun = time.perf_counter()
    buffers = stream.read(batches, saves=True)
    seconds = time.perf_counter() - begun
    _, planned = plan_run(stream.prepared, the_device(), progress)
    return {
        "seconds_to_first_batch": rounded(first),
        "target_tokens_per_second": rounded(stream.tokens / seconds),
        "training_target_tokens_per_second": rounded(planned.tokens_per_second),
        "memory_of_tenths": largest_of_tenths(stream.memory),
        "buffers": buffers,
        "wrong_rows": stream.wrong_rows(),
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def largest_of_tenths(readings: Readings) -> list[int | None]:
    """Return the most bytes in each tenth of the rows, None for a tenth without a reading."""
    return [
        max(
            (held for share, held in readings if held and tenth / 10 <= share < (tenth + 1) / 10 + 1e-9),
            default=None,
        )
        for tenth in range(10)
    ]


def resumed(folder: Path, run: Path, count: int) -> dict[str, Any]:
    """Resume in the middle of the pass, as a new process would, and return the measurements."""
    stream = Stream(folder, run, count)
    saved = json.loads(stream.half.read_text(encoding="utf-8"))
    stream.seen = np.load(stream.half.with_suffix(".npy"))
    batches = stream.open()
    batches.load_state_dict(saved["state"])
    stream.read(batches, saved["buffer"], saved["first"], saves=False)
    return {"wrong_rows": stream.wrong_rows()}


def bulk(folder: Path, count: int) -> dict[str, Any]:
    """Translate sentences of the grammar by the plain command and by actors, one of which is killed."""
    from regardant.data.grammar import corpus

    run = train_demo()
    written = corpus(seed=2, train=count, validation=1, test=1, heldout=1)
    sentences = [pair.source for pair in written.train]
    (folder / "in").mkdir()
    size = -(-count // SENTENCE_SHARDS)
    for shard in range(SENTENCE_SHARDS):
        table = pa.table({"text": sentences[shard * size : (shard + 1) * size]})
        pq.write_table(table, folder / "in" / f"{shard:03}.parquet")
    (folder / "in.txt").write_text("".join(f"{sentence}\n" for sentence in sentences), encoding="utf-8")
    seconds = {}
    begun = time.perf_counter()
    subprocess.run(
        [REGARDANT, "translate", run, "--input", folder / "in.txt", "--output", folder / "out.txt"], check=True
    )
    seconds["plain command"] = time.perf_counter() - begun
    begun, out = time.perf_counter(), folder / "out"
    command = [REGARDANT, "translate", run, "--data", folder / "in", "--out", out, "--on", "ray"]
    working = subprocess.Popen(command)
    while working.poll() is None and len(list(out.glob("part-*"))) < SENTENCE_SHARDS // 4:
        time.sleep(0.2)
    if running := actors(working.pid):
        os.kill(running[0], signal.SIGKILL)
    if working.wait():
        raise RuntimeError("bulk translation failed")
    if not running:
        raise RuntimeError("no actor was running, so none was killed")
    seconds["two actors, one killed"] = time.perf_counter() - begun
    rows = [row for path in sorted(out.glob("part-*")) for row in pq.read_table(path).to_pylist()]
    plain = (folder / "out.txt").read_text(encoding="utf-8").split("\n")[:-1]
    return {
        "seconds": {name: rounded(value) for name, value in seconds.items()},
        "in_order": [row["source"] for row in rows] == sentences,
        "equal_translations": rounded(
            sum(row["translation"] == text for row, text in zip(rows, plain, strict=True)) / count
        ),
    }


def actors(program: int) -> list[int]:
    """Return the process ids of the running actors that a program has started. Other programs may have their own."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if b"ray::MapWorker" in path.read_bytes() and is_started_by(program, int(path.parent.name)):
                found.append(int(path.parent.name))
        except OSError:  # it has ended
            continue
    return found


def is_started_by(program: int, process: int | None) -> bool:
    """Return whether a process is a child of a program, or of one of its children, to any depth."""
    while process and process != program:
        process = status_of(process, "PPid")
    return process == program


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--sentences", type=int, default=SENTENCES)
    parser.add_argument("--worker", nargs=3, metavar=("NAME", "FOLDER", "RUN"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        name, *paths = given.worker
        print(json.dumps({"streamed": streamed, "resumed": resumed}[name](*map(Path, paths), given.pairs)))
        return
    whole = given.pairs == PAIRS and given.sentences == SENTENCES
    measurement = Measurement(scratch=given.scratch or not whole)
    stream, again = passes(given.pairs)
    with TemporaryDirectory() as folder:
        translated = bulk(Path(folder), given.sentences)
    bars = judged(stream, again, translated)
    print(*lines(bars), sep="\n")
    measurement.keep(
        "corpora",
        {
            "command": "make bench-corpora",
            "pairs": given.pairs,
            "sentences": given.sentences,
            "stream": stream,
            "resumed": again,
            "bulk": translated,
            "bars": bars,
        },
    )
    conclude(bars)


def passes(count: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the measurements of a pass over a stream of pairs, and of one that is resumed in the middle, each in a
    process of its own."""
    worker = [sys.executable, "-m", "benchmarks.corpora", "--pairs", str(count), "--worker"]
    with TemporaryDirectory() as temporary:
        pairs, run = Path(temporary) / "pairs", Path(temporary) / "run"
        pairs.mkdir()
        write_pairs(pairs, count)
        stream, again = (
            json.loads(
                subprocess.run(
                    [*worker, name, pairs, run], check=True, stdout=subprocess.PIPE, text=True
                ).stdout.splitlines()[-1]
            )
            for name in ("streamed", "resumed")
        )
    return stream, again


def judged(stream: dict[str, Any], again: dict[str, Any], translated: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the bars of a pass, of a resumed one, and of bulk translation."""
    (_, second, *_, last), seconds = stream["memory_of_tenths"], translated["seconds"]
    return [
        bar("memory of the last tenth over the second", last / second if last and second else None, 1 + SAME_WITHIN),
        bar("seconds to the first batch", stream["seconds_to_first_batch"], FIRST_SECONDS),
        bar(
            "loader over training, target tokens a second",
            stream["target_tokens_per_second"] / stream["training_target_tokens_per_second"],
            TIMES_TRAINING,
            at_least=True,
        ),
        bar("rows seen twice or never", stream["wrong_rows"], 0),
        bar("rows seen twice or never, after a resume in the middle", again["wrong_rows"], 0),
        bar(
            "two actors, one killed, over the plain command",
            seconds["plain command"] / seconds["two actors, one killed"],
            OF_PLAIN,
            at_least=True,
        ),
        bar("share of sentences in order", float(translated["in_order"]), 1, at_least=True),
    ]


if __name__ == "__main__":
    main()
