"""BLEU after 5, 10, 20 and 40 minutes of training: Regardant, JoeyNMT and transformers' Trainer.

    make bench-quality                           over four hours on two cores; reads Multi30k under REGARDANT_DATA
    make bench-quality BENCH="JoeyNMT"           one of the three; the others keep what they had

Tokenised Multi30k, English to German, one vocabulary for all, test2016, five beams. All models have the recipe's size,
the others without gates and rotary positions, which they do not have. Regardant is trained by its recipe, anew for each
budget, since its schedule and dropout follow it. The others are trained once, by AdamW or Adam, with a schedule that
needs no budget, and their clock stops while they translate. Each of them has the learning rate and the size of a batch
that give the most BLEU of the validation text in ten minutes. All trainers run unchanged: JoeyNMT in float32, its only
precision on a CPU, transformers in bfloat16, and Regardant in its own choice. Written to
benchmarks/results/quality.json, with a figure; each system with the machine and the commit that it was measured at.
Systems are judged if their machines are equal.
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
from .ladder import OF_MACHINE
from .records import REGARDANT as COMMAND
from .records import ROOT, Measurement, arguments, machine
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
"""Minutes and BLEU at each budget; for peers, the updates, too."""

Found = dict[str, Any]
"""Result of a system: its `points`; of a peer also its `settings` and the `candidates` that they were chosen from."""

Systems = dict[str, Found]
"""Results of systems, with the machine and the commit that they were measured at."""


def regardant(minutes: tuple[int, ...]) -> Found:
    """Train and evaluate our recipe for each budget in minutes."""
    found = []
    for budget in minutes:
        run = FOLDER / f"minutes-{budget}"
        shutil.rmtree(run, ignore_errors=True)
        given = [f"training.max_minutes={budget}", f"training.schedule.warmup_steps={round(WARM_UP * budget)}"]
        if budget in DROPOUTS:
            given.append(f"model.dropout={DROPOUTS[budget]}")
        overrides = [argument for one in given for argument in ("--set", one)]
        subprocess.run([COMMAND, "train", RECIPE, "--out", run, *overrides], check=True)
        said = subprocess.run([COMMAND, "evaluate", run, "--json"], check=True, capture_output=True, text=True)
        found.append({"minutes": budget, "bleu": round(json.loads(said.stdout)["bleu"], 2)})
        progress(f"{REGARDANT}, {budget} minutes: BLEU {found[-1]['bleu']}")
    return {"points": found}


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
    path.write_text(
        json.dumps({"shape": shape, "pairs": pairs, "sources": ended[translated, "en"], **PEERS, **settings})
    )

    def score(targets: list[list[int]]) -> float:
        written = [tokenizers.target.decode(ids) for ids in targets]
        return corpus_bleu(written, texts[translated, "de"], TranslationMetrics(tokenize="none"))

    return path, score


def train_peer(
    program: str, library: str, settings: Mapping[str, Any], translated: str, minutes: tuple[int, ...]
) -> Points:
    """Train a peer once, and score its translations of a text after each number of minutes."""
    path, score = write_text(translated, settings)
    found = []
    given = [str(path), str(FOLDER / library)]
    with Peer(program, given, folder=FOLDER, library=library, variables={}) as peer:
        for budget in minutes:
            answer = peer.ask(minutes=budget)
            found.append({"minutes": budget, "bleu": round(score(answer["targets"]), 2), "updates": answer["updates"]})
            progress(f"{library}, {settings}, {budget} minutes: BLEU of {translated} {found[-1]['bleu']}")
    return found


def tune_and_train(program: str, library: str, minutes: tuple[int, ...]) -> Found:
    """Choose a peer's settings on the validation text, and train it with them."""
    tried = [{"settings": one, **train_peer(program, library, one, "val", (CHOICE_MINUTES,))[0]} for one in CANDIDATES]
    chosen = max(tried, key=lambda one: one["bleu"])["settings"]
    return {
        "points": train_peer(program, library, chosen, "test2016", minutes),
        "settings": chosen,
        "candidates": tried,
    }


SYSTEMS: dict[str, Callable[[tuple[int, ...]], Found]] = {
    REGARDANT: regardant,
    JOEYNMT: partial(tune_and_train, "joeynmt_quality", "joeynmt"),
    TRAINER: partial(tune_and_train, "marian_quality", "transformers"),
}


def bars(systems: Systems) -> Iterator[dict[str, Any]]:
    """Yield the bar of the recipe, and one for each budget: our BLEU over the best of the others."""
    ours = {one["minutes"]: one["bleu"] for one in systems[REGARDANT]["points"]}
    yield bar("BLEU of multi30k-en-de in 30 minutes: after 20", ours[20], WITHIN_30, at_least=True)
    for number, budget in enumerate(MINUTES):
        scores = {name: one["points"][number]["bleu"] for name, one in systems.items()}
        over = scores[REGARDANT] - max(score for name, score in scores.items() if name != REGARDANT)
        yield bar(f"BLEU after {budget} minutes over the best of the others", over, 0.0, at_least=True)


def main(given: Sequence[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("systems", nargs="*", choices=[*SYSTEMS, []], help="default: all")
    asked = parser.parse_args(given)
    measurement = Measurement(scratch=asked.scratch)
    kept = measurement.path("quality")
    systems: Systems = json.loads(kept.read_text(encoding="utf-8"))["systems"] if kept.is_file() else {}
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in asked.systems or SYSTEMS:
        systems[name] = SYSTEMS[name](MINUTES) | {"machine": machine(), "commit": measurement.commit}
        keep(systems, measurement)
    if are_comparable(systems):
        conclude(list(bars(systems)))


def are_comparable(systems: Systems) -> bool:
    """Return whether all systems are measured, on machines of one kind."""
    machines = {tuple(one["machine"][part] for part in OF_MACHINE) for one in systems.values()}
    return set(systems) == set(SYSTEMS) and len(machines) == 1


def keep(systems: Systems, measurement: Measurement) -> None:
    """Write the result so far; judge and draw it if its systems are comparable."""
    result: dict[str, Any] = {"command": "make bench-quality", "peers": PEERS | SHAPE, "systems": systems}
    if not are_comparable(systems):
        measurement.keep("quality", result)
        return
    judged = list(bars(systems))
    print(*lines(judged), sep="\n")
    curves = [
        Curve(name, [(point["minutes"], point["bleu"]) for point in one["points"]]) for name, one in systems.items()
    ]
    chart = line_chart(curves, title="BLEU of test2016 by time", x_label="minutes of training", y_label="BLEU")
    measurement.draw("bleu_by_minutes", chart)
    measurement.keep("quality", result | {"bars": judged})


if __name__ == "__main__":
    main()
