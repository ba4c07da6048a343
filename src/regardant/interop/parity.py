"""Comparison of an export with its run on one test set: differences of scores, identical answers, size and speed."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import numpy as np

MOST_COMPARED = 200
"""Maximum number of texts whose scores are compared. Answers are compared for all texts."""


class Answering(Protocol):
    """Interface of a run and of the `Model` of a sample."""

    def answers(self, texts: Sequence[str]) -> list[str]:
        """Return the answer to each text."""

    def scores(self, texts: Sequence[str], references: Sequence[str]) -> list[Any]:
        """Return an array for each text: scores of all answers, or log-probabilities of the tokens of its reference."""


@dataclass(frozen=True)
class TestTexts:
    """Texts of a test set, with the metric of answers to them."""

    __test__ = False  # pytest would collect the class by its name

    name: str
    texts: list[str]
    references: list[str]
    """References of a translator. Other tasks repeat the texts."""
    metric: str
    score: Callable[[Sequence[str], Sequence[Any]], float] | None
    """Metric of answers and of the compared scores: percent, or perplexity. None: there is none."""
    tokens: Callable[[Sequence[str], Sequence[str]], int]
    """Number of tokens read or written, of texts and answers: the unit of speed."""
    are_words: bool = True
    """True if answers are compared for equality. False for vectors."""


@dataclass(frozen=True)
class Bounds:
    """Bounds on the differences between an export and its run."""

    scores: float | None
    """Largest allowed difference of two scores. None: any."""
    identical: float
    """Smallest allowed share of identical answers."""
    score: float
    """Largest allowed difference of the metric, in its own unit: percentage points, or perplexity."""


BOUNDS = {"float32": Bounds(1e-3, 0.99, 0.1), "narrow": Bounds(None, 0.0, 0.3)}
"""Bounds by the format of stored weights: float32, or one of fewer bits."""


@dataclass(frozen=True)
class Measured:
    """Measurements of one side of a comparison."""

    score: float | None
    bytes: int
    """Size of the run's weights file, or of all files of the export."""
    tokens_per_second: float


@dataclass(frozen=True)
class Parity:
    """An export compared with its run."""

    test_set: str
    texts: int
    metric: str
    largest_difference: float
    identical: float | None
    """Share of identical answers. None: answers are vectors."""
    run: Measured
    export: Measured

    @property
    def score_difference(self) -> float:
        """Absolute difference of the metric; 0 if there is no metric."""
        if self.run.score is None or self.export.score is None:
            return 0.0
        return abs(self.run.score - self.export.score)

    def failures(self, bounds: Bounds) -> Iterator[str]:
        """Yield a sentence for each difference beyond its bound."""
        if bounds.scores is not None and not self.largest_difference <= bounds.scores:
            yield f"outputs differ by {self.largest_difference:.2g}, allowed are {bounds.scores:g}"
        if self.identical is not None and not self.identical >= bounds.identical:
            yield f"{self.identical:.1%} of the answers are identical, at least {bounds.identical:.0%} must be"
        if not self.score_difference <= bounds.score:
            yield f"{self.metric} differs by {self.score_difference:.2f}, allowed are {bounds.score:g}"

    def table(self) -> list[str]:
        """Return the comparison as the lines of a Markdown table."""
        rows = [("size", *(f"{one.bytes / 1e6:.1f} MB" for one in (self.run, self.export)))]
        rows.append(("tokens a second", *(f"{one.tokens_per_second:,.0f}" for one in (self.run, self.export))))
        if self.run.score is not None and self.export.score is not None:
            rows.insert(0, (self.metric, f"{self.run.score:.2f}", f"{self.export.score:.2f}"))
        title = f"{self.test_set}, {self.texts:,} texts"
        if self.identical is not None:
            rows.append(("identical answers", "", f"{self.identical:.2%}"))
        rows.append(("largest difference of an output", "", f"{self.largest_difference:.2g}"))
        lines = [f"| {title} | run | export |", "|---|---|---|"]
        return [*lines, *(f"| {' | '.join(row)} |" for row in rows)]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for --json. A difference that is NaN or infinite, which JSON does not have, is None."""
        values = {**asdict(self), "score_difference": self.score_difference}
        return values if math.isfinite(self.largest_difference) else {**values, "largest_difference": None}


def compare(test: TestTexts, run: Answering, weights: Path, folder: Path, threads: int) -> Parity:
    """Compare the export in `folder`, run by its sample, with `run`, whose weights file is `weights`."""
    export = sample_of(folder).Model(folder, threads)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    own, first, scores = _measured(test, run, weights.stat().st_size)
    other, second, others = _measured(test, export, size)
    pairs = list(zip(first, second, strict=True))
    return Parity(
        test_set=test.name,
        texts=len(test.texts),
        metric=test.metric,
        # The maximum of NumPy is NaN if one of the numbers is; Python's passes over it.
        largest_difference=float(np.max([_difference(*pair) for pair in zip(scores, others, strict=True)], initial=0)),
        identical=sum(one == another for one, another in pairs) / len(pairs) if test.are_words else None,
        run=own,
        export=other,
    )


def sample_of(folder: Path) -> Any:
    """Return the sample of an export as a module."""
    path, module = folder / "sample.py", ModuleType("sample")
    module.__file__ = str(path)
    # An import would leave compiled code in the folder that a user ships.
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), module.__dict__)
    return module


def _measured(test: TestTexts, side: Answering, size: int) -> tuple[Measured, list[str], list[Any]]:
    side.answers(test.texts[:2])  # warm-up, which is not timed
    start = time.perf_counter()
    answers = side.answers(test.texts)
    seconds = time.perf_counter() - start
    scores = side.scores(test.texts[:MOST_COMPARED], test.references[:MOST_COMPARED])
    score = None if test.score is None else test.score(answers, scores)
    return Measured(score, size, test.tokens(test.texts, answers) / seconds), answers, scores


def _difference(one: Any, another: Any) -> float:
    """Return the largest difference of two arrays; infinite if their shapes differ."""
    one, another = np.asarray(one, np.float64), np.asarray(another, np.float64)
    if one.shape != another.shape:
        return float("inf")
    return float(np.abs(one - another).max(initial=0.0))
