"""Numbers of threads that CTranslate2 decodes with: measured, since speeds differ tenfold and no rule tells them.

Either as many batches at a time as there are cores, each on one thread, or one batch at a time on all of them. The
second has been seen ten times slower than the first, with int8 weights on two threads; and for a sentence that comes
alone, where nothing can be decoded beside it, nearly twice as fast, with weights in float32. What was found is kept.

FOLDER/threads.json    the cores it was measured on, what was chosen, sentences a second of both
"""

import json
import os
import random
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import ctranslate2

from regardant.data.vocabulary import SPECIAL_TOKENS

THREADS = "threads.json"
"""File of an export that keeps the measured threads."""

SENTENCES, LENGTH, BEAM_SIZE = 32, 16, 5
"""Sizes of a batch of the probe, one batch for each core. Any model has that many positions:
see `specification.PADDED_TO`."""
ROUNDS = 3
"""Times that a way is measured, after one to warm up. The best counts, since other work can only slow it down."""
ALONE = 4
"""Sentences of the probe that come one after the other."""
NEAR_TIE = 1.1
"""Least ratio of speeds for all threads on one batch: batches by themselves fill the cores more evenly."""


class Threads(NamedTuple):
    """Numbers of threads of a CTranslate2 translator."""

    batches: int
    """Decoded at the same time (inter_threads)."""
    a_batch: int
    """Threads that share the work of one batch (intra_threads)."""


class Choice(NamedTuple):
    """Numbers of threads by the amount of text to decode."""

    many: Threads
    """Any number of sentences."""
    alone: Threads
    """One of them."""


class Speeds(NamedTuple):
    """Sentences a second."""

    many: float
    alone: float


def choose_threads(folder: Path, cores: int, vocabulary: Sequence[str]) -> Choice:
    """Return the faster ways to use that many cores for the export in `folder`, measured there once."""
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
    with suppress(OSError):  # another one's run, which may be read only: measured again next time
        part = kept.with_name(f"{kept.name}.{os.getpid()}")
        part.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        os.replace(part, kept)
    return chosen


def speeds_of(folder: Path, threads: Threads, num_batches: int, vocabulary: Sequence[str]) -> Speeds:
    """Measure beam search over random sentences, each decoded to the same length."""
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
