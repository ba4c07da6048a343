"""How many threads CTranslate2 decodes with: measured, since it differs tenfold and no rule foretells it.

Either as many batches at a time as there are cores, each on one thread, or one batch at a time on all of them. The
second has been seen ten times slower than the first, with int8 weights on two threads. What was found is kept.

FOLDER/threads.json    the cores it was measured on, what was chosen, sentences a second of both
"""

import json
import os
import random
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import ctranslate2

from regardant.data.vocabulary import SPECIAL_TOKENS

SENTENCES, LENGTH, BEAM_SIZE = 8, 16, 5
"""Of a batch of the probe, two for every core. Any model has that many positions: see `specification.PADDED_TO`."""
NEAR_TIE = 1.1
"""How much faster all threads on one batch must be to be chosen: batches by themselves fill the cores more evenly."""


@dataclass(frozen=True)
class Threads:
    """What a CTranslate2 translator is built with."""

    batches: int
    """Decoded at the same time (inter_threads)."""
    a_batch: int
    """That share the work of one (intra_threads)."""


def choose_threads(folder: Path, cores: int, vocabulary: Sequence[str]) -> Threads:
    """The faster way to use that many cores for the export in `folder`, measured there once."""
    if cores == 1:
        return Threads(1, 1)
    kept = folder / "threads.json"
    with suppress(OSError, ValueError, KeyError, TypeError):
        found = json.loads(kept.read_text(encoding="utf-8"))
        if found["cores"] == cores:
            return Threads(found["batches"], found["a_batch"])
    apart, together = Threads(cores, 1), Threads(1, cores)
    speeds = {threads: sentences_per_second(folder, threads, 2 * cores, vocabulary) for threads in (apart, together)}
    chosen = together if speeds[together] > NEAR_TIE * speeds[apart] else apart
    content = {
        "cores": cores,
        "batches": chosen.batches,
        "a_batch": chosen.a_batch,
        "sentences_per_second": {f"{t.batches}x{t.a_batch}": round(speed, 1) for t, speed in speeds.items()},
    }
    with suppress(OSError):  # another one's run, which may be read only: measured again next time
        part = kept.with_name(f"{kept.name}.{os.getpid()}")
        part.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        os.replace(part, kept)
    return chosen


def sentences_per_second(folder: Path, threads: Threads, num_batches: int, vocabulary: Sequence[str]) -> float:
    """Of beam search over random sentences, each to the same length, whatever the model makes of them."""
    translator = ctranslate2.Translator(str(folder), inter_threads=threads.batches, intra_threads=threads.a_batch)
    draw = random.Random(0)
    words = vocabulary[len(SPECIAL_TOKENS) :]
    batches = [[draw.choices(words, k=LENGTH - 1) for _ in range(SENTENCES)] for _ in range(num_batches)]
    seconds = []
    for _ in range(2):  # the first warms up
        start = time.perf_counter()
        waiting = [
            result
            for batch in batches
            for result in translator.translate_batch(
                batch,
                asynchronous=True,
                beam_size=BEAM_SIZE,
                min_decoding_length=LENGTH,
                max_decoding_length=LENGTH,
            )
        ]
        for result in waiting:
            result.result()
        seconds.append(time.perf_counter() - start)
    return num_batches * SENTENCES / min(seconds)
