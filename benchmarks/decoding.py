"""How fast the same weights translate test2016 of Multi30k: ours, `generate` of transformers, and CTranslate2.

    make bench-decoding                          under half an hour on two cores; reads Multi30k under REGARDANT_DATA
    make bench-decoding BENCH="--passes 1"       a quick try, kept in runs/bench-decoding.json

The model is ours, trained for some minutes in Marian's layout (post-norm, sines before cosines) and kept in
runs/bench-decoding; the peers read its weights under their own names. JoeyNMT is left out: it has no such layout.
All take the same sentences in batches of like length and write at most 60 tokens. Passes are taken in turn. Ours and
CTranslate2, used directly and as an engine of the run, take several batches at a time; CTranslate2's threads are those
that were fastest in a short probe of the case. Lands in benchmarks/results/decoding_speed.json.
"""

import gzip
import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import torch

from regardant.data.tokenizers import Tokenizers
from regardant.data.vocabulary import EOS
from regardant.evaluation.translation import TranslationMetrics, corpus_bleu
from regardant.training.devices import multiplies_bfloat16

from . import multi30k
from .bars import bar, rounded, shown
from .records import ROOT
from .shared_batches import SHAPE
from .side_by_side import Measurement, ending
from .workers import Peer, Row, interleave, one_torch, progress, versions_of

RUN = ROOT / "runs" / "bench-decoding"
LOGS = ROOT / "runs" / "bench-decoding-logs"
REGARDANT = ROOT / ".venv" / "bin" / "regardant"
PASSES = 7

OURS, TRANSFORMERS, CTRANSLATE2 = "regardant", "transformers generate", "CTranslate2"
OURS_ROUNDED = "regardant torch-bfloat16"
"""Where the CPU has instructions for it."""
EXPORTED = "regardant ctranslate2"
"""Through `--engine ctranslate2`."""

MODEL = [
    "model.preset=small",
    "model.norm=post",
    "model.positions.layout=halves",
    f"model.max_length={SHAPE['max_length']}",
    "training.max_epochs=4",
    "training.batch_tokens=2048",
    "training.schedule.kind=inverse_sqrt",
    "training.schedule.learning_rate=1e-3",
    "training.schedule.warmup_steps=300",
    "training.validate_every=300",
]

COMPUTE_TYPES = ("float32", "int8")
THREADS = ((1, 1), (1, 2), (2, 1))
"""CTranslate2's batches at once, and threads of each."""
PROBED = 8
"""One in so many sentences is translated to choose its threads."""

LIKE_LENGTH = 0.02
"""How far the numbers of output tokens may be apart for speeds in sentences to be compared."""
LIKE_BLEU = 0.1
ANEW = "read anew"
"""What BLEU is held to."""

AS_DIRECTLY = 0.9
"""The share of CTranslate2's own speed that it has as an engine of a run."""


class Case(NamedTuple):
    """How sentences are translated."""

    name: str
    beam_size: int
    batch_size: int
    every: int
    """One sentence in so many."""


BEAM, GREEDY = Case("beam 5, batch 32", 5, 32, 1), Case("greedy, batch 32", 1, 32, 1)
ALONE = Case("beam 5, batch 1", 5, 1, 4)
CASES = (BEAM, GREEDY, ALONE, Case("greedy, batch 1", 1, 1, 4))


def train() -> None:
    """The model, unless it is there."""
    if (RUN / "model.safetensors").is_file():
        progress(f"{RUN.relative_to(ROOT)} is there, and is used")
        return
    overrides = [argument for one in (*multi30k.settings(), *MODEL) for argument in ("--set", one)]
    subprocess.run([REGARDANT, "train", "translation", "--out", RUN, *overrides], check=True)


def batches(lengths: list[int], case: Case) -> list[list[int]]:
    """Indices of the sentences of a case, those of like length together, the longest first."""
    taken = range(0, len(lengths), case.every)
    order = sorted(taken, key=lambda index: -lengths[index])
    return [order[start : start + case.batch_size] for start in range(0, len(order), case.batch_size)]


def request(case: Case, planned: list[list[int]], *, at_once: bool = False) -> dict[str, Any]:
    """What a peer is asked. at_once: it may take batches at the same time, if they are more than one sentence."""
    if at_once and case.batch_size > 1:
        planned = [[index for batch in planned for index in batch]]
    return {"batches": planned, "beam_size": case.beam_size, "batch_size": case.batch_size}


def fastest(settings: dict[str, Peer], case: Case, planned: list[list[int]]) -> tuple[str, dict[str, float]]:
    """Which of CTranslate2's settings is the fastest for a case, and sentences a second of all."""
    few = request(case, planned[::PROBED], at_once=True)
    speeds = {}
    for name, peer in settings.items():
        peer.ask(**few | {"batches": few["batches"][:1]})
        answer = Row(name, peer, few).read()
        speeds[name] = answer["sentences"] / answer["seconds"]
    return max(speeds, key=speeds.__getitem__), speeds


def measure(case: Case, peers: dict[str, Peer], lengths: list[int], passes: int) -> dict[str, Any]:
    """All engines in turn on one case."""
    planned = batches(lengths, case)
    rows, probed = [], {}
    rows.append(Row(OURS, peers[OURS], request(case, planned, at_once=True)))
    rows.append(Row(TRANSFORMERS, peers[TRANSFORMERS], request(case, planned)))
    if OURS_ROUNDED in peers:
        rows.append(Row(OURS_ROUNDED, peers[OURS_ROUNDED], request(case, planned, at_once=True)))
    for compute_type in COMPUTE_TYPES:
        exported = f"{EXPORTED}-{compute_type}"
        if exported not in peers:
            continue
        rows.append(Row(exported, peers[exported], request(case, planned, at_once=True)))
        settings = {name: peer for name, peer in peers.items() if name.startswith(f"{CTRANSLATE2} {compute_type}")}
        best, speeds = fastest(settings, case, planned)
        probed |= {name: rounded(value) for name, value in speeds.items()}
        rows.append(Row(best, peers[best], request(case, planned, at_once=True)))
    for row in rows:
        row.peer.ask(**row.request | {"batches": row.request["batches"][:1]})
    progress(case.name)
    interleave(rows, passes)
    return {"case": case.name, "rows": rows, "ctranslate2_probe_sentences_per_second": probed}


def as_dict(row: Row, ours: Row) -> dict[str, Any]:
    return {
        "engine": row.name,
        "sentences_per_second": rounded(speed(row)),
        "tokens_per_second": rounded(row.tokens_per_second),
        "ours_is_times_as_fast": rounded(speed(ours) / speed(row)),
        "output_tokens": row.readings[-1]["tokens"],
        "same_as_ours": rounded(agreement(row, ours)),
        "readings": [rounded(one["sentences"] / one["seconds"]) for one in row.readings],
    }


def speed(row: Row) -> float:
    """Sentences a second, the median of the passes."""
    return median(one["sentences"] / one["seconds"] for one in row.readings)


def agreement(row: Row, ours: Row) -> float:
    """The share of sentences that are translated alike, word for word."""
    theirs, mine = row.readings[-1]["targets"], ours.readings[-1]["targets"]
    return sum(theirs[index] == mine[index] for index in mine) / len(mine)


def bars(rows: dict[str, dict[str, dict[str, Any]]], bleu: dict[str, float]) -> Iterator[dict[str, Any]]:
    """What was promised: rows by case and by engine, CTranslate2's without its threads; BLEU with beam 5."""

    def times(case: Case, engine: str) -> float:
        """How many times as fast ours is, in whichever precision it is faster."""
        of_case = rows[case.name]
        faster = min(1.0, of_case[OURS_ROUNDED]["ours_is_times_as_fast"]) if OURS_ROUNDED in of_case else 1.0
        found: float = of_case[engine]["ours_is_times_as_fast"] / faster
        return found

    for case, limit in ((BEAM, 3.5), (GREEDY, 4.0), (ALONE, 2.0)):
        yield bar(f"{case.name}: times transformers", times(case, TRANSFORMERS), limit, at_least=True)
    yield bar(f"{ALONE.name}: times transformers", times(ALONE, TRANSFORMERS), 3.0, at_least=True, goal=True)
    name = f"{CTRANSLATE2} float32"
    yield bar(f"{BEAM.name}: times {name} at its best threads", times(BEAM, name), 1.0, at_least=True)
    for compute_type in COMPUTE_TYPES:
        for case in CASES:
            share = times(case, f"{CTRANSLATE2} {compute_type}") / times(case, f"{EXPORTED}-{compute_type}")
            yield bar(f"{case.name}: exported, times {CTRANSLATE2} {compute_type}", share, AS_DIRECTLY, at_least=True)
    for engine in {OURS, OURS_ROUNDED} & bleu.keys():
        yield bar(f"BLEU of {engine} off from reading every prefix anew", abs(bleu[engine] - bleu[ANEW]), LIKE_BLEU)
    for case in CASES:
        tokens = {engine: row["output_tokens"] for engine, row in rows[case.name].items()}
        apart = max(tokens.values()) / min(tokens.values()) - 1
        yield bar(f"{case.name}: output tokens apart", apart, LIKE_LENGTH)


def start(stack: ExitStack, sentences: str) -> dict[str, Peer]:
    """All engines by name."""
    given = [str(RUN), sentences]

    def peer(program: str, *arguments: str, library: str | None = None) -> Peer:
        progress(f"starting {program} {' '.join(arguments)}")
        return stack.enter_context(Peer(program, [*given, *arguments], folder=LOGS, library=library))

    engines = {
        OURS: peer("regardant_decoding"),
        TRANSFORMERS: peer("marian_decoding", library="transformers"),
    }
    if multiplies_bfloat16(torch.device("cpu")):
        engines[OURS_ROUNDED] = peer("regardant_decoding", "bfloat16")
    for compute_type in COMPUTE_TYPES:
        engines[f"{EXPORTED}-{compute_type}"] = peer("regardant_engine_decoding", compute_type)
        for at_once, threads in THREADS:
            name = f"{CTRANSLATE2} {compute_type}, {at_once} x {threads} threads"
            engines[name] = peer(
                "ctranslate2_decoding", compute_type, str(at_once), str(threads), library="ctranslate2"
            )
    return engines


def write_sentences(tokenizers: Tokenizers) -> tuple[Path, list[int]]:
    """The sources as all engines read them, with the shape of the model; the file and their lengths."""
    sources = [[*ids, EOS] for ids in tokenizers.source.encode_batch(texts("en"))]
    LOGS.mkdir(parents=True, exist_ok=True)
    path = LOGS / "sentences.json"
    path.write_text(json.dumps({"sources": sources, "shape": SHAPE}), encoding="utf-8")
    return path, list(map(len, sources))


def texts(language: str) -> list[str]:
    with gzip.open(multi30k.folder() / f"test2016.{language}.gz", "rt", encoding="utf-8") as lines:
        return lines.read().splitlines()


def table(result: dict[str, Any]) -> Iterator[str]:
    """For people."""
    for measured in result["cases"]:
        yield f"{measured['case']:40}{'sentences/s':>12}{'tokens/s':>10}{'ours / it':>11}{'same as ours':>14}"
        for row in measured["rows"]:
            numbers = f"{shown(row['sentences_per_second']):>12}{row['tokens_per_second']:>10,.0f}"
            numbers += f"{shown(row['ours_is_times_as_fast']):>11}{row['same_as_ours']:>14.1%}"
            yield f"{row['engine']:40}{numbers}"
        yield ""
    yield "BLEU, beam 5: " + ", ".join(f"{engine} {value:.2f}" for engine, value in result["bleu"].items())
    yield from ending(result)


def main() -> None:
    measurement = Measurement("decoding", __doc__, PASSES)
    train()
    tokenizers = Tokenizers.load(RUN / "tokenizer.json")
    sentences, lengths = write_sentences(tokenizers)
    references = texts("de")
    with ExitStack() as stack:
        peers = start(stack, str(sentences))
        one_torch(peers.values())
        measured = {case: measure(case, peers, lengths, measurement.passes) for case in CASES}
        progress("reading every prefix anew")
        anew = peers[OURS].ask(**request(BEAM, batches(lengths, BEAM)), anew=True)
        versions = versions_of(peers.values())

    def bleu_of(targets: dict[str, list[int]]) -> float:
        written = [tokenizers.target.decode(targets[str(index)]) for index in range(len(lengths))]
        return corpus_bleu(written, references, TranslationMetrics())

    beams: list[Row] = measured[BEAM]["rows"]
    bleu = {row.name.partition(",")[0]: bleu_of(row.readings[-1]["targets"]) for row in beams}
    bleu[ANEW] = bleu_of(anew["targets"])
    cases = [{**one, "rows": [as_dict(row, one["rows"][0]) for row in one["rows"]]} for one in measured.values()]
    by_engine = {one["case"]: {row["engine"].partition(",")[0]: row for row in one["rows"]} for one in cases}
    result = {
        "model": MODEL,
        "shape": SHAPE,
        "sentences": len(lengths),
        "cases": cases,
        "bleu": {engine: round(value, 2) for engine, value in bleu.items()},
        "read_anew_sentences_per_second": rounded(anew["sentences"] / anew["seconds"]),
        "bars": list(bars(by_engine, bleu)),
        "versions": versions,
    }
    measurement.keep(result, table)


if __name__ == "__main__":
    main()
