"""BLEU after 5, 10, 20 and 40 minutes of training: Regardant, JoeyNMT and transformers' Trainer.

    make bench-quality                           over four hours on two cores; reads Multi30k under REGARDANT_DATA
    make bench-quality BENCH="JoeyNMT"           one of the three; all else is kept

Tokenised Multi30k, English to German, one vocabulary for all, test2016, five beams. All models have the recipe's size,
the others without gates and rotary positions, which they do not have. Regardant is trained by its recipe, anew for each
budget, since its schedule and dropout follow it. The others are trained once, by AdamW or Adam, with a schedule that
needs no budget, and their clock stops while they translate. Each of them has the learning rate and the size of a batch
that give the most BLEU of the validation text in ten minutes. All trainers run unchanged: JoeyNMT in float32, its only
precision on a CPU, transformers in bfloat16 where the CPU has it, and Regardant in its own choice. Written to
benchmarks/results/quality.json, with a figure; each system with the machine and the commit that it was measured at,
once for each kind of machine. Regardant is judged beside the others that were measured on its kind. A system takes the
place of its kept result once it has as many points.
"""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from regardant import config
from regardant.data.vocabulary import EOS
from regardant.evaluation.translation import TranslationMetrics, corpus_bleu
from regardant.pictures import Curve, line_chart
from regardant.run import load

from . import multi30k
from .bars import bar, conclude, lines
from .recipes import json_of, training_numbers
from .records import REGARDANT as COMMAND
from .records import ROOT, Measurement, arguments, kind_of, machine, precisions, set_options
from .workers import Peer, progress

FOLDER = ROOT / "runs" / "bench-quality"
MINUTES = (5, 10, 20, 40)
RECIPE = "multi30k-en-de"
TRAINING = config.recipe(RECIPE)["training"]
WARM_UP = TRAINING["schedule"]["warmup_steps"] / TRAINING["max_minutes"]
"""Updates of warm-up for each minute of the budget."""
DROPOUTS = {5: 0.1, 10: 0.1}
"""Dropout of Regardant in minutes too few for that of the recipe."""
SHAPE = {"d_model": 128, "num_layers": 4, "num_heads": 4, "d_ff": 432, "max_length": 256}
"""Sizes of the others: those of the recipe, with as many weights in a feed-forward network, which has no gate."""
PEERS = {"dropout": 0.2, "warmup_steps": 300, "most_tokens": 60}
"""Settings of the others: the dropout of the recipe, and a usual warm-up, which is not tuned."""
CANDIDATES = tuple(
    {"learning_rate": rate, "batch_tokens": tokens}
    for rate, tokens in ((1e-3, 512), (2e-3, 512), (2e-3, 1024), (4e-3, 1024))
)
"""Further settings of the others, of which each gets the best."""
CHOICE_MINUTES = 10
"""Minutes of training with each of CANDIDATES."""
WITHIN_30 = 40.0
"""Least BLEU of Regardant in 30 minutes, which that of 20 shows."""
REGARDANT, JOEYNMT, TRAINER = "Regardant", "JoeyNMT", "transformers"

Points = list[dict[str, Any]]
"""Minutes, BLEU and updates at each budget; for Regardant, also the engine and the precision."""

Found = dict[str, Any]
"""Result of a system so far: its `points`; of a peer also its `versions` and `precision`, its `settings`, the
`candidates` that they were chosen from, and the `fixed_settings` that all peers share."""

Systems = list[dict[str, Any]]
"""Results of systems, each with its `name` and `command`, and the machine and the commit that it was measured at."""


def regardant(minutes: tuple[int, ...]) -> Iterator[Found]:
    """Train and evaluate our recipe for each budget in minutes, and yield what is found so far."""
    found: Points = []
    for budget in minutes:
        run = FOLDER / f"minutes-{budget}"
        shutil.rmtree(run, ignore_errors=True)
        given = [f"training.max_minutes={budget}", f"training.schedule.warmup_steps={round(WARM_UP * budget)}"]
        if budget in DROPOUTS:
            given.append(f"model.dropout={DROPOUTS[budget]}")
        subprocess.run([COMMAND, "train", RECIPE, "--out", run, *set_options(given)], check=True)
        scores = json_of(["evaluate", run, "--json", "--engine", "torch"])
        found.append(
            {
                "minutes": budget,
                "bleu": scores["bleu"],
                "updates": training_numbers(run)["updates"],
                "engine": scores["engine"],
                "precision": load(run).record.decided.precision,
            }
        )
        progress(f"{REGARDANT}, {budget} minutes: BLEU {scores['bleu']:.2f}")
        yield {"points": found}


def write_text(translated: str, settings: Mapping[str, Any]) -> tuple[Path, Callable[[list[list[int]]], float]]:
    """Write the text for peers, tokenised as in our run. `translated` names the text to translate.

    Returns the file, and a function from the ids of its translations to BLEU.
    """
    run = FOLDER / "vocabulary"
    if not (run / "model.safetensors").is_file():
        subprocess.run([COMMAND, "train", RECIPE, "--out", run, "--set", "training.max_minutes=0.2"], check=True)
    tokenizers = load(run).translator.tokenizers
    texts = {
        (part, language): multi30k.lines(f"{part}.tok.{language}")
        for part in ("train", translated)
        for language in ("en", "de")
    }
    encoded = {
        key: (tokenizers.source if key[1] == "en" else tokenizers.target).encode_batch(given)
        for key, given in texts.items()
    }
    folder = FOLDER / "text"
    folder.mkdir(parents=True, exist_ok=True)
    for language in ("en", "de"):
        numbers = [" ".join(map(str, ids)) + "\n" for ids in encoded["train", language]]
        (folder / f"train.{language}").write_text("".join(numbers), encoding="utf-8")
        (folder / f"dev.{language}").write_text("".join(numbers[: multi30k.DEV_LINES]), encoding="utf-8")
    ended = {key: [[*ids, EOS] for ids in rows] for key, rows in encoded.items()}
    pairs = list(zip(ended["train", "en"], ended["train", "de"], strict=True))
    shape = SHAPE | {"vocab_size": tokenizers.target.vocab_size, "dropout": PEERS["dropout"]}
    path = FOLDER / "quality.json"
    precision = precisions()[-1]
    content = {"shape": shape, "pairs": pairs, "sources": ended[translated, "en"], "precision": precision}
    path.write_text(json.dumps({**content, **PEERS, **settings}))

    def score(targets: list[list[int]]) -> float:
        written = [tokenizers.target.decode(ids) for ids in targets]
        return corpus_bleu(written, texts[translated, "de"], TranslationMetrics(tokenize="none"))

    return path, score


def train_peer(
    program: str, library: str, settings: Mapping[str, Any], translated: str, minutes: tuple[int, ...]
) -> Iterator[Found]:
    """Train a peer once, score its translations of a text after each number of minutes, and yield the points so far
    and the versions of its libraries."""
    path, score = write_text(translated, settings)
    found: Points = []
    given = [str(path), str(FOLDER / library)]
    with Peer(program, given, folder=FOLDER, library=library, variables={}) as peer:
        for budget in minutes:
            answer = peer.ask(minutes=budget)
            found.append({"minutes": budget, "bleu": score(answer["targets"]), "updates": answer["updates"]})
            progress(f"{library}, {settings}, {budget} minutes: BLEU of {translated} {found[-1]['bleu']:.2f}")
            yield {"points": found, "versions": peer.about["versions"]}


def tune_and_train(program: str, library: str, minutes: tuple[int, ...]) -> Iterator[Found]:
    """Choose a peer's settings on the validation text, train it with them, and yield what is found so far."""
    tried = []
    for settings in CANDIDATES:
        (point,) = list(train_peer(program, library, settings, "val", (CHOICE_MINUTES,)))[-1]["points"]
        tried.append({"settings": settings, **point})
    chosen = max(tried, key=lambda one: one["bleu"])["settings"]
    precision = "float32" if library == "joeynmt" else precisions()[-1]
    how = {"precision": precision, "settings": chosen, "fixed_settings": PEERS | SHAPE, "candidates": tried}
    for found in train_peer(program, library, chosen, "test2016", minutes):
        yield found | how


SYSTEMS: dict[str, Callable[[tuple[int, ...]], Iterator[Found]]] = {
    REGARDANT: regardant,
    JOEYNMT: partial(tune_and_train, "joeynmt_quality", "joeynmt"),
    TRAINER: partial(tune_and_train, "marian_quality", "transformers"),
}


def bars(systems: Systems) -> Iterator[dict[str, Any]]:
    """Yield the bar of the recipe, and our BLEU less that of each other system, on each machine that has both."""
    missing = set(SYSTEMS) - {REGARDANT}
    for ours in (one for one in systems if one["name"] == REGARDANT):
        scores, cpu = scores_of(ours), ours["machine"]["cpu"]
        yield bar(f"BLEU of {RECIPE} in 30 minutes: after 20, {cpu}", scores.get(20), WITHIN_30, at_least=True)
        for other in systems:
            if other["name"] == REGARDANT or kind_of(other["machine"]) != kind_of(ours["machine"]):
                continue
            missing.discard(other["name"])
            theirs = scores_of(other)
            for budget in MINUTES:
                name = f"BLEU after {budget} minutes less that of {other['name']}, {cpu}"
                less = scores[budget] - theirs[budget] if budget in scores and budget in theirs else None
                yield bar(name, less, 0.0, at_least=True)
    yield from (bar(f"BLEU less that of {name}", None, 0.0, at_least=True) for name in sorted(missing))


def scores_of(system: dict[str, Any]) -> dict[int, float]:
    """Return BLEU by minutes."""
    return {point["minutes"]: point["bleu"] for point in system["points"]}


def main(given: Sequence[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("systems", nargs="*", choices=[*SYSTEMS, []], help="default: all")
    asked = parser.parse_args(given)
    measurement = Measurement(scratch=asked.scratch)
    kept = measurement.path("quality")
    systems: Systems = json.loads(kept.read_text(encoding="utf-8"))["systems"] if kept.is_file() else []
    command = "make bench-quality" + (f' BENCH="{" ".join(asked.systems)}"' if asked.systems else "")
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in asked.systems or SYSTEMS:
        for found in SYSTEMS[name](MINUTES):
            new = {"name": name, "command": command, **found, "machine": machine(), "commit": measurement.commit}
            before = [one for one in systems if are_of_one_row(one, new)]
            if all(num_measured(new) >= num_measured(one) for one in before):
                systems = [*(one for one in systems if one not in before), new]
                keep(systems, measurement)
    conclude(list(bars(systems)))


def num_measured(system: dict[str, Any]) -> int:
    """Return the number of MINUTES at which a system has a score."""
    return len(scores_of(system).keys() & set(MINUTES))


def are_of_one_row(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether two results are of one system on one kind of machine."""
    return one["name"] == other["name"] and kind_of(one["machine"]) == kind_of(other["machine"])


def keep(systems: Systems, measurement: Measurement) -> None:
    """Write, judge and draw the result so far."""
    judged = list(bars(systems))
    print(*lines(judged), sep="\n")
    curves = [Curve(f"{one['name']}, {maker(one['machine'])}", sorted(scores_of(one).items())) for one in systems]
    chart = line_chart(curves, title="BLEU of test2016 by time", x_label="minutes of training", y_label="BLEU")
    measurement.draw("bleu_by_minutes", chart)
    measurement.keep("quality", {"systems": systems, "bars": judged})


def maker(machine_of_system: dict[str, Any]) -> str:
    """Return the first word of a CPU's name, which is its maker's."""
    return str(machine_of_system["cpu"]).split()[0].removesuffix("(R)")


if __name__ == "__main__":
    main()
