"""Preparing a million sentence pairs (cleaning, learning a vocabulary, tokenising), compared with `tokenizers` alone.

    make bench-preparing
    make bench-preparing BENCH="--pairs 50000"        a quick try, written to runs/scratch

Pairs are halves of sentences of Multi30k joined anew, so that words are as frequent as in real text. The library alone
learns a vocabulary from the same lines by the same steps (NFC, white space squeezed, words and marks apart, BPE) and
encodes them; it does not clean, split or write anything.
Each pass is a process of its own, in turn. Its peak of memory is that of anonymous pages, which only swap can free:
`peak_bytes` has those of the mapped text too, which the system drops when another program needs memory.
Written to benchmarks/results/preparing.json.
"""

import argparse
import gzip
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from . import multi30k
from .bars import bar, conclude, lines, rounded
from .records import Measurement, arguments, versions
from .watched import memory_of

PAIRS, FEW, PASSES = 1_000_000, 250_000, 3
VOCAB_SIZE = 8000
OF_LIBRARY, SAME_WITHIN = 0.7, 1.1
POLL_SECONDS = 0.05
"""Seconds between two readings of memory."""
LANGUAGES = ("en", "de")


def write_pairs(folder: Path, count: int) -> None:
    """Write `count` pairs, each the first half of one pair of Multi30k and the second half of another."""
    halves = [[_halves(line) for line in _sentences(language)] for language in LANGUAGES]
    random = Random(1)
    chosen = [(random.randrange(len(halves[0])), random.randrange(len(halves[0]))) for _ in range(count)]
    for language, of_language in zip(LANGUAGES, halves, strict=True):
        with (folder / f"train.{language}").open("w", encoding="utf-8") as file:
            file.writelines(f"{of_language[first][0]} {of_language[second][1]}\n" for first, second in chosen)


def _sentences(language: str) -> Iterator[str]:
    with gzip.open(multi30k.folder() / f"train.{language}.gz", "rt", encoding="utf-8") as file:
        yield from map(str.strip, file)


def _halves(line: str) -> tuple[str, str]:
    words = line.split(" ")
    middle = len(words) // 2
    return " ".join(words[:middle]), " ".join(words[middle:])


def prepare(folder: Path, run: Path) -> int:
    """Prepare the pairs of a folder as training does, before a model is built. Return the pairs kept."""
    from regardant import config
    from regardant.tasks.translation.config import TranslationConfig
    from regardant.tasks.translation.learn.corpus import read_corpus

    asked = [
        f"data.root={folder}",
        "data.source=train.en",
        "data.target=train.de",
        f"tokenizer.vocab_size={VOCAB_SIZE}",
    ]
    recipe = config.load(TranslationConfig, config.recipe("translation"), asked, origin="translation")
    return len(read_corpus(recipe, run, lambda line: None).train)


def library_alone(folder: Path) -> int:
    """Learn a vocabulary from the files of a folder by `tokenizers`, and encode their lines. Return the pairs."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

    files = [folder / f"train.{language}" for language in LANGUAGES]
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    squeezed = normalizers.Replace(Regex(r"\s+"), " ")
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFC(), squeezed, normalizers.Strip(), normalizers.Prepend(" ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r" ?\w+| ?[^\w\s]"), "isolated")
    trainer = trainers.BpeTrainer(vocab_size=VOCAB_SIZE, min_frequency=2, special_tokens=["<unk>"], show_progress=False)
    tokenizer.train([str(path) for path in files], trainer)
    for path in files:
        count = 0
        with path.open(encoding="utf-8") as file:
            while texts := [line.rstrip("\n") for line in islice(file, 10_000)]:
                count += len(tokenizer.encode_batch_fast(texts))
    return count


def _timed(library: str, folder: Path) -> dict[str, Any]:
    """Time Regardant or the library alone in a process of its own."""
    with TemporaryDirectory() as name:
        command = [sys.executable, "-m", "benchmarks.preparing", "--worker", library, str(folder), name]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            peak = 0
            while process.poll() is None:
                peak = max(peak, memory_of(process.pid, "RssAnon") or 0)
                time.sleep(POLL_SECONDS)
            assert process.stdout is not None
            written = process.stdout.read()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    found: dict[str, Any] = json.loads(written.splitlines()[-1])
    return found | {"peak_anonymous_bytes": peak}


def _work(library: str, folder: Path, run: Path) -> dict[str, Any]:
    begun = time.perf_counter()
    kept = prepare(folder, run) if library == "regardant" else library_alone(folder)
    return {
        "pairs": kept,
        "seconds": rounded(time.perf_counter() - begun),
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--worker", nargs=3, metavar=("LIBRARY", "FOLDER", "RUN"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        library, folder, run = given.worker
        print(json.dumps(_work(library, Path(folder), Path(run))))
        return
    measurement = Measurement(scratch=given.scratch or given.pairs != PAIRS)
    with TemporaryDirectory() as name:
        whole, part = Path(name) / "whole", Path(name) / "part"
        for folder, count in ((whole, given.pairs), (part, given.pairs * FEW // PAIRS)):
            folder.mkdir()
            write_pairs(folder, count)
        passes = [{library: _timed(library, whole) for library in ("regardant", "tokenizers")} for _ in range(PASSES)]
        few = _timed("regardant", part)
    ours, theirs = (median(one[library]["seconds"] for one in passes) for library in ("regardant", "tokenizers"))
    peak = max(one["regardant"]["peak_anonymous_bytes"] for one in passes)
    bars = [
        bar("speed of preparing over that of tokenizers alone", theirs / ours, OF_LIBRARY, at_least=True),
        bar("peak memory over that of a quarter of the pairs", peak / few["peak_anonymous_bytes"], SAME_WITHIN),
    ]
    print(*lines(bars), sep="\n")
    result = {
        "command": "make bench-preparing",
        "versions": versions("tokenizers"),
        "pairs": given.pairs,
        "passes": passes,
        "quarter": few,
        "bars": bars,
    }
    measurement.keep("preparing", result)
    conclude(bars)


if __name__ == "__main__":
    main()
