"""Experiments that decide claims about attention, some minutes each.

    make experiments                       all of them
    make experiments EXPERIMENT=equal_heads

Numbers are written to benchmarks/results/experiments/NAME.json, figures to docs/experiments/NAME.svg. Experiments with
whole translators are `make ladder`.
"""

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

from regardant.pictures import Bars, Curve, bar_chart, line_chart

from ..records import Measurement, arguments
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
    toy,
    varying_distance,
    warmup_and_clipping,
    word_sense,
)

NATS = "loss, nats a token"


def main(given: Sequence[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("experiments", nargs="*", help=f"default: {' '.join(EXPERIMENTS)}")
    asked = parser.parse_args(given)
    for name in asked.experiments:
        if name not in EXPERIMENTS:
            sys.exit(f"there is no experiment {name}: take one of {', '.join(EXPERIMENTS)}")
    measurement = Measurement(scratch=asked.scratch)
    for name in asked.experiments or EXPERIMENTS:
        measure, chart = EXPERIMENTS[name]
        found = measure()
        measurement.keep(f"experiments/{name}", {"experiment": name, **found})
        measurement.draw(name, chart(found))


def draw_gradients(found: dict[str, Any]) -> str:
    curves = [
        Curve(name, [(d, math.log10(n)) for d, n in zip(found["distances"], norms, strict=True)])
        for name, norms in found["relative_gradient_norm"].items()
    ]
    return line_chart(
        curves,
        title="Gradient by distance",
        x_label="tokens back",
        y_label="gradient norm, log10, relative to one token back",
    )


def draw_heads(found: dict[str, Any]) -> str:
    return line_chart(
        _by_step(found["head_difference"], start=0),
        title="How far heads are apart",
        x_label="updates",
        y_label="difference of the heads' query matrices, relative to their size",
    )


def draw_norms(found: dict[str, Any]) -> str:
    curves = _by_step(found["loss"], start=toy.EVERY)
    return line_chart(curves, title="Loss of deep stacks", x_label="updates", y_label=NATS)


def draw_depths(found: dict[str, Any]) -> str:
    curves = _by(found["depths"], found["loss"])
    return line_chart(curves, title="Loss by depth", x_label="layers of encoder and decoder each", y_label=NATS)


def draw_sizes(found: dict[str, Any]) -> str:
    curves = _by([math.log10(size) for size in found["sequences"]], found["loss"])
    return line_chart(curves, title="Loss by data", x_label="training sequences, log10", y_label=f"{NATS}, unseen ones")


def draw_series(title: str, x_label: str, y_label: str) -> Callable[[dict[str, Any]], str]:
    """Return what draws the medians of an experiment's series."""

    def draw(found: dict[str, Any]) -> str:
        curves = _by(found["x"], {name: values["median"] for name, values in found["series"].items()})
        return line_chart(curves, title=title, x_label=x_label, y_label=y_label)

    return draw


def draw_bars(title: str) -> Callable[[dict[str, Any]], str]:
    """Return what draws the medians of an experiment as bars, under each of its names."""

    def draw(found: dict[str, Any]) -> str:
        medians = {name: values["median"] for name, values in found["series"].items()}
        groups = [
            Bars(heading, [(name, max(0.0, values[number])) for name, values in medians.items()])
            for number, heading in enumerate(found["names"])
        ]
        return bar_chart(groups, title=title)

    return draw


def _by(xs: list[float], series: dict[str, list[float]]) -> list[Curve]:
    return [Curve(name, list(zip(xs, values, strict=True))) for name, values in series.items()]


def _by_step(series: dict[str, list[float]], start: int) -> list[Curve]:
    length = len(next(iter(series.values())))
    return _by([start + toy.EVERY * number for number in range(length)], series)


EXPERIMENTS: dict[str, tuple[Callable[[], dict[str, Any]], Callable[[dict[str, Any]], str]]] = {
    "gradient_by_distance": (gradient_by_distance.measure, draw_gradients),
    "equal_heads": (equal_heads.measure, draw_heads),
    "norm_and_warmup": (norm_and_warmup.measure, draw_norms),
    "depth": (depth.measure, draw_depths),
    "data_size": (data_size.measure, draw_sizes),
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
