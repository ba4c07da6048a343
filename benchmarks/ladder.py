"""Mechanisms of attention on one corpus: the recipes `ladder/*` with equal budgets, compared and judged by bars.

    make ladder                                   all: two and a half hours on two cores, an hour of equal updates
    make ladder RUNG="gru-fixed transformer@2000" these alone, the second for 2,000 updates

A rung with a result of its current settings is not trained again, so an interrupted measurement can be continued.
Translations are kept beside the results in benchmarks/results/ladder. All rungs with results are compared once every
rung that a bar names has one: the comparison is written to comparison.json there, figures to docs/experiments/.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from regardant import config
from regardant.evaluation.comparison import compare_translations
from regardant.evaluation.translation import TranslationMetrics
from regardant.pictures import Curve, line_chart
from regardant.tasks.translation.evaluate.evaluation import read_test_set

from .bars import bar, conclude, lines
from .multi30k import folder
from .recipes import Asked, measure, settings_of
from .records import Measurement, arguments, kind_of

FIXED, ATTENDING, TRANSFORMER = "gru-fixed", "gru-bahdanau", "transformer"

EQUAL_UPDATES, ENCODERS = 2000, ("window", "linear", "performer")
"""Budget of these encoders and of the Transformer when updates are equal and minutes are not."""

GAIN, WITHIN, SIGNIFICANT = 5.0, 1.5, 0.05
"""Least gain in BLEU by attention; largest loss by an efficient encoder; largest p of a paired bootstrap."""

OF_TRAINING = ("parameters", "memory_bytes", "median_tokens_per_second", "updates", "validations", "machine", "commit")
"""Fields of a rung's result that the comparison repeats."""

TEST_FILES = ("test2016.tok.en.gz", "test2016.tok.de.gz")
"""The test set of all rungs."""


def main(given: Sequence[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("rungs", nargs="*", help="RUNG[@UPDATES], without `ladder/`")
    named = parser.parse_args(given)
    measurement = Measurement(scratch=named.scratch)
    names = sorted(name for name in config.recipes() if name.startswith("ladder/"))
    by_time = [Asked(f"ladder/{FIXED}"), *(Asked(name) for name in names if name != f"ladder/{FIXED}")]
    by_updates = [Asked(f"ladder/{rung}", updates=EQUAL_UPDATES) for rung in (TRANSFORMER, *ENCODERS)]
    for asked in [Asked.parse(f"ladder/{name}") for name in named.rungs] or by_time + by_updates:
        if not is_kept(asked, measurement):
            measure(asked, measurement)
            translations(asked, measurement).write_bytes((asked.run / "evaluation" / "test.hyp").read_bytes())
    judged = [*(Asked(f"ladder/{rung}") for rung in (FIXED, ATTENDING, TRANSFORMER)), *by_updates]
    if lacking := [asked.name for asked in judged if not is_kept(asked, measurement)]:
        print(f"not compared yet, these have no result: {', '.join(lacking)}")
        return
    kept = [asked for asked in by_time if is_kept(asked, measurement)]
    compared = compare(of_one_machine(kept, measurement), measurement)
    equal = compare(by_updates, measurement)
    bars = [*of_attention(compared), *of_encoders(equal)]
    measurement.keep("ladder/comparison", {"equal_minutes": compared, "equal_updates": equal, "bars": bars})
    draw_curves(compared, measurement)
    print(*lines(bars), sep="\n")
    conclude(bars)


def is_kept(asked: Asked, measurement: Measurement) -> bool:
    """Return whether a rung has its translations, and a result of its current settings. A result of an earlier commit,
    which does not name its settings, counts."""
    path, current = measurement.path(asked.name), settings_of(asked.recipe)
    if not (path.is_file() and translations(asked, measurement).is_file()):
        return False
    return bool(json.loads(path.read_text(encoding="utf-8")).get("settings", current) == current)


def of_one_machine(kept: Sequence[Asked], measurement: Measurement) -> list[Asked]:
    """Return the rungs that were trained on a machine like that of the first, whose minutes are equal."""

    def machine_of(asked: Asked) -> tuple[Any, ...]:
        return kind_of(json.loads(measurement.path(asked.name).read_text(encoding="utf-8"))["machine"])

    like_first = [asked for asked in kept if machine_of(asked) == machine_of(kept[0])]
    if others := ", ".join(asked.name for asked in kept if asked not in like_first):
        sought = {f"ladder/{rung}" for rung in (FIXED, ATTENDING, TRANSFORMER)}
        if not sought <= {asked.name for asked in like_first}:
            sys.exit(f"minutes of two machines are not equal: measure {others} again on that of {kept[0].name}")
        print(f"left out, since they were trained on another machine: {others}")
    return like_first


def translations(asked: Asked, measurement: Measurement) -> Path:
    """Return the file of a rung's translations of the test set."""
    return measurement.path(asked.name).with_suffix(".hyp")


def compare(asked: Sequence[Asked], measurement: Measurement) -> dict[str, Any]:
    """Return scores and costs by rung. All are tested against the first."""
    tested = read_test_set([folder() / name for name in TEST_FILES])
    files = [translations(one, measurement) for one in asked]
    written = [file.read_bytes().decode().removesuffix("\n").split("\n") for file in files]
    scores, _ = compare_translations(tested.sources, tested.references, written, TranslationMetrics(tokenize="none"))
    results = [json.loads(measurement.path(one.name).read_text(encoding="utf-8")) for one in asked]
    return {
        one.recipe.removeprefix("ladder/"): {
            **{name: result[name] for name in OF_TRAINING},
            **asdict(score),
        }
        for one, result, score in zip(asked, results, scores, strict=True)
    }


def of_attention(runs: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the bars of attention against one fixed context, and of the Transformer against both."""
    bleu = {rung: run["bleu"] for rung, run in runs.items()}
    gained = runs[ATTENDING]["against_first"]
    fixed, attending = (runs[rung]["by_length"] for rung in (FIXED, ATTENDING))
    longest = attending[-1]["bleu"] - fixed[-1]["bleu"]
    yield bar(f"BLEU of {ATTENDING} over {FIXED}", gained["difference"], GAIN, at_least=True)
    yield bar(f"p of {ATTENDING} over {FIXED}", gained["p"], SIGNIFICANT)
    yield bar("gain on the longest quarter over the gain on all", longest - gained["difference"], 0.0, at_least=True)
    over = bleu[TRANSFORMER] - max(bleu[FIXED], bleu[ATTENDING])
    yield bar(f"BLEU of {TRANSFORMER} over both", over, 0.0, at_least=True)


def of_encoders(runs: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the bars of efficient encoders against softmax after equal updates."""
    for rung in ENCODERS:
        difference = runs[rung]["against_first"]["difference"]
        yield bar(f"BLEU of {rung} encoder over softmax", difference, -WITHIN, at_least=True)


def draw_curves(runs: dict[str, Any], measurement: Measurement) -> None:
    """Draw BLEU by source length and loss by minutes: recurrence, recurrence with attention, attention alone."""
    drawn = {rung: runs[rung] for rung in (FIXED, ATTENDING, TRANSFORMER)}
    lengths = [
        Curve(rung, [(sum(part["words"]) / 2, part["bleu"]) for part in run["by_length"]])
        for rung, run in drawn.items()
    ]
    chart = line_chart(lengths, title="BLEU by length", x_label="words of the source", y_label="BLEU")
    measurement.draw("bleu_by_length", chart)
    losses = [
        Curve(rung, [(one["minutes"], one["loss"]) for one in run["validations"] if one["loss"] is not None])
        for rung, run in drawn.items()
    ]
    measurement.draw(
        "loss_by_minutes",
        line_chart(losses, title="Loss by time", x_label="minutes", y_label="validation loss, nats a token"),
    )


if __name__ == "__main__":
    main()
