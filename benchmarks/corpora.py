"""A stream of ten million pairs: memory, seconds to the first batch, speed beside training, a resume in the middle. And
bulk translation of 100,000 sentences by two actors of Ray Data, one of which is killed on the way.

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
from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from .bars import bar, conclude, lines, rounded
from .records import ROOT, Measurement, arguments

REGARDANT = ROOT / ".venv" / "bin" / "regardant"
RUN = ROOT / "runs" / "bench-corpora"

PAIRS, SENTENCES = 10_000_000, 100_000
SHARDS, SENTENCE_SHARDS = 100, 40
SAME_WITHIN, FIRST_SECONDS, TIMES_TRAINING, OF_PLAIN = 0.03, 20.0, 5.0, 0.9


def write_pairs(folder: Path, count: int) -> None:
    """Write shards of pairs, each of which begins with its own number."""
    random = Random(1)
    words = ["".join(random.choices("aeioubdfgklmnprstv", k=random.randint(2, 9))) for _ in range(4000)]
    texts = [" ".join(random.choices(words, k=random.randint(4, 20))) for _ in range(20_000)]
    size = count // SHARDS
    for shard in range(SHARDS):
        numbers = pa.array([str(number) for number in range(shard * size, (shard + 1) * size)])
        chosen = np.random.default_rng(shard).integers(len(texts), size=(2, size))
        columns = [pc.binary_join_element_wise(numbers, pa.array(texts).take(pa.array(of)), " ") for of in chosen]
        pq.write_table(pa.table(columns, names=["source", "target"]), folder / f"{shard:03}.parquet")


def streamed(folder: Path, run: Path, count: int) -> dict[str, Any]:
    """Read one pass of the stream, with a resume in the middle, and return what was measured."""
    from regardant.planning.plan import plan_run
    from regardant.tasks import load_recipe, task_named
    from regardant.tasks.streaming import StreamedBatches
    from regardant.tasks.translation.learn import streaming
    from regardant.training.devices import the_device

    begun = time.perf_counter()
    config = load_recipe(
        {
            "task": "translation",
            "data": {"kind": "stream", "shards": str(folder), "buffer_rows": min(50_000, count // 8)},
            "training": {"max_minutes": 5.0, "processes": 1},
        }
    )
    prepared = task_named("translation").prepare(config, run, print)
    job = prepared.job
    seen = np.zeros(count, np.uint8)
    data, held_out = config.data, config.data.leave_out(config.seed)

    def opened() -> StreamedBatches:
        stream = streaming.stream_of(job.config, job.corpus)
        encode = stream.encode

        def numbered(rows: list[Any]) -> Any:
            buffer = encode(rows)
            trained = data.training_pairs(rows, held_out)
            buffer.numbers = np.array([int(source.split(" ", 1)[0]) for source, _ in trained])
            return buffer

        stream.encode = numbered
        return StreamedBatches(stream, config.seed)

    batches = opened()
    batches.load(batches.plan(0)[0])
    first = time.perf_counter() - begun
    begun, tokens, rows, memory, buffer, resumed = time.perf_counter(), 0, 0, [], 0, False
    while batches.positions[0].passes == 0:
        planned = batches.plan(buffer)
        for number, batch in enumerate(planned):
            if not resumed and rows > count / 2 and number == len(planned) // 2:  # in the middle of a buffer
                state = json.loads(json.dumps(batches.state_dict()))
                batches, resumed = opened(), True
                batches.load_state_dict(state)
                planned = batches.plan(buffer)
            batch = planned[number]
            tokens += batches.load(batch).count
            np.add.at(seen, batch.buffer.numbers[batch.rows], 1)
            rows += len(batch.rows)
        memory.append((rows / count, resident()))
        buffer += 1
        batches.plan(buffer)
    seconds = time.perf_counter() - begun
    _, planned = plan_run(prepared, the_device(), print)
    return {
        "seconds_to_first_batch": rounded(first),
        "target_tokens_per_second": rounded(tokens / seconds),
        "training_target_tokens_per_second": rounded(planned.tokens_per_second),
        "memory_of_tenths": [
            max((held for share, held in memory if tenth / 10 <= share < (tenth + 1) / 10 + 1e-9), default=0)
            for tenth in range(10)
        ],
        "buffers": buffer,
        "wrong_rows": int((seen > 1).sum())
        + sum(int(seen[int(source.split(" ", 1)[0])]) == 0 for source, _ in _trained(data, held_out)),
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def _trained(data: Any, held_out: Any) -> Iterator[tuple[str, str]]:
    """Yield the pairs of all shards that are to be trained on."""
    from regardant.data.shards import read_rows

    for rows, _ in read_rows(data.found(), ("source", "target")):
        yield from data.training_pairs(rows, held_out)


def resident() -> int:
    """Return the memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def bulk(folder: Path, count: int) -> dict[str, Any]:
    """Translate sentences of the grammar by the plain command and by actors, one of which is killed."""
    from regardant.data.grammar import corpus

    if not (RUN / "model.safetensors").is_file():
        subprocess.run([REGARDANT, "train", "demo", "--out", RUN], check=True)
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
        [REGARDANT, "translate", RUN, "--input", folder / "in.txt", "--output", folder / "out.txt"], check=True
    )
    seconds["plain command"] = time.perf_counter() - begun
    begun, out = time.perf_counter(), folder / "out"
    command = [REGARDANT, "translate", RUN, "--data", folder / "in", "--out", out, "--on", "ray"]
    working = subprocess.Popen(command)
    while working.poll() is None and len(list(out.glob("part-*"))) < SENTENCE_SHARDS // 4:
        time.sleep(0.2)
    killed = actors()[0]
    os.kill(killed, signal.SIGKILL)
    if working.wait():
        raise RuntimeError("bulk translation failed")
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


def actors() -> list[int]:
    """Return the processes of actors that answer."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if b"ray::MapWorker" in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:  # it has ended
            continue
    return found


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--sentences", type=int, default=SENTENCES)
    parser.add_argument("--worker", nargs=2, metavar=("FOLDER", "RUN"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        print(json.dumps(streamed(Path(given.worker[0]), Path(given.worker[1]), given.pairs)))
        return
    whole = given.pairs == PAIRS and given.sentences == SENTENCES
    measurement = Measurement(scratch=given.scratch or not whole)
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pairs").mkdir()
        write_pairs(folder / "pairs", given.pairs)
        worker = [sys.executable, "-m", "benchmarks.corpora", "--pairs", str(given.pairs), "--worker"]
        said = subprocess.run(
            [*worker, folder / "pairs", folder / "run"], check=True, stdout=subprocess.PIPE, text=True
        ).stdout
        stream = json.loads(said.splitlines()[-1])
    with TemporaryDirectory() as name:
        translated = bulk(Path(name), given.sentences)
    tenths, seconds = stream["memory_of_tenths"], translated["seconds"]
    bars = [
        bar("memory of the last tenth over the second", rounded(tenths[-1] / tenths[1]), 1 + SAME_WITHIN),
        bar("seconds to the first batch", stream["seconds_to_first_batch"], FIRST_SECONDS),
        bar(
            "loader over training, target tokens a second",
            rounded(stream["target_tokens_per_second"] / stream["training_target_tokens_per_second"]),
            TIMES_TRAINING,
            at_least=True,
        ),
        bar("rows seen twice or never", stream["wrong_rows"], 0),
        bar(
            "two actors, one killed, over the plain command",
            rounded(seconds["plain command"] / seconds["two actors, one killed"]),
            OF_PLAIN,
            at_least=True,
        ),
        bar("share of sentences in order", float(translated["in_order"]), 1, at_least=True),
    ]
    print(*lines(bars), sep="\n")
    measurement.keep(
        "corpora",
        {
            "command": "make bench-corpora",
            "pairs": given.pairs,
            "sentences": given.sentences,
            "stream": stream,
            "bulk": translated,
            "bars": bars,
        },
    )
    conclude(bars)


if __name__ == "__main__":
    main()
