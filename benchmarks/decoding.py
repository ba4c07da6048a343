"""Translation speed of the same weights, test2016 of Multi30k: Regardant, transformers' `generate` and CTranslate2.

    make bench-decoding                          under half an hour on two cores; reads Multi30k under REGARDANT_DATA
    make bench-decoding BENCH="--passes 1"       a quick try, written to runs/scratch

Every row names its precision, and ratios are between rows of equal precision; "best of each" is between the fastest row
of Regardant's own search and that of the other engine, whatever their precision. The model is trained here for some
minutes in Marian's layout (post-norm, sines before cosines) and kept in runs/bench-decoding; peers read its weights
under their own names. JoeyNMT is left out: it has no such layout. All engines get the same sentences, sorted by
length, and write at most 60 tokens. Passes are taken in turn, and all engines have the same allocator settings.
Regardant and CTranslate2, used directly and as an exported engine of the run, decode several batches at once. Peers get
the setting that is fastest in a short probe of the case: CTranslate2 its threads, transformers its cache and attention.
Written to benchmarks/results/decoding_speed.json.
"""

import json
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from regardant.data.tokenizers import Tokenizers
from regardant.data.vocabulary import EOS
from regardant.evaluation.translation import TranslationMetrics, corpus_bleu

from . import multi30k
from .bars import bar, rounded, shown
from .records import REGARDANT as COMMAND
from .records import ROOT, precisions, set_options
from .shared_batches import SHAPE
from .side_by_side import SideBySide, best_of_each, ending
from .workers import Peer, Row, fastest, interleave, one_torch, progress, settings, versions_of

RUN = ROOT / "runs" / "bench-decoding"
LOGS = ROOT / "runs" / "bench-decoding-logs"
PASSES = 7
MOST_TOKENS = 60
"""Largest number of tokens of a target."""

REGARDANT, EXPORTED = "regardant", "regardant exported"
TRANSFORMERS, AUTOCAST, CTRANSLATE2 = "transformers", "transformers autocast", "CTranslate2"
"""Engines. EXPORTED is `--engine ctranslate2`; TRANSFORMERS in bfloat16 has weights in it, AUTOCAST float32 weights."""

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

PRECISIONS = ("float32", "bfloat16")
"""Precisions of Regardant and transformers."""
COMPUTE_TYPES = ("float32", "int8")
"""Precisions of CTranslate2."""
THREADS = ((1, 1), (1, 2), (2, 1))
"""CTranslate2's settings: batches at once, and threads of each."""
CHOICES = {"cache": ("dynamic", "static"), "attention": ("sdpa", "matmul")}
"""transformers' settings: a cache that grows by a token a step, or one of the size of the longest target; and torch's
fused kernel, or products of matrices."""
STOPPING = {"stopping": ("default", "early")}
"""transformers' setting of a search with several beams: it ends when no beam can become better than the worst finished
hypothesis, or as soon as there are as many finished ones as beams."""
PROBED, LEAST_PROBED = 8, 4
"""One batch in PROBED is timed to choose the setting of a case, but no fewer than LEAST_PROBED: a single batch does not
show whether several at once are faster."""

LIKE_LENGTH = 0.02
"""Largest relative difference in output tokens between engines whose sentences a second are compared."""
LIKE_BLEU = 0.1
UNCACHED = "uncached"
"""The reference for BLEU: a search that recomputes the whole prefix at each step."""

AS_DIRECTLY = 0.9
"""Least share of CTranslate2's own speed that an exported engine must reach."""

Rows = dict[tuple[str, str], dict[str, Any]]
"""Result rows of a case by engine and precision."""


class Case(NamedTuple):
    """Search and batch size of a comparison."""

    name: str
    beam_size: int
    batch_size: int
    every: int
    """One sentence in `every` is translated."""


BEAM, GREEDY = Case("beam 5, batch 32", 5, 32, 1), Case("greedy, batch 32", 1, 32, 1)
ALONE = Case("beam 5, batch 1", 5, 1, 4)
CASES = (BEAM, GREEDY, ALONE, Case("greedy, batch 1", 1, 1, 4))


def train(run: Path = RUN, model: Sequence[str] = MODEL, root: Path | None = None) -> None:
    """Train the model unless the run exists. `root` is a folder with other text under the same names."""
    if (run / "model.safetensors").is_file():
        progress(f"{run.relative_to(ROOT)} exists and is used")
        return
    given = set_options([*multi30k.settings(root), *model])
    subprocess.run([COMMAND, "train", "translation", "--out", run, *given], check=True)


def batches(lengths: list[int], case: Case) -> list[list[int]]:
    """Return the batches of a case as indices of sentences, sorted by length, longest first."""
    taken = range(0, len(lengths), case.every)
    order = sorted(taken, key=lambda index: -lengths[index])
    return [order[start : start + case.batch_size] for start in range(0, len(order), case.batch_size)]


def request(case: Case, planned: list[list[int]], *, at_once: bool = False) -> dict[str, Any]:
    """Return the request for a pass. at_once: the engine gets all batches of several sentences in one call."""
    if at_once and case.batch_size > 1:
        planned = [[index for batch in planned for index in batch]]
    return {"batches": planned, "beam_size": case.beam_size, "batch_size": case.batch_size}


def label(*parts: str) -> str:
    """Return the name of a row: engine, precision and, if several were probed, setting."""
    return ", ".join(parts)


def few(planned: list[list[int]]) -> list[list[int]]:
    """Return the batches that choose a setting."""
    return planned[:: max(1, min(PROBED, len(planned) // LEAST_PROBED))]


def measure(
    case: Case,
    peers: dict[str, Peer],
    lengths: list[int],
    passes: int,
    warm_up: int | None = 1,
    choices: Mapping[str, Sequence[str]] = CHOICES,
) -> dict[str, Any]:
    """Time all engines in turn on one case, after `warm_up` of its batches (None: all). The first row returned is
    Regardant in float32."""
    choices = {**choices, **(STOPPING if case.beam_size > 1 else {})}
    planned = batches(lengths, case)
    batch_by_batch, at_once = request(case, planned), request(case, planned, at_once=True)
    rows, probed = [], {}

    def add_fastest(candidates: list[Row], probe: dict[str, Any]) -> None:
        best, speeds = fastest(candidates, {"batches": probe["batches"][:1]}, probe)
        rows.append(best)
        probed.update({name: rounded(value) for name, value in speeds.items()})

    for precision in PRECISIONS:
        ours = label(REGARDANT, precision)
        if ours in peers:
            rows.append(Row(ours, peers[ours], at_once))
        for name in (label(engine, precision) for engine in (TRANSFORMERS, AUTOCAST)):
            if name in peers:
                add_fastest(settings(name, peers[name], batch_by_batch, choices), request(case, few(planned)))
    for compute_type in COMPUTE_TYPES:
        exported, prefix = label(EXPORTED, compute_type), label(CTRANSLATE2, compute_type)
        if exported in peers:
            rows.append(Row(exported, peers[exported], at_once))
            threads = [Row(name, peer, at_once) for name, peer in peers.items() if name.startswith(prefix)]
            add_fastest(threads, request(case, few(planned), at_once=True))
    for row in rows:
        row.peer.ask(**row.request | {"batches": row.request["batches"][:warm_up]})
    progress(case.name)
    interleave(rows, passes)
    return {"case": case.name, "rows": rows, "probe_tokens_per_second": probed}


def as_dicts(rows: list[Row]) -> list[dict[str, Any]]:
    """Return the rows of a case as result files hold them."""
    speeds: dict[str, dict[str, float]] = {}
    for row in rows:
        engine, precision = row.name.split(", ")[:2]
        speeds.setdefault(engine, {})[precision] = speed(row)
    best, found = best_of_each(speeds, REGARDANT), []
    for row in rows:
        engine, precision, *setting = row.name.split(", ")
        equal = speeds[REGARDANT].get(precision)
        found.append(
            {
                "engine": engine,
                "precision": precision,
                **({"setting": setting[0]} if setting else {}),
                "sentences_per_second": rounded(speed(row)),
                "tokens_per_second": rounded(row.tokens_per_second),
                "regardant_is_times_as_fast": rounded(equal / speed(row)) if equal else None,
                "best_of_each": rounded(best[engine]),
                "output_tokens": row.readings[-1]["tokens"],
                "same_as_first": rounded(identical_share(row, rows[0])),
                "readings": [rounded(one["sentences"] / one["seconds"]) for one in row.readings],
            }
        )
    return found


def speed(row: Row) -> float:
    """Return sentences a second, the median of the passes."""
    return median(one["sentences"] / one["seconds"] for one in row.readings)


def identical_share(row: Row, other: Row) -> float:
    """Return the share of sentences with identical translations."""
    theirs, mine = row.readings[-1]["targets"], other.readings[-1]["targets"]
    return sum(theirs[index] == mine[index] for index in mine) / len(mine)


def by_engine(case: dict[str, Any]) -> Rows:
    """Return the rows of one case of a result by engine and precision."""
    return {(row["engine"], row["precision"]): row for row in case["rows"]}


def times(rows: Rows, ours: str, theirs: tuple[str, ...], precision: str) -> float | None:
    """Return the speed of our engine over the fastest of theirs in the same precision; None if either was not run."""
    speeds = {engine: row["sentences_per_second"] for (engine, used), row in rows.items() if used == precision}
    measured = [speeds[engine] for engine in theirs if engine in speeds]
    return speeds[ours] / max(measured) if ours in speeds and measured else None


def bars(cases: dict[str, Rows], bleu: dict[str, float], left_out: Collection[str] = ()) -> Iterator[dict[str, Any]]:
    """Yield the bars, each of equal precision. `bleu` has the BLEU of five beams by row. A comparison with the faster
    of two engines is not measured if one of them is left out."""
    engines = (TRANSFORMERS, AUTOCAST)
    for case, limit, goal in ((BEAM, 3.5, 3.5), (GREEDY, 3.2, 4.0), (ALONE, 2.0, 3.0)):
        for precision in PRECISIONS:
            value = times(cases[case.name], REGARDANT, engines, precision)
            if any(label(engine, precision) in left_out for engine in engines):
                value = None
            name = f"{case.name}, {precision}: times transformers"
            if precision == "float32":
                yield bar(name, value, limit, at_least=True)
            if precision != "float32" or goal > limit:
                yield bar(name, value, goal, at_least=True, goal=True)
    value = times(cases[BEAM.name], REGARDANT, (CTRANSLATE2,), "float32")
    for limit, is_goal in ((0.85, False), (1.0, True)):
        name = f"{BEAM.name}, float32: times CTranslate2 at its best threads"
        yield bar(name, value, limit, at_least=True, goal=is_goal)
    for precision in COMPUTE_TYPES:
        for case in CASES:
            value = times(cases[case.name], EXPORTED, (CTRANSLATE2,), precision)
            yield bar(f"{case.name}, {precision}: exported, times CTranslate2", value, AS_DIRECTLY, at_least=True)
    for precision in PRECISIONS:
        measured = bleu.get(label(REGARDANT, precision))
        apart = None if measured is None else abs(measured - bleu[UNCACHED])
        yield bar(f"{precision}: difference in BLEU from uncached search", apart, LIKE_BLEU)
    for case in CASES:
        tokens = [row["output_tokens"] for row in cases[case.name].values()]
        yield bar(f"{case.name}: difference in output tokens", max(tokens) / min(tokens) - 1, LIKE_LENGTH)


def start(stack: ExitStack, sentences: str, run: Path = RUN) -> tuple[dict[str, Peer], dict[str, str]]:
    """Start all engines. Return those that run by label, and the reasons why others are left out."""
    peers: dict[str, Peer] = {}
    left_out: dict[str, str] = {}

    def peer(name: str, program: str, *options: str, library: str | None = None) -> None:
        progress(f"starting {name}")
        started = Peer(program, [str(run), sentences, *options], folder=LOGS, library=library)
        peers[name] = stack.enter_context(started)

    peer(label(REGARDANT, "float32"), "regardant_decoding", "float32")
    peer(label(TRANSFORMERS, "float32"), "marian_decoding", "float32", library="transformers")
    if "bfloat16" in precisions():
        peer(label(REGARDANT, "bfloat16"), "regardant_decoding", "bfloat16")
        for engine, option in ((TRANSFORMERS, "bfloat16"), (AUTOCAST, "autocast")):
            name = label(engine, "bfloat16")
            try:
                peer(name, "marian_decoding", option, library="transformers")
            except SystemExit as reason:  # a version that cannot translate in bfloat16, or any other failure
                left_out[name] = str(reason).strip().splitlines()[-1]
                progress(f"{name} is left out: {left_out[name]}")
    for compute_type in COMPUTE_TYPES:
        peer(label(EXPORTED, compute_type), "regardant_engine_decoding", compute_type)
        for at_once, threads in THREADS:
            name = label(CTRANSLATE2, compute_type, f"{at_once} x {threads} threads")
            options = (compute_type, str(at_once), str(threads))
            peer(name, "ctranslate2_decoding", *options, library="ctranslate2")
    return peers, left_out


def write_sentences(
    tokenizers: Tokenizers, name: str = "sentences", most_tokens: int = MOST_TOKENS, root: Path | None = None
) -> tuple[Path, list[int]]:
    """Write the tokenised sources, the shape of the model and the largest number of tokens of a target. Return the file
    and the lengths of the sources, with EOS."""
    sources = [[*ids, EOS] for ids in tokenizers.source.encode_batch(texts("en", root))]
    LOGS.mkdir(parents=True, exist_ok=True)
    path = LOGS / f"{name}.json"
    content = {"sources": sources, "shape": SHAPE, "most_tokens": most_tokens}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path, list(map(len, sources))


def texts(language: str, root: Path | None = None) -> list[str]:
    """Return one side of test2016."""
    return multi30k.lines(f"test2016.{language}", root)


def table(result: dict[str, Any]) -> Iterator[str]:
    """Format a result for the terminal."""
    yield from rows(result)
    yield "BLEU, beam 5: " + ", ".join(f"{name} {value:.2f}" for name, value in result["bleu"].items())
    yield from ending(result)


def rows(result: dict[str, Any]) -> Iterator[str]:
    """Format the rows of each case, and the engines that are left out."""
    for measured in result["cases"]:
        yield f"{measured['case']:40}{'sentences/s':>12}{'tokens/s':>10}{'regardant':>11}{'best of':>9}{'same as':>12}"
        yield f"{'':40}{'':12}{'':10}{'/ row':>11}{'each':>9}{'the first':>12}"
        for row in measured["rows"]:
            name = label(*(row[part] for part in ("engine", "precision", "setting") if part in row))
            numbers = f"{shown(row['sentences_per_second']):>12}{row['tokens_per_second']:>10,.0f}"
            numbers += f"{shown(row['regardant_is_times_as_fast']):>11}{shown(row['best_of_each']):>9}"
            numbers += f"{row['same_as_first']:>12.1%}"
            yield f"{name:40}{numbers}"
        yield ""
    yield from (f"left out: {name} ({reason})" for name, reason in result["left_out"].items())


def main() -> None:
    measurement = SideBySide("decoding", __doc__, PASSES)
    train()
    tokenizers = Tokenizers.load(RUN / "tokenizer.json")
    sentences, lengths = write_sentences(tokenizers)
    references = texts("de")
    with ExitStack() as stack:
        peers, left_out = start(stack, str(sentences))
        one_torch(peers.values())
        measured = {case: measure(case, peers, lengths, measurement.passes) for case in CASES}
        progress("search without a cache")
        uncached = peers[label(REGARDANT, "float32")].ask(**request(BEAM, batches(lengths, BEAM)), uncached=True)
        versions = versions_of(peers.values())

    def bleu_of(targets: dict[str, list[int]]) -> float:
        written = [tokenizers.target.decode(targets[str(index)]) for index in range(len(lengths))]
        return corpus_bleu(written, references, TranslationMetrics())

    beams: list[Row] = measured[BEAM]["rows"]
    bleu = {label(*row.name.split(", ")[:2]): bleu_of(row.readings[-1]["targets"]) for row in beams}
    bleu[UNCACHED] = bleu_of(uncached["targets"])
    cases = [{**one, "rows": as_dicts(one["rows"])} for one in measured.values()]
    result = {
        "model": MODEL,
        "shape": SHAPE,
        "sentences": len(lengths),
        "cases": cases,
        "left_out": left_out,
        "bleu": {name: round(value, 2) for name, value in bleu.items()},
        "uncached_sentences_per_second": rounded(uncached["sentences"] / uncached["seconds"]),
        "bars": list(bars({case["case"]: by_engine(case) for case in cases}, bleu, left_out)),
        "versions": versions,
    }
    measurement.finish(result, table)


if __name__ == "__main__":
    main()
