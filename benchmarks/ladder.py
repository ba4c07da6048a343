"""The whole story on one corpus: every rung of `ladder/*` with one budget, compared, and held to what is claimed.

    make ladder                                   two and a half hours on two cores, and an hour of equal updates
    make ladder RUNG="gru-fixed transformer@2000" these alone, the second for that many updates

A rung whose result is there is not trained again, so that what was interrupted goes on. Translations are kept beside
the results in benchmarks/results/ladder, and compared from there as soon as every rung that a bar speaks of is there;
what came of it is in comparison.json, figures in docs/experiments/.
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
from regardant.tasks.translation.evaluation import read_test_set

from .bars import bar, told
from .multi30k import folder
from .recipes import Asked, measure
from .records import RESULTS, commit, draw, keep, machine

FIXED, ATTENDING, TRANSFORMER = "gru-fixed", "gru-bahdanau", "transformer"

EQUAL_UPDATES, ENCODERS = 2000, ("window", "linear", "performer")
"""How long each of these and the Transformer train when steps and not minutes are the same."""

GAIN, WITHIN, SIGNIFICANT = 5.0, 1.5, 0.05
"""BLEU that attention has to gain; that an efficient encoder may lose; the p of a paired bootstrap."""

OF_TRAINING = ("parameters", "memory_bytes", "median_tokens_per_second", "updates", "validations", "machine", "commit")
"""What is said of a rung beside its scores."""

OF_MACHINE = ("cpu", "cores", "instructions", "bfloat16")
"""What makes minutes of two machines unequal; a name alone does not tell cores with bfloat16 from those without."""

TEST_FILES = ("test2016.tok.en.gz", "test2016.tok.de.gz")
"""What every rung is tested on."""


def main(named: list[str]) -> None:
    names = sorted(name for name in config.recipes() if name.startswith("ladder/"))
    by_time = [Asked(f"ladder/{FIXED}"), *(Asked(name) for name in names if name != f"ladder/{FIXED}")]
    by_updates = [Asked(f"ladder/{rung}", updates=EQUAL_UPDATES) for rung in (TRANSFORMER, *ENCODERS)]
    for asked in [Asked.parse(f"ladder/{name}") for name in named] or by_time + by_updates:
        if not is_kept(asked):
            measure(asked)
            translations(asked).write_bytes((asked.run / "evaluation" / "test.hyp").read_bytes())
    judged = [*(Asked(f"ladder/{rung}") for rung in (FIXED, ATTENDING, TRANSFORMER)), *by_updates]
    if lacking := [asked.name for asked in judged if not is_kept(asked)]:
        print(f"compared when these are there too: {', '.join(lacking)}")
        return
    start = commit()
    compared = compare(of_one_machine(list(filter(is_kept, by_time))))
    equal = compare(by_updates)
    bars = [*of_attention(compared), *of_encoders(equal)]
    whole = {"equal_minutes": compared, "equal_updates": equal, "bars": bars, "machine": machine(), "commit": start}
    keep(RESULTS / "ladder" / "comparison.json", whole)
    draw_curves(compared)
    print(*told(bars), sep="\n")
    if not all(one["pass"] for one in bars):
        sys.exit("a bar was missed, see FAIL above")


def is_kept(asked: Asked) -> bool:
    """Whether a rung need not be trained."""
    return asked.result.is_file() and translations(asked).is_file()


def of_one_machine(kept: Sequence[Asked]) -> list[Asked]:
    """Those that had their minutes on a machine like that of the first; minutes of another are not equal to them."""

    def machine_of(asked: Asked) -> list[Any]:
        told = json.loads(asked.result.read_text(encoding="utf-8"))["machine"]
        return [told[part] for part in OF_MACHINE]

    like_first = [asked for asked in kept if machine_of(asked) == machine_of(kept[0])]
    if others := ", ".join(asked.name for asked in kept if asked not in like_first):
        sought = {f"ladder/{rung}" for rung in (FIXED, ATTENDING, TRANSFORMER)}
        if not sought <= {asked.name for asked in like_first}:
            sys.exit(f"minutes of two machines are not equal: measure {others} anew on that of {kept[0].name}")
        print(f"left out, since their minutes were another machine's: {others}")
    return like_first


def translations(asked: Asked) -> Path:
    """Where the test set as a rung translates it is kept."""
    return asked.result.with_suffix(".hyp")


def compare(asked: Sequence[Asked]) -> dict[str, Any]:
    """Scores and costs by rung; the first is what the others are held to."""
    tested = read_test_set([folder() / name for name in TEST_FILES])
    lines = [translations(one).read_bytes().decode().removesuffix("\n").split("\n") for one in asked]
    scores, _ = compare_translations(tested.sources, tested.references, lines, TranslationMetrics(tokenize="none"))
    results = [json.loads(one.result.read_text(encoding="utf-8")) for one in asked]
    return {
        one.recipe.removeprefix("ladder/"): {
            **{name: result[name] for name in OF_TRAINING},
            **asdict(score),
        }
        for one, result, score in zip(asked, results, scores, strict=True)
    }


def of_attention(runs: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Attention against one fixed context, and the Transformer against both."""
    bleu = {rung: run["bleu"] for rung, run in runs.items()}
    gained = runs[ATTENDING]["against_first"]
    fixed, attending = (runs[rung]["by_length"] for rung in (FIXED, ATTENDING))
    longest = attending[-1]["bleu"] - fixed[-1]["bleu"]
    yield bar(f"{ATTENDING} over {FIXED}", gained["difference"], GAIN, at_least=True)
    yield bar("p of that", gained["p"], SIGNIFICANT)
    yield bar("the longest quarter gains over that", longest - gained["difference"], 0.0, at_least=True)
    over = bleu[TRANSFORMER] - max(bleu[FIXED], bleu[ATTENDING])
    yield bar(f"{TRANSFORMER} over both", over, 0.0, at_least=True)


def of_encoders(runs: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Efficient encoders against the softmax after as many updates."""
    for rung in ENCODERS:
        difference = runs[rung]["against_first"]["difference"]
        yield bar(f"{rung} encoder from softmax", difference, -WITHIN, at_least=True)


def draw_curves(runs: dict[str, Any]) -> None:
    """BLEU by source length and loss by minutes: recurrence, recurrence with attention, attention alone."""
    told = {rung: runs[rung] for rung in (FIXED, ATTENDING, TRANSFORMER)}
    lengths = [
        Curve(rung, [(sum(part["words"]) / 2, part["bleu"]) for part in run["by_length"]]) for rung, run in told.items()
    ]
    draw("bleu_by_length", line_chart(lengths, title="BLEU by length", x_label="words of the source", y_label="BLEU"))
    losses = [
        Curve(rung, [(one["minutes"], one["loss"]) for one in run["validations"] if one["loss"] is not None])
        for rung, run in told.items()
    ]
    draw(
        "loss_by_minutes",
        line_chart(losses, title="Loss by time", x_label="minutes", y_label="validation loss, nats a token"),
    )


if __name__ == "__main__":
    main(sys.argv[1:])
