"""Experiments that decide claims about attention, some minutes each.

    make experiments                       all of them
    make experiments EXPERIMENT=equal_heads
    make experiments EXPERIMENT=--draw     the figures of all kept results, without measuring

Numbers are written to benchmarks/results/experiments/NAME.json, figures to docs/experiments/NAME.svg. Experiments with
whole translators are `make ladder`.
"""

import json
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from regardant.pictures import Bars, Curve, bar_chart, line_chart

from ..records import RESULTS, Measurement, arguments, draw
from . import (
    architectures,
    coreference,
    data_size,
    depth,
    efficient_attention,
    equal_heads,
    explanations,
    functions,
    gradient_by_distance,
    head_size,
    induction,
    longer,
    norm_and_warmup,
    one_to_one,
    reach,
    specialised_heads,
    varying_distance,
    warmup_and_clipping,
    word_sense,
)

NATS = "loss, nats a token"

PARTS = ("median", "least", "largest")
"""Statistics of a series over all seeds, point by point. Exact numbers have the median alone."""


def main(given: Sequence[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("experiments", nargs="*", help=f"default: {' '.join(EXPERIMENTS)}")
    parser.add_argument("--draw", action="store_true", help="draw the kept results again, and measure nothing")
    asked = parser.parse_args(given)
    for name in asked.experiments:
        if name not in EXPERIMENTS:
            sys.exit(f"there is no experiment {name}: take one of {', '.join(EXPERIMENTS)}")
    if asked.draw:
        draw_kept(asked.experiments or EXPERIMENTS)
        return
    measurement = Measurement(scratch=asked.scratch)
    for name in asked.experiments or EXPERIMENTS:
        measure, chart = EXPERIMENTS[name]
        found = measure()
        measurement.keep(f"experiments/{name}", {"experiment": name, **found})
        measurement.draw(name, chart(found))


def draw_kept(names: Iterable[str]) -> None:
    """Draw the kept results of these experiments."""
    for name in names:
        file = RESULTS / "experiments" / f"{name}.json"
        if file.is_file():
            _, chart = EXPERIMENTS[name]
            draw(name, chart(json.loads(file.read_text(encoding="utf-8"))))


def draw_series(title: str, x_label: str, y_label: str, *, log10: str = "") -> Callable[[dict[str, Any]], str]:
    """Return a function that draws the medians of an experiment's series in a band from the least to the largest value.

    log10: axes of which logarithms are drawn: "x", "y" or both.
    """

    def scaled(axis: str, values: Sequence[float]) -> list[float]:
        return [math.log10(value) for value in values] if axis in log10 else list(values)

    def chart(found: dict[str, Any]) -> str:
        xs, curves = scaled("x", found["x"]), []
        for name, values in found["series"].items():
            median, least, largest = (scaled("y", values.get(part, values["median"])) for part in PARTS)
            points, band = zip(xs, median, strict=True), zip(least, largest, strict=True)
            curves.append(Curve(name, list(points), list(band) if "least" in values else ()))
        return line_chart(curves, title=title, x_label=x_label, y_label=y_label)

    return chart


def draw_bars(title: str) -> Callable[[dict[str, Any]], str]:
    """Return a function that draws the medians of an experiment as bars, in a group for each of its names."""

    def chart(found: dict[str, Any]) -> str:
        groups = [
            Bars(
                heading,
                [(name, max(0.0, values["median"][number])) for name, values in found["series"].items()],
                [(values["least"][number], values["largest"][number]) for values in found["series"].values()],
            )
            for number, heading in enumerate(found["names"])
        ]
        return bar_chart(groups, title=title)

    return chart


EXPERIMENTS: dict[str, tuple[Callable[[], dict[str, Any]], Callable[[dict[str, Any]], str]]] = {
    "gradient_by_distance": (
        gradient_by_distance.measure,
        draw_series(
            "Gradient by distance", "tokens back", "gradient norm, log10, relative to one token back", log10="y"
        ),
    ),
    "equal_heads": (
        equal_heads.measure,
        draw_series(
            "How far heads are apart", "updates", "difference of the heads' query matrices, relative to their size"
        ),
    ),
    "norm_and_warmup": (norm_and_warmup.measure, draw_series("Loss of deep stacks", "updates", NATS)),
    "depth": (depth.measure, draw_series("Loss by depth", "layers of encoder and decoder each", NATS)),
    "data_size": (
        data_size.measure,
        draw_series("Loss by data", "training sequences, log10", f"{NATS}, unseen ones", log10="x"),
    ),
    "varying_distance": (
        varying_distance.measure,
        draw_series("A relation at varying distance", "distance of the answer", "accuracy"),
    ),
    "longer": (longer.measure, draw_series("Positions past the trained length", "tokens", "accuracy")),
    "specialised_heads": (
        specialised_heads.measure,
        draw_series("Heads on two relations", "0 untrained, 1 trained", "weight, accuracy"),
    ),
    "warmup_and_clipping": (warmup_and_clipping.measure, draw_series("Warm-up and clipping", "learning rate", NATS)),
    "head_size": (head_size.measure, draw_series("Loss by head size", "numbers of a query", NATS)),
    "efficient_attention": (
        efficient_attention.measure,
        draw_series("Efficient attention at a distance", "distance of the answer", "accuracy"),
    ),
    "one_to_one": (one_to_one.measure, draw_bars(f"One output for each input: {NATS}")),
    "functions": (functions.measure, draw_bars("Functions fitted: error")),
    "word_sense": (word_sense.measure, draw_bars("The sense of a word")),
    "coreference": (
        coreference.measure,
        draw_bars("The noun of a pronoun: accuracy, difference of weights"),
    ),
    "explanations": (
        explanations.measure,
        draw_bars("Attention as an explanation"),
    ),
    "architectures": (
        architectures.measure,
        draw_bars("Architectures"),
    ),
    "reach": (reach.measure, draw_series("What a position reads", "layers", "positions")),
    "induction": (induction.measure, draw_series("Induction heads", "layers", "score, nats a token")),
}

if __name__ == "__main__":
    main()
