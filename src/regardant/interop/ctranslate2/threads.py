"""Numbers of threads that CTranslate2 decodes with: measured, since speeds differ tenfold and no rule predicts them.

Either as many batches at a time as there are cores, each on one thread, or one batch at a time on all cores. The
second has been seen ten times slower than the first, with int8 weights on two threads; and nearly twice as fast for a
single sentence, beside which no other batch can be decoded, with float32 weights. The result is kept.

FOLDER/threads.json    the number of cores, the chosen numbers of threads, sentences per second of both ways
"""

import json
import random
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import ctranslate2

from regardant.data.vocabulary import SPECIAL_TOKENS
from regardant.errors import RunError
from regardant.files import write_atomically

THREADS = "threads.json"
"""File of an export with the measured numbers of threads."""

SENTENCES, LENGTH, BEAM_SIZE = 32, 16, 5
"""Sentences of a probe batch, their tokens, and the beam size. Each core gets one batch. Any model has that many
positions: see `specification.PADDED_TO`."""
ROUNDS = 3
"""Measurements of each way, after one to warm up. The fastest counts, since other load can only slow one down."""
ALONE = 4
"""Probe sentences that are decoded one at a time."""
NEAR_TIE = 1.1
"""Minimum speed-up at which all threads share one batch: separate batches load the cores more evenly."""


class Threads(NamedTuple):
    """Numbers of threads of a CTranslate2 translator."""

    batches: int
    """Batches decoded at the same time (inter_threads)."""
    a_batch: int
    """Threads that share the work of one batch (intra_threads)."""


class Choice(NamedTuple):
    """Numbers of threads by the number of sentences to decode."""

    many: Threads
    """Threads for several sentences."""
    alone: Threads
    """Threads for a single sentence."""


class Speeds(NamedTuple):
    """Sentences per second, of several sentences and of single ones."""

    many: float
    alone: float


def choose_threads(folder: Path, cores: int, vocabulary: Sequence[str]) -> Choice:
    """Return the faster way to use `cores` with the export in `folder`, measured once and kept in the folder."""
    if cores == 1:
        return Choice(Threads(1, 1), Threads(1, 1))
    kept = folder / THREADS
    with suppress(OSError, ValueError, KeyError, TypeError):
        found = json.loads(kept.read_text(encoding="utf-8"))
        if found["cores"] == cores:
            return Choice(Threads(*found["many"]), Threads(*found["alone"]))
    apart, together = Threads(cores, 1), Threads(1, cores)
    speeds = {threads: speeds_of(folder, threads, cores, vocabulary) for threads in (apart, together)}
    gains = (mine / others for mine, others in zip(speeds[together], speeds[apart], strict=True))
    chosen = Choice(*(together if gain > NEAR_TIE else apart for gain in gains))
    content = {
        "cores": cores,
        **chosen._asdict(),
        "sentences_per_second": {
            f"{threads.batches}x{threads.a_batch}": {name: round(value, 1) for name, value in speed._asdict().items()}
            for threads, speed in speeds.items()
        },
    }
    with suppress(RunError):  # another user's run may be read-only: it is measured again next time
        write_atomically(kept, json.dumps(content, indent=1) + "\n")
    return chosen


def speeds_of(folder: Path, threads: Threads, num_batches: int, vocabulary: Sequence[str]) -> Speeds:
    """Measure beam search over random sentences, each decoded to LENGTH tokens."""
    translator = ctranslate2.Translator(str(folder), inter_threads=threads.batches, intra_threads=threads.a_batch)
    draw = random.Random(0)
    words = vocabulary[len(SPECIAL_TOKENS) :]
    batches = [[draw.choices(words, k=LENGTH - 1) for _ in range(SENTENCES)] for _ in range(num_batches)]
    alone = [batches[0][:1]] * ALONE

    def seconds(batches: list[list[list[str]]]) -> float:
        start = time.perf_counter()
        waiting = []
        for batch in batches:
            waiting += translator.translate_batch(
                batch,
                asynchronous=True,
                beam_size=BEAM_SIZE,
                min_decoding_length=LENGTH,
                max_decoding_length=LENGTH,
            )
        for result in waiting:
            result.result()
        return time.perf_counter() - start

    taken = [(seconds(batches), sum(seconds([one]) for one in alone)) for _ in range(1 + ROUNDS)]
    many, one_by_one = map(min, zip(*taken[1:], strict=True))
    return Speeds(num_batches * SENTENCES / many, ALONE / one_by_one)
